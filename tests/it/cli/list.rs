//! `expertise list`.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, example_guide, text},
    on_one_database,
    snapshot::number_ids,
};

fn names(cli: &Cli, filters: &[&str]) -> Vec<String> {
    let args = [&["list", "--format=json"], filters].concat();
    let tasks = cli.command(&args).run().succeeded().json();
    let tasks = tasks.as_array().expect("an array");
    tasks
        .iter()
        .map(|task: &Value| text(&task["name"]))
        .collect()
}

/// A task of 80 KB: forty exceed a page.
fn large(number: usize) -> String {
    let letters = 'a'..='z';
    let tags = letters
        .clone()
        .flat_map(|one| letters.clone().map(move |two| format!("{one}{two}")));
    let translations: serde_json::Map<String, Value> = tags
        .take(100)
        .map(|tag| (tag, json!({"name": "\u{1d11e}".repeat(200)})))
        .collect();
    let task = json!({"name": format!("T{number}"), "product_id": 7, "translations": translations});
    json!({"task": task}).to_string()
}

#[apply(on_one_database)]
fn every_page_is_listed(cli: Cli) {
    const COUNT: usize = 45;
    let directory = tempfile::tempdir().expect("a directory");
    let paths: Vec<String> = (0..COUNT)
        .map(|number| {
            let path = directory.path().join(format!("{number}.json"));
            std::fs::write(&path, large(number)).expect("a file");
            path.display().to_string()
        })
        .collect();
    let args: Vec<&str> = ["import"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    cli.command(&args).run().succeeded();
    let expected: Vec<String> = (0..COUNT).map(|number| format!("T{number}")).collect();
    assert_eq!(names(&cli, &[]), expected);
    let text = cli.command(&["list"]).run().succeeded().stdout;
    assert_eq!(text.lines().count(), COUNT + 1);
}

#[apply(on_one_database)]
fn filters_leave_out_other_tasks(cli: Cli) {
    cli.import_guides(&["laptop-will-not-start.json", "measure-a-power-supply.json"]);
    let laptop = "Laptop will not start";
    let supply = "Measure a plug-in power supply";
    assert_eq!(names(&cli, &["--product-id=2310"]), [supply]);
    assert_eq!(names(&cli, &["--type=standard"]), [laptop, supply]);
    assert_eq!(names(&cli, &["--type=linked"]).len(), 3);
    assert_eq!(names(&cli, &["--published=0"]), [""; 0]);
    assert_eq!(names(&cli, &["--role=expert", "--type=standard"]).len(), 2);
    let roles = ["ACCESS_LEVEL_TECH"];
    cli.import(&json!({
        "task": {"name": "Draft", "product_id": 7, "published": 0, "roles": roles},
    }));
    assert_eq!(names(&cli, &["--published=0"]), ["Draft"]);
    let published = names(&cli, &["--published=1", "--type=standard"]);
    assert_eq!(published, [laptop, supply]);
    let of_tech = names(&cli, &["--role=tech", "--type=standard"]);
    assert_eq!(of_tech, [laptop, supply, "Draft"]);
    assert_eq!(names(&cli, &["--role=expert", "--type=standard"]).len(), 2);
    let shown = cli.command(&["list", "--published=0"]).run().succeeded();
    assert!(shown.stdout.contains("  hidden "), "{}", shown.stdout);
}

#[apply(on_one_database)]
fn a_line_names_guid_product_steps_state_type_and_name(cli: Cli) {
    let guid = &cli.import_guides(&["restart-safely.json"])[0];
    let output = cli.command(&["list"]).run().succeeded();
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", output.stdout);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    let expected = [
        guid,
        "1204",
        "6",
        "published",
        "standard",
        "Restart",
        "a",
        "laptop",
        "safely",
    ];
    assert_eq!(words, expected);
}

#[apply(on_one_database)]
fn managed_tasks_are_marked(cli: Cli) {
    cli.import_guides(&["laptop-will-not-start.json"]);
    let list = cli.command(&["list"]).run().succeeded().stdout;
    let types = list.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        words.nth(4)
    });
    let types: Vec<&str> = types.collect();
    assert_eq!(types, ["standard", "linked", "linked", "linked"], "{list}");
}

#[apply(on_one_database)]
fn the_page_of_commands_shows_what_is_printed(cli: Cli) {
    const PAGE: &str = include_str!("../../../docs/command-line.md");
    let (_, sample) = PAGE
        .split_once("expertise list\n```\n\n```text\n")
        .expect("a sample");
    let (sample, _) = sample.split_once("```").expect("its end");
    let guides = ["laptop-will-not-start.json", "measure-a-power-supply.json"];
    let guides = guides.map(example_guide);
    let import = cli.command(&["import", &guides[0], &guides[1]]).run();
    let import = import.succeeded();
    let list = cli.command(&["list"]).run().succeeded();
    let printed = format!("{}{}{}", import.stdout, import.stderr, list.stdout);
    let printed = printed.replace(&example_guide(""), "examples/guides/");
    assert_eq!(number_ids(&printed), number_ids(sample), "{printed}");
}

#[apply(on_one_database)]
fn an_empty_account_is_no_failure(cli: Cli) {
    let output = cli.command(&["list"]).run().succeeded();
    assert_eq!(output.stdout, "");
    assert_eq!(
        output.stderr,
        format!("account {} has no tasks\n", cli.account)
    );
    let output = cli.command(&["list", "--published=0"]).run().succeeded();
    assert_eq!(output.stderr, "no such tasks in this account\n");
    assert_eq!(names(&cli, &[]), [""; 0]);
}
