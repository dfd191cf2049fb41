//! `expertise export`: a document that imports as it stands.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::Value;

use crate::kit::{
    command::{Cli, command, example_guide},
    on_both_databases, on_one_database,
};

on_both_databases![an_export_imported_and_exported_again_is_the_same_byte_for_byte];

on_one_database![
    importing_an_earlier_export_restores_all_texts,
    an_export_keeps_the_fields_of_imported_steps,
    out_writes_the_file_and_prints_its_name,
    a_hyphen_as_file_is_standard_output,
    short_flags_name_server_account_and_file,
    an_unknown_task_fails_with_a_one_line_error,
    an_unwritable_file_exits_with_1,
    a_file_in_place_of_a_directory_is_named,
    a_link_is_never_written_through,
    a_file_keeps_its_permissions_when_it_is_written_again,
];

fn an_export_imported_and_exported_again_is_the_same_byte_for_byte(cli: Cli) {
    let guides = [
        "laptop-will-not-start.json",
        "router-without-internet.json",
        "washing-machine-error-code.json",
        "measure-a-power-supply.json",
    ];
    for guid in cli.import_guides(&guides) {
        let exported = cli.export(&guid);
        let output = cli
            .command(&["import", "-"])
            .stdin(&exported)
            .run()
            .succeeded();
        assert!(
            output
                .stdout
                .starts_with(&format!("unchanged {guid} in -: ")),
            "{}",
            output.stdout
        );
        assert!(!output.stdout.contains("ignored: "), "{}", output.stdout);
        assert_eq!(cli.export(&guid), exported);
    }
}

fn importing_an_earlier_export_restores_all_texts(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let exported = cli.export(guid);
    let changed = exported.replace("Save first", "Save second");
    cli.command(&["import", "-"])
        .stdin(&changed)
        .run()
        .succeeded();
    assert_ne!(cli.export(guid), exported);
    cli.command(&["import", "-"])
        .stdin(&exported)
        .run()
        .succeeded();
    let texts = |document: &str| {
        let lines = document.lines().filter(|line| {
            !["\"etag\"", "\"modified_ts\""]
                .iter()
                .any(|name| line.contains(name))
        });
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(texts(&cli.export(guid)), texts(&exported));
}

fn an_export_keeps_the_fields_of_imported_steps(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let exported = cli.exported(guid);
    let written = fs::read_to_string(example_guide("restart-safely.json")).expect("the example");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let steps = written["steps"].as_array().expect("steps");
    for (index, step) in steps.iter().enumerate() {
        for (name, value) in step.as_object().expect("a step") {
            // Ids are made anew, and defaults are output.
            if !["guid", "translations", "feedback_config"].contains(&name.as_str()) {
                assert_eq!(&exported["steps"][index][name], value, "{index} {name}");
            }
        }
    }
}

fn out_writes_the_file_and_prints_its_name(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let output = cli
        .command(&["export", guid, "--out=r.json"])
        .run()
        .succeeded();
    assert_eq!(
        output.stdout,
        "wrote r.json: Restart a laptop safely, 6 steps\n"
    );
    assert_eq!(output.file("r.json"), cli.export(guid));
    let output = cli
        .command(&["export", guid, "--out=r.json", "--format=json"])
        .run();
    let answer = output.succeeded().json();
    assert_eq!(answer["file"], "r.json");
    assert_eq!(answer["guid"], guid.as_str());
}

fn an_unknown_task_fails_with_a_one_line_error(cli: Cli) {
    let guid = uuid::Uuid::now_v7().to_string();
    cli.command(&["export", &guid])
        .run()
        .fails_with(1, &["`expertise list` lists the tasks", "TASK_NOT_FOUND"]);
}

fn an_unwritable_file_exits_with_1(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    cli.command(&["export", guid, "--out=no/r.json"])
        .run()
        .fails_with(1, &["cannot write no/r.json: "]);
}

fn short_flags_name_server_account_and_file(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let args = ["export", guid, "-s", &cli.server, "-a", &cli.account];
    let output = command(&[&args[..], &["-o", "r.json"]].concat()).run();
    assert_eq!(output.succeeded().file("r.json"), cli.export(guid));
}

fn a_hyphen_as_file_is_standard_output(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let output = cli.command(&["export", guid, "--out=-"]).run().succeeded();
    assert_eq!(output.stdout, cli.export(guid));
}

fn a_file_in_place_of_a_directory_is_named(cli: Cli) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().display().to_string();
    let line = cli.command(&["export", "--all", "--out", &path]).run();
    let line = line.failure(1);
    let expected = format!("cannot write {path}: it is a file: with --all, --out is a directory");
    assert!(line.contains(&expected), "{line}");
}

fn a_link_is_never_written_through(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::write(at("target"), "kept").expect("a file");
    symlink(at("target"), at("r.json")).expect("a link");
    let command = cli.command(&["export", guid, "--out=r.json"]);
    command
        .in_directory(directory.path())
        .run()
        .fails_with(1, &["r.json", "it is a link"]);

    let all = ["export", "--all", "--out=guides"];
    let all = || cli.command(&all).in_directory(directory.path()).run();
    all().succeeded();
    let mut exported = fs::read_dir(at("guides")).expect("a directory");
    let exported = exported.next().expect("a file").expect("a file").path();
    fs::remove_file(&exported).expect("a file");
    symlink(at("target"), &exported).expect("a link");
    all().fails_with(1, &["it is a link"]);
    assert_eq!(fs::read_to_string(at("target")).expect("a file"), "kept");
}

fn a_file_keeps_its_permissions_when_it_is_written_again(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("r.json");
    fs::write(&file, "old").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("permissions");
    let command = cli.command(&["export", guid, "--out=r.json"]);
    command.in_directory(directory.path()).run().succeeded();
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(fs::read_to_string(&file).expect("a file"), cli.export(guid));
    let files = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(files.count(), 1, "nothing is left beside it");
}
