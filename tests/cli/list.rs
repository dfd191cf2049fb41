//! `expertise list`.

use serde_json::{Value, json};

use crate::harness::{World, on_both_databases, text};

on_both_databases![
    every_page_is_listed,
    filters_leave_out_what_does_not_fit,
    a_line_names_guid_product_steps_state_and_name,
    an_empty_account_is_no_failure,
];

fn names(world: &World, filters: &[&str]) -> Vec<String> {
    let args = [&["list", "--output=json"], filters].concat();
    let tasks = world.expertise(&args).run().succeeded().json();
    let tasks = tasks.as_array().expect("an array");
    tasks
        .iter()
        .map(|task: &Value| text(&task["name"]))
        .collect()
}

/// A task of 80 KB, of which forty are more than a page.
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

fn every_page_is_listed(world: World) {
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
    world.expertise(&args).run().succeeded();
    let expected: Vec<String> = (0..COUNT).map(|number| format!("T{number}")).collect();
    assert_eq!(names(&world, &[]), expected);
    let text = world.expertise(&["list"]).run().succeeded().stdout;
    assert_eq!(text.lines().count(), COUNT + 1);
}

fn filters_leave_out_what_does_not_fit(world: World) {
    world.given(&["laptop-will-not-start.json", "measure-a-power-supply.json"]);
    let laptop = "Laptop will not start";
    let supply = "Measure a plug-in power supply";
    assert_eq!(names(&world, &["--product-id=2310"]), [supply]);
    assert_eq!(names(&world, &["--type=standard"]), [laptop, supply]);
    assert_eq!(names(&world, &["--type=linked"]).len(), 3);
    assert_eq!(names(&world, &["--published=0"]), [""; 0]);
    assert_eq!(
        names(&world, &["--role=expert", "--type=standard"]).len(),
        2
    );
}

fn a_line_names_guid_product_steps_state_and_name(world: World) {
    let guid = &world.given(&["restart-safely.json"])[0];
    let said = world.expertise(&["list"]).run().succeeded();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", said.stdout);
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    let expected = [
        guid,
        "1204",
        "6",
        "published",
        "Restart",
        "a",
        "laptop",
        "safely",
    ];
    assert_eq!(words, expected);
}

fn an_empty_account_is_no_failure(world: World) {
    let said = world.expertise(&["list"]).run().succeeded();
    assert_eq!(said.stdout, "");
    assert_eq!(said.stderr, "no such tasks in this account\n");
    assert_eq!(names(&world, &[]), [""; 0]);
}
