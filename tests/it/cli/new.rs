//! `expertise new`.

use std::fs;

use serde_json::json;

use crate::kit::{
    apply,
    command::{Cli, command, text},
    on_one_database,
};

#[test]
fn a_new_guide_has_no_findings() {
    let guide = command(&["new", "--product-id=1204"]).run().succeeded();
    let lint = ["lint", "-", "--closed", "--fail-on=info", "--format=json"];
    let report = command(&lint).stdin(&guide.stdout).run().succeeded().json();
    assert_eq!(report[0]["findings"], json!([]));
    let steps = guide.json()["steps"].as_array().cloned().expect("steps");
    let of_product = steps.iter().filter(|step| step["product_id"] == "1204");
    assert_eq!(of_product.count(), steps.len());
}

#[test]
fn a_file_that_exists_is_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let new = || {
        command(&["new", "--out=a.json"])
            .in_directory(directory.path())
            .run()
    };
    new().succeeded();
    let file = directory.path().join("a.json");
    let written = fs::read_to_string(&file).expect("the guide");
    assert_eq!(
        written,
        command(&["new", "-o", "-"])
            .run()
            .succeeded()
            .stdout
            .replace("\"the-lamp-stays-dark\"", "\"a\"")
    );
    fs::write(&file, "mine").expect("a file");
    new().fails_with(1, &["a.json exists, and is left as it is"]);
    assert_eq!(fs::read_to_string(&file).expect("the file"), "mine");
    assert_eq!(command(&["new", "--product-id=0"]).run().code, Some(2));
}

#[apply(on_one_database)]
fn a_new_guide_is_imported_as_it_is(cli: Cli) {
    let guide = command(&["new"]).run().succeeded().stdout;
    let import = cli.command(&["import", "-", "--format=json"]).stdin(&guide);
    let report = import.run().succeeded().json();
    assert_eq!(report[0].get("ignored_paths"), None);
    let guid = text(&report[0]["guid"]);
    let preview = cli
        .command(&["preview", &guid, "--answer=plugged_in=no"])
        .run();
    let shown = preview.succeeded().stdout;
    assert!(shown.contains("Plug the lamp in"), "{shown}");
}
