#![allow(clippy::expect_used)]

use super::*;

#[test]
fn translate_takes_flags_over_environment_over_defaults() {
    let environment = [
        ("EXPERTISE_LANGUAGES", "DE, pt-br"),
        ("EXPERTISE_ACCOUNT", "42"),
        ("EXPERTISE_PARALLEL", "7"),
        ("EXPERTISE_RETRIES", "2"),
    ];
    let environment = environment.map(|(name, value)| (name.into(), value.into()));
    let config = |args: &[&str]| {
        let args = ["expertise", "translate"].iter().chain(args);
        let args = args.map(OsString::from);
        let invocation = Invocation::read(String::new(), args, environment.clone());
        match invocation.map(|invocation| invocation.command) {
            Ok(Command::Translate(config)) => *config,
            Ok(command) => panic!("{command:?}"),
            Err(error) => panic!("{error}"),
        }
    };
    let flagged = config(&["--parallel=8"]);
    let languages: Vec<_> = flagged.languages.iter().map(|tag| tag.as_str()).collect();
    assert_eq!(languages, ["de", "pt-BR"]);
    assert_eq!((flagged.parallel, flagged.connection.retry.retries), (8, 2));
    assert_eq!(flagged.connection.server, "http://127.0.0.1:50051");
    assert_eq!(flagged.engine_url, "http://127.0.0.1:5000");
    assert_eq!(flagged.timeout, Duration::from_secs(30));
    let apertium = config(&["--engine=apertium"]);
    assert_eq!(apertium.engine_url, "http://127.0.0.1:2737");
}

#[test]
fn the_command_line_is_consistent() {
    command_line(String::new()).debug_assert();
}

#[test]
fn help_lists_every_setting_with_environment_name_and_unit() {
    let mut program = command_line(String::new());
    let mut lists = |command: &str, settings: Vec<clap::Arg>| {
        let command = program.find_subcommand_mut(command).expect("a command");
        let help = command.render_long_help().to_string();
        // Its lines are wrapped.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for setting in settings {
            let key = settings::key(&setting);
            let unit = setting.get_value_names().and_then(|units| units.first());
            for text in [
                format!("{} <{}>", settings::flag(key), unit.expect("a unit")),
                format!("[{}]", settings::environment_name(key)),
            ] {
                assert!(help.contains(&text), "{text} is not in\n{help}");
            }
        }
    };
    lists("serve", settings::settings::<ServerSettings>());
    lists(
        "translate",
        settings::settings::<translate::TranslateSettings>(),
    );
    lists(
        "list",
        settings::settings::<connection::ConnectionSettings>(),
    );
    lists("health", settings::settings::<health::HealthSettings>());
}
