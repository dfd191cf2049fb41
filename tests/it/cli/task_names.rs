//! Names of tasks in place of their guids.

use serde_json::json;

use crate::kit::{
    apply,
    command::{Cli, Says},
    on_one_database,
};

fn import(cli: &Cli, name: &str) {
    let document = json!({"task": {"name": name, "product_id": 7}});
    let import = cli.command(&["import", "-"]).stdin(&document.to_string());
    import.run().succeeded();
}

#[apply(on_one_database)]
fn a_name_that_one_task_has_names_it(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let output = cli.command(&["export", "Restart a laptop safely"]).run();
    assert_eq!(output.succeeded().stdout, cli.authored(guid));
    let output = cli.command(&["show", "Restart a laptop safely"]).run();
    assert!(output.succeeded().stdout.contains(guid.as_str()));
    for arguments in [
        &["lint"][..],
        &["preview"],
        &["graph"],
        &["references", "--task"],
    ] {
        let run = |task: &str| cli.command(&[arguments, &[task]].concat()).run();
        let (named, by_guid) = (run("Restart a laptop safely").succeeded(), run(guid));
        // `lint` begins with the guide as it was named.
        let after_name = named
            .stdout
            .replace("Restart a laptop safely: no", &format!("{guid}: no"));
        assert_eq!(after_name, by_guid.stdout);
        assert_eq!(named.stderr, by_guid.stderr);
    }
}

#[apply(on_one_database)]
fn translate_takes_a_name_and_has_no_summary_without_an_engine(cli: Cli) {
    import(&cli, "One");
    for (task, part) in [
        ("One", "start LibreTranslate"),
        ("Two", "no task of this account has the name \"Two\""),
    ] {
        let engine = "--engine-url=http://127.0.0.1:1";
        let args = ["translate", "--languages=de", "--task", task, engine];
        let output = cli.command(&args).run();
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[apply(on_one_database)]
fn a_name_that_is_no_file_is_refused_as_both(cli: Cli) {
    import(&cli, "One");
    for command in ["lint", "preview", "graph"] {
        let output = cli.command(&[command, "Two"]).run();
        let part = "there is no file \"Two\", and no task of this account has the name \"Two\"";
        assert_eq!(output.code, Some(1));
        assert!(output.stderr.contains(part), "{}", output.stderr);
        // A file wins over a task.
        let output = cli.command(&[command, "One"]).file("One", "{").run();
        output.stderr.says(&["it is not a guide"]);
    }
}

#[apply(on_one_database)]
fn a_name_that_several_tasks_have_is_refused_with_their_guids(cli: Cli) {
    import(&cli, "Twin");
    import(&cli, "Twin");
    let tasks = cli.command(&["list", "--format=json"]).run().json();
    let line = cli
        .command(&["show", "Twin"])
        .run()
        .fails_with(1, &["2 tasks have the name \"Twin\""]);
    for task in tasks.as_array().expect("an array") {
        let guid = task["guid"].as_str().expect("a guid");
        let named = format!("{guid} (product 7, 0 steps)");
        assert!(line.contains(&named), "{line}");
    }
}

#[apply(on_one_database)]
fn a_name_that_no_task_has_is_refused_with_the_nearest_one(cli: Cli) {
    import(&cli, "Pump one");
    for (name, advice) in [
        ("pump ne", "is \"Pump one\" meant?"),
        ("Pump one ", "is \"Pump one\" meant?"),
        (
            "Compressor",
            "`expertise list` lists the tasks of the account",
        ),
    ] {
        let line = cli.command(&["export", name]).run().failure(1);
        let part = format!("no task of this account has the name {name:?}: {advice}");
        assert!(line.contains(&part), "{line}");
    }
}

#[apply(on_one_database)]
fn upper_and_lower_case_matter_only_between_two_names(cli: Cli) {
    import(&cli, "Pump");
    let shown = |name: &str| cli.command(&["show", name]).run();
    assert!(shown("pUMP").succeeded().stdout.starts_with("Pump\n"));
    import(&cli, "PUMP");
    assert!(shown("Pump").succeeded().stdout.starts_with("Pump\n"));
    shown("pump").fails_with(1, &["2 tasks have the name \"pump\""]);
}
