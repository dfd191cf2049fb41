#![allow(clippy::expect_used)]

use super::*;

#[test]
fn the_command_line_is_consistent() {
    command_line(String::new()).debug_assert();
}

#[test]
fn flag_variable_and_key_of_a_setting_are_named_alike() {
    let program = command_line(String::new());
    let commands = program.get_subcommands().chain([&program]);
    let settings = commands.flat_map(clap::Command::get_arguments);
    let settings = settings.filter(|it| it.get_env().is_some());
    let mut count = 0;
    for setting in settings {
        let key = setting.get_id().as_str();
        let flag = setting.get_long().expect("a flag");
        let variable = setting.get_env().expect("a variable");
        assert_eq!(flag, key.replace('_', "-"));
        assert_eq!(
            variable.to_str(),
            Some(&*format!("EXPERTISE_{}", key.to_uppercase()))
        );
        assert!(setting.get_value_names().is_some(), "{key} has no unit");
        count += 1;
    }
    assert!(count > 100, "{count}");
}
