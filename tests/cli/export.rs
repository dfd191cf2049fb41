//! `expertise export`: a document that imports as it stands.

use std::fs;

use serde_json::Value;

use crate::harness::{World, example, expertise, on_both_databases};

on_both_databases![
    an_export_imported_and_exported_again_is_the_same_byte_for_byte,
    an_import_of_a_written_export_is_the_same_byte_for_byte,
    it_says_what_the_document_said,
    a_file_is_written_and_named,
    a_task_that_is_not_there_is_one_line,
    what_cannot_be_written_is_a_failure,
];

fn an_export_imported_and_exported_again_is_the_same_byte_for_byte(world: World) {
    let guides = [
        "laptop-will-not-start.json",
        "router-without-internet.json",
        "washing-machine-error-code.json",
        "measure-a-power-supply.json",
    ];
    for guid in world.given(&guides) {
        let exported = world.exported(&guid);
        let said = world
            .expertise(&["import", "-"])
            .stdin(&exported)
            .run()
            .succeeded();
        assert!(
            said.stdout.starts_with(&format!("updated {guid} ")),
            "{}",
            said.stdout
        );
        assert!(!said.stdout.contains("ignored: "), "{}", said.stdout);
        assert_eq!(world.exported(&guid), exported);
    }
}

fn an_import_of_a_written_export_is_the_same_byte_for_byte(world: World) {
    let guid = &world.given(&["restart-safely.json"])[0];
    let exported = world.exported(guid);
    let changed = exported.replace("Save first", "Save second");
    world
        .expertise(&["import", "-"])
        .stdin(&changed)
        .run()
        .succeeded();
    assert_ne!(world.exported(guid), exported);
    world
        .expertise(&["import", "-"])
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
    assert_eq!(texts(&world.exported(guid)), texts(&exported));
}

fn it_says_what_the_document_said(world: World) {
    let guid = &world.given(&["restart-safely.json"])[0];
    let exported: Value = serde_json::from_str(&world.exported(guid)).expect("JSON");
    let written = fs::read_to_string(example("restart-safely.json")).expect("the example");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let steps = written["steps"].as_array().expect("steps");
    for (index, step) in steps.iter().enumerate() {
        for (name, value) in step.as_object().expect("a step") {
            // Ids are made anew, and defaults are said.
            if !["guid", "translations", "feedback_config"].contains(&name.as_str()) {
                assert_eq!(&exported["steps"][index][name], value, "{index} {name}");
            }
        }
    }
}

fn a_file_is_written_and_named(world: World) {
    let guid = &world.given(&["restart-safely.json"])[0];
    let said = world
        .expertise(&["export", guid, "--out=r.json"])
        .run()
        .succeeded();
    assert_eq!(
        said.stdout,
        "wrote r.json: Restart a laptop safely, 6 steps\n"
    );
    assert_eq!(said.file("r.json"), world.exported(guid));
    let said = world
        .expertise(&["export", guid, "--out=r.json", "--output=json"])
        .run();
    let answer = said.succeeded().json();
    assert_eq!(answer["file"], "r.json");
    assert_eq!(answer["guid"], guid.as_str());
}

fn a_task_that_is_not_there_is_one_line(world: World) {
    let guid = uuid::Uuid::now_v7().to_string();
    let line = world.expertise(&["export", &guid]).run().failure(1);
    assert!(
        line.contains("`expertise list` lists the tasks") && line.contains("TASK_NOT_FOUND"),
        "{line}"
    );
}

fn what_cannot_be_written_is_a_failure(world: World) {
    let guid = &world.given(&["restart-safely.json"])[0];
    let line = world
        .expertise(&["export", guid, "--out=no/r.json"])
        .run()
        .failure(1);
    assert!(line.contains("cannot write no/r.json: "), "{line}");
}

#[test]
fn a_guid_that_is_none_is_refused_before_anyone_is_asked() {
    let line = expertise(&["export", "1", "--account=demo"])
        .run()
        .failure(2);
    assert!(
        line.contains("GUID is \"1\": it must be the guid of a task"),
        "{line}"
    );
}
