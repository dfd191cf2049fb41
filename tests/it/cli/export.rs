//! `expertise export`: a document that imports as it stands.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, command, text},
    on_both_databases, on_one_database, on_own_databases,
    server::{Settings, TestServer},
};

#[apply(on_one_database)]
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
    assert_eq!(output.file("r.json"), cli.authored(guid));
    let output = cli
        .command(&["export", guid, "--out=r.json", "--format=json"])
        .run();
    let answer = output.succeeded().json();
    assert_eq!(answer["file"], "r.json");
    assert_eq!(answer["guid"], guid.as_str());
}

#[apply(on_one_database)]
fn an_unknown_task_fails_with_a_one_line_error(cli: Cli) {
    let guid = uuid::Uuid::now_v7().to_string();
    cli.command(&["export", &guid])
        .run()
        .fails_with(1, &["`expertise list` lists the tasks", "TASK_NOT_FOUND"]);
}

#[apply(on_one_database)]
fn an_unwritable_file_exits_with_1(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    cli.command(&["export", guid, "--out=no/r.json"])
        .run()
        .fails_with(1, &["cannot write no/r.json: "]);
}

#[apply(on_one_database)]
fn short_flags_name_server_account_and_file(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let args = ["export", guid, "-s", &cli.server, "-a", &cli.account];
    let output = command(&[&args[..], &["-o", "r.json"]].concat()).run();
    assert_eq!(output.succeeded().file("r.json"), cli.authored(guid));
}

#[apply(on_one_database)]
fn a_hyphen_as_file_is_standard_output(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let output = cli.command(&["export", guid, "--out=-"]).run().succeeded();
    assert_eq!(output.stdout, cli.authored(guid));
}

#[apply(on_one_database)]
fn a_file_in_place_of_a_directory_is_named(cli: Cli) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().display().to_string();
    let line = cli.command(&["export", "--all", "--out", &path]).run();
    let line = line.failure(1);
    let expected = format!("cannot write {path}: it is a file: with --all, --out is a directory");
    assert!(line.contains(&expected), "{line}");
}

#[apply(on_one_database)]
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

#[apply(on_one_database)]
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
    assert_eq!(
        fs::read_to_string(&file).expect("a file"),
        cli.authored(guid)
    );
    let files = fs::read_dir(directory.path()).expect("a directory");
    assert_eq!(files.count(), 1, "nothing is left beside it");
}

/// An import, a comparison and an edit of the file find nothing to change, also with what the
/// system sets, and a new guide made of it has the same file.
#[apply(on_both_databases)]
fn what_authors_write_is_the_whole_guide(cli: Cli) {
    let guides = [
        "laptop-will-not-start.json",
        "restart-safely.json",
        "measure-a-power-supply.json",
    ];
    for guid in cli.import_guides(&guides) {
        let (whole, authored) = (cli.export(&guid), cli.authored(&guid));
        for document in [&whole, &authored] {
            let with_file = |args: &[&str]| cli.command(args).file("guide.json", document);
            let output = with_file(&["import", "guide.json"]).run().succeeded();
            let unchanged = format!("unchanged {guid} in guide.json: ");
            assert!(output.stdout.starts_with(&unchanged), "{}", output.stdout);
            assert!(!output.stdout.contains("ignored: "), "{}", output.stdout);
            let output = with_file(&["diff", "guide.json"]).run().succeeded();
            assert!(!output.stderr.contains("ignored: "), "{output:?}");
            assert_eq!(output.stdout, "");
        }
        let with_file = |args: &[&str]| cli.command(args).file("guide.json", &authored);
        let edit = with_file(&["edit", &guid, "--editor", "cp guide.json"]).run();
        assert_eq!(edit.succeeded().stderr, "nothing is changed\n");
        assert_eq!(cli.export(&guid), whole);

        let copy = with_file(&["import", "guide.json", "--as-new", "--format=json"]).run();
        let copy = text(&copy.succeeded().json()[0]["guid"]);
        let without_ids = |document: &str| -> Value {
            let mut document = serde_json::from_str(document).expect("JSON");
            remove_ids(&mut document);
            document
        };
        assert_eq!(without_ids(&cli.authored(&copy)), without_ids(&authored));
    }
}

/// Removes what differs in a copy of a guide.
fn remove_ids(document: &mut Value) {
    match document {
        Value::Object(members) => {
            members.retain(|name, _| !["guid", "subtask_id"].contains(&name.as_str()));
            members.values_mut().for_each(remove_ids);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_ids),
        _ => {}
    }
}

#[apply(on_one_database)]
fn a_word_that_changes_is_one_line_of_the_file(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let before = cli.authored(guid);
    for (word, changed) in [
        ("power_sign = nothing", "power_sign = light_or_fan"),
        ("No bootable device found", "It finds no device"),
    ] {
        let changed = before.replacen(word, changed, 1);
        assert_ne!(changed, before, "{word}");
        let import = cli.command(&["import", "-"]).stdin(&changed).run();
        assert!(import.succeeded().stdout.starts_with("updated"), "{word}");
        assert_eq!(cli.authored(guid), changed, "{word}");
        let import = cli.command(&["import", "-"]).stdin(&before).run();
        import.succeeded();
        assert_eq!(cli.authored(guid), before, "{word}");
    }
}

#[apply(on_one_database)]
fn an_export_has_nothing_that_the_system_sets(cli: Cli) {
    let guid = cli.import(&json!({
        "task": {"name": "Kettle", "product_id": 7, "dependency_shorthand": "components.7.on = yes"},
        "steps": [{
            "product_id": 7,
            "type": "STEP_TYPE_OBSERVATION",
            "title": "Is it cold?",
            "tags": ["start"],
            "feedback_config": [{"name": "cold", "type": "enum", "linked": true, "values": [
                {"key": "no", "value": "No", "task_json": {"task": {"published": 0}}},
            ]}],
        }],
    }));
    let mut written: Value = serde_json::from_str(&cli.authored(&guid)).expect("JSON");
    remove_ids(&mut written);
    let roles = full_roles();
    assert_eq!(
        written,
        json!({
            "task": {
                "name": "Kettle",
                "product_id": "7",
                "dependency_shorthand": "components.7.on = yes",
                "published": 1,
                "roles": roles,
            },
            "steps": [
                {
                    "product_id": "7",
                    "type": "STEP_TYPE_OBSERVATION",
                    "title": "Is it cold?",
                    "cost": 0,
                    "feedback_config": [{
                        "name": "cold",
                        "type": "enum",
                        "linked": true,
                        "values": [{
                            "key": "no",
                            "value": "No",
                            "task_json": {"task": {"published": 0, "roles": roles}},
                        }],
                    }],
                    "published": 1,
                    "tags": ["start"],
                },
                {
                    "product_id": "7",
                    "type": "STEP_TYPE_SUBTASK",
                    "cost": 0,
                    "published": 1,
                    "subtask_pid": "7",
                },
            ],
        })
    );
    let full = cli.exported(&guid);
    assert_eq!(full["steps"][1]["title"], "No");
    assert!(full["task"]["etag"].is_string(), "{full}");
}

/// All access levels, which a task has by default.
fn full_roles() -> Value {
    let levels = ["USER", "TECH", "TECH2", "TECH3", "EXPERT", "USER2", "USER3"];
    json!(levels.map(|level| format!("ACCESS_LEVEL_{level}")))
}

#[apply(on_one_database)]
fn json_has_the_etag_of_the_exported_state(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let etag = |guide: &str| {
        let export = ["export", guide, "--out=r.json", "--format=json"];
        let exported = cli.command(&export).run().succeeded().json();
        text(&exported["guide_etag"])
    };
    let first = etag(guid);
    cli.command(&["keep", guid]).run().succeeded();
    assert_eq!(etag(guid), first);
    let changed = cli.authored(guid).replace("Save first", "Save second");
    let import = cli.command(&["import", "-"]).stdin(&changed);
    import.run().succeeded();
    assert_ne!(etag(guid), first);
    assert_eq!(etag(&format!("{guid}@1")), first);
    let all = ["export", "--all", "--out=guides", "--format=json"];
    let all = cli.command(&all).run().succeeded().json();
    assert_eq!(text(&all[0]["guide_etag"]), etag(guid));
}

#[apply(on_own_databases)]
async fn a_guide_beyond_the_largest_message_is_named_and_the_others_are_written(url: String) {
    let settings = Settings::new(&url).set("EXPERTISE_MAX_MESSAGE_BYTES", 65_536);
    let server = TestServer::start(settings).await;
    let cli = Cli {
        server: server.url(),
        account: "large".to_owned(),
    };
    let guide = |name: &str| json!({"task": {"name": name, "product_id": 7}});
    cli.import(&guide("First"));
    let large = cli.import(&guide("Large"));
    cli.import(&guide("Last"));
    let step = json!({
        "task": {"guid": large},
        "steps": [{
            "product_id": 7,
            "type": "STEP_TYPE_INFORMATION",
            "title": "Read",
            "body": "x".repeat(16 * 1024),
        }],
    });
    for _ in 0..4 {
        let import = cli.command(&["import", "-", "--absent-steps=keep", "--quiet"]);
        import.stdin(&step.to_string()).run().succeeded();
    }
    let output = cli.command(&["export", "--all", "--out=guides"]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    let written = output.stdout.lines().map(|line| line.rsplit_once(": "));
    let written: Vec<&str> = written.map(|line| line.expect("a line").1).collect();
    assert_eq!(written, ["First, 0 steps", "Last, 0 steps"]);
    let named = format!("2 written, 1 failed\nfailed {large}: Large: ");
    assert!(output.stderr.starts_with(&named), "{}", output.stderr);
    output.stderr.says(&["MESSAGE_TOO_LARGE"]);
}

#[apply(on_one_database)]
fn a_guide_that_leads_to_itself_is_copied(cli: Cli) {
    let mut guide = json!({"task": {"name": "Circle", "product_id": 7}});
    let guid = cli.import(&guide);
    guide["task"]["guid"] = json!(guid);
    guide["steps"] = json!([{
        "product_id": 7,
        "type": "STEP_TYPE_SUBTASK",
        "subtask_id": guid,
        "subtask_pid": 7,
    }]);
    cli.import(&guide);
    let authored = cli.authored(&guid);
    let copy = cli.command(&["import", "-", "--as-new", "--format=json"]);
    let copy = copy.stdin(&authored).run().succeeded().json();
    let copy = cli.exported(&text(&copy[0]["guid"]));
    assert_ne!(copy["task"]["guid"], guid.as_str());
    assert_eq!(copy["steps"][0]["subtask_id"], copy["task"]["guid"]);
}

#[apply(on_one_database)]
fn an_existing_file_of_the_guide_keeps_its_form(cli: Cli) {
    let text = r#"{
    "steps": [
        {"title": "Ask", "type": "STEP_TYPE_INFORMATION", "product_id": 7, "external_id": "ask"},
        {
            "type": "STEP_TYPE_END",   "title": "Done",
            "product_id": 7, "external_id": "done"
        }
    ],
    "task": {"externalId": "kettle", "name": "Kettle", "product_id": 7}
}
"#;
    let import = cli
        .command(&["import", "-", "--format=json"])
        .stdin(text)
        .run();
    let guid = import.succeeded().json()[0]["guid"]
        .as_str()
        .expect("a guid")
        .to_owned();
    let export = ["export", &guid, "--out=kettle.json"];
    let export = || {
        cli.command(&export)
            .file("kettle.json", text)
            .run()
            .succeeded()
    };
    assert_eq!(export().file("kettle.json"), text);
    let mut document = cli.exported(&guid);
    document["steps"][1]["title"] = json!("It boils");
    document["steps"][0]["cost"] = json!(0);
    document["steps"][0]["tags"] = json!(["start"]);
    document["steps"].as_array_mut().expect("steps").insert(
        1,
        json!({"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "New"}),
    );
    cli.import(&document);
    let written = export().file("kettle.json");
    written.says(&[
        "\"external_id\": \"ask\",\n            \"tags\": [\"start\"]\n        },",
        "\"type\": \"STEP_TYPE_END\",   \"title\": \"It boils\",",
        "{\"externalId\": \"kettle\", \"name\": \"Kettle\", \"product_id\": 7}",
        "\"title\": \"New\"",
    ]);
    written.says_none_of(&["\"published\": 1,\n            \"title\": \"It boils\""]);
    let diff = cli
        .command(&["diff", "kettle.json"])
        .file("kettle.json", &written);
    assert_eq!(diff.run().succeeded().stdout, "");
}
