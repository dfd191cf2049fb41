//! `expertise preview`.

use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, command, example_guide, text},
    on_one_database,
    snapshot::number_ids,
};

const RESTART: &str = "restart-safely.json";

fn preview(cli: &Cli, args: &[&str]) -> String {
    let output = cli.command(&[&["preview"], args].concat()).run();
    output.succeeded().stdout
}

fn assert_shown(name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, number_ids(shown)));
}

#[apply(on_one_database)]
fn steps_are_visible_hidden_or_undetermined(cli: Cli) {
    let guid = &cli.import_guides(&[RESTART])[0];
    let unanswered = preview(&cli, &[guid]);
    assert_shown("preview_unanswered", &unanswered);
    let answered = preview(&cli, &[guid, "--level=tech", "--answer=reacts=no"]);
    answered.says(&[
        "Restart through the menu [hidden: condition]",
        "Switch off by the power button [visible]",
    ]);
    answered.says_none_of(&["undetermined", "next observation"]);
    let none = preview(&cli, &[guid, "--answer=reacts="]);
    assert!(none.contains("asks reacts, not answered"), "{none}");
    assert!(!none.contains("undetermined"), "{none}");
}

#[apply(on_one_database)]
fn answers_that_the_guide_does_not_have_are_named(cli: Cli) {
    cli.import_guides(&[RESTART]);
    let unused = "unused answer: nothing in the guide reads or sets \"other\"; the observations of \
                  the preview are reacts\n";
    let unknown = |name: &str| {
        format!(
            "unknown answer: {name:?} has no answer \"nope\"; its answers are yes, slowly, no\n"
        )
    };
    for (answer, expected) in [
        ("other=1", unused.to_owned()),
        ("reacts=nope", unknown("reacts")),
        (
            "components.1204.reacts=nope",
            unknown("components.1204.reacts"),
        ),
        ("reacts=slowly", String::new()),
        (" reacts = slowly", String::new()),
        ("reacts=", String::new()),
    ] {
        let args = ["preview", "Restart a laptop safely", "--answer", answer];
        let output = cli.command(&args).run().succeeded();
        assert_eq!(output.stderr, expected, "{answer}");
        let output = cli.command(&[&args[..], &["--format=json"]].concat()).run();
        assert_eq!(output.json()["task"]["visibility"], "VISIBILITY_VISIBLE");
        assert_eq!(output.stderr, expected, "{answer}");
    }
}

#[apply(on_one_database)]
fn a_question_of_another_step_is_not_offered_as_an_observation(cli: Cli) {
    let mut step = observation("hard", None);
    step["type"] = json!("STEP_TYPE_INFORMATION");
    let document = json!({"task": {"name": "Coffee", "product_id": 7}, "steps": [step]});
    let args = ["preview", "-", "--answer=other=1"];
    let output = cli.command(&args).stdin(&document.to_string()).run();
    let expected = "unused answer: nothing in the guide reads or sets \"other\"; the preview has no \
                    observations\n";
    assert_eq!(output.succeeded().stderr, expected);
}

#[apply(on_one_database)]
fn explain_says_why(cli: Cli) {
    let guid = &cli.import_guides(&[RESTART])[0];
    let shown = preview(&cli, &[guid, "--answer=reacts=slowly", "--explain"]);
    assert_shown("preview_explained", &shown);
}

#[apply(on_one_database)]
fn an_answer_of_the_wrong_form_is_refused_by_the_server(cli: Cli) {
    let guid = &cli.import_guides(&[RESTART])[0];
    let args = [
        "preview",
        guid,
        "--answer=reacts=no",
        "--answer=components.1204.reacts=yes",
    ];
    let output = cli.command(&args).run();
    assert_eq!(output.code, Some(1));
    output.stderr.says(&["answers[\"reacts\"]: differs"]);
}

#[test]
fn two_answers_of_one_name_are_refused() {
    let args = ["preview", "a.json", "--account=demo"];
    let answers = ["--answer=reacts=no", "--answer=reacts=slowly"];
    command(&[&args[..], &answers].concat())
        .run()
        .fails_with(2, &["--answer is given twice for reacts"]);
}

#[apply(on_one_database)]
fn texts_that_are_not_translated_are_marked(cli: Cli) {
    let guid = &cli.import_guides(&["measure-a-power-supply.json"])[0];
    let german = preview(&cli, &[guid, "--language=de", "--full"]);
    german.says(&[
        "Das Etikett lesen [visible]",
        "low: Deutlich weniger",
        "aufgedruckten Wert",
    ]);
    assert!(!german.contains("[source]"), "{german}");
    let swiss = preview(&cli, &[guid, "--language=de-CH"]);
    swiss.says(&["Das Etikett lesen [de] [visible]"]);
    let french = preview(&cli, &[guid, "--language=fr"]);
    french.says(&["Read the label [source] [visible]"]);
    let args = [guid.as_str(), "--language=fr", "--fallback-language=de"];
    assert!(preview(&cli, &args).contains("Das Etikett lesen [de] [visible]"));
    let mut step = end();
    step["translations"] = json!({"es": {"title": "Hecho"}, "fr": {"title": "Fini"}});
    let document = json!({"task": {"name": "A", "product_id": 7}, "steps": [step]});
    let guid = cli.import(&document);
    let [es, fr] = ["es", "fr"].map(|tag| format!("--fallback-language={tag}"));
    for (first, second, shown) in [(&es, &fr, "Hecho [es]"), (&fr, &es, "Fini [fr]")] {
        let args = [guid.as_str(), "--language=pt", first, second];
        preview(&cli, &args).says(&[shown]);
    }
}

#[apply(on_one_database)]
fn a_mark_of_an_outdated_translation_is_explained(cli: Cli) {
    const MEANING: &str = "[outdated]: a translation whose source text has changed since\n";
    let guid = &cli.import_guides(&["measure-a-power-supply.json"])[0];
    let args = [guid.as_str(), "--language=de"];
    assert!(!preview(&cli, &args).contains("outdated"));
    let document = cli.exported(guid);
    let steps = document["steps"].as_array().expect("steps");
    let label = steps.iter().find(|it| it["title"] == "Read the label");
    let label = &label.expect("a step")["guid"];
    let changed = json!({
        "task": {"guid": guid},
        "steps": [{"guid": label, "title": "Read the large label"}]
    });
    let import = ["import", "-", "--absent-steps=keep"];
    let import = cli.command(&import).stdin(&changed.to_string());
    import.run().succeeded();
    let german = preview(&cli, &args);
    let marked = "Das Etikett lesen [outdated] [visible]";
    assert!(german.contains(marked), "{german}");
    assert!(german.ends_with(MEANING), "{german}");
}

#[apply(on_one_database)]
fn a_refused_field_of_a_file_has_its_line_and_step(cli: Cli) {
    let wrong = "{\"task\": {\"name\": \"A\", \"product_id\": 7}, \"steps\": [\n\
                 {\"title\": \"Done\", \"type\": \"STEP_TYPE_END\"}]}";
    let preview = cli.command(&["preview", "a.json"]).file("a.json", wrong);
    let output = preview.run();
    assert_eq!(output.code, Some(1));
    let expected = "  line 2, step 1 \"Done\": document.steps[0].product_id: is required";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[apply(on_one_database)]
fn explain_names_the_levels_that_may_see_the_task(cli: Cli) {
    let document = json!({
        "task": {"name": "A", "product_id": 7, "roles": ["ACCESS_LEVEL_TECH"]},
        "steps": [],
    });
    let guid = &cli.import(&document);
    let user = ["--level=user", "--explain"];
    let stored = preview(&cli, &[&[guid.as_str()][..], &user].concat());
    let hidden = "[hidden: level]";
    let levels = "levels: the task is for tech\n";
    assert!(
        stored.contains(hidden) && stored.ends_with(levels),
        "{stored}"
    );
    let file = cli.command(&[&["preview", "a.json"][..], &user].concat());
    let file = file.file("a.json", &document.to_string()).run().succeeded();
    assert!(file.stdout.ends_with(levels), "{}", file.stdout);
    let anybody = preview(&cli, &[guid]);
    assert!(anybody.starts_with("A [visible]\n"), "{anybody}");
    let tech = preview(&cli, &[guid, "--level=tech", "--explain"]);
    assert!(!tech.contains("levels: "), "{tech}");
}

#[apply(on_one_database)]
fn a_file_is_previewed_without_storing_it(cli: Cli) {
    let shown = preview(&cli, &[&example_guide(RESTART), "--answer=reacts=yes"]);
    shown.says(&[
        "Restart through the menu [visible]",
        "Switch off by the power button [hidden: condition]",
    ]);
    let list = cli.command(&["list"]).run().succeeded();
    assert_eq!(list.stdout, "");
}

#[apply(on_one_database)]
fn the_next_observation_of_a_file_without_ids_is_named(cli: Cli) {
    let document = json!({
        "task": {"name": "Kettle", "product_id": 7},
        "steps": [
            {"product_id": 7, "type": "STEP_TYPE_INFORMATION", "title": "Unplug it first"},
            observation("first", None),
            observation("hidden", Some("components.7.first = b")),
            observation("second", Some("components.7.first = a")),
        ],
    });
    for (answer, title) in [("other=a", "Which first?"), ("first=a", "Which second?")] {
        let args = ["preview", "-", "--answer", answer];
        let output = cli.command(&args).stdin(&document.to_string()).run();
        let shown = output.succeeded().stdout;
        let expected = format!("next observation: {title}\n");
        assert!(shown.contains(&expected), "{shown}");
    }
}

#[apply(on_one_database)]
fn a_level_is_read_in_any_case(cli: Cli) {
    let guid = &cli.import_guides(&[RESTART])[0];
    let lower = preview(&cli, &[guid, "--level=tech2"]);
    for level in ["TECH2", "Tech2"] {
        assert_eq!(preview(&cli, &[guid, "--level", level]), lower);
    }
}

#[apply(on_one_database)]
fn subtasks_are_shown_below_their_step(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let deep = preview(&cli, &[guid]);
    let flat = preview(&cli, &[guid, "--subtask-depth=0"]);
    let steps = |shown: &str| shown.lines().filter(|line| line.contains("── 1. ")).count();
    assert_eq!(steps(&flat), 1, "{flat}");
    assert!(steps(&deep) > 1, "{deep}");
    deep.says(&["next observation: ", "open: components.1204."]);
}

fn end() -> Value {
    json!({"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"})
}

fn subtask(guid: &str) -> Value {
    json!({"product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": guid, "subtask_pid": 7})
}

fn observation(name: &str, shorthand: Option<&str>) -> Value {
    json!({
        "product_id": 7,
        "type": "STEP_TYPE_OBSERVATION",
        "title": format!("Which {name}?"),
        "dependency_shorthand": shorthand,
        "feedback_config": [{
            "name": name,
            "type": "enum",
            "values": [{"key": "a", "value": "A"}, {"key": "b", "value": "B"}],
        }],
    })
}

#[apply(on_one_database)]
fn explain_says_why_the_task_of_a_step_is_hidden(cli: Cli) {
    let inner = json!({
        "task": {"name": "Descale", "product_id": 7, "published": 0,
                 "roles": ["ACCESS_LEVEL_TECH"], "dependency_shorthand": "components.7.hard = a"},
        "steps": [end()],
    });
    let inner = cli.import(&inner);
    let coffee = json!({
        "task": {"name": "Coffee", "product_id": 7},
        "steps": [observation("hard", None), subtask(&inner)],
    });
    let coffee = cli.import(&coffee);
    let args = [
        coffee.as_str(),
        "--level=user",
        "--answer=hard=b",
        "--explain",
    ];
    let depths: [&[&str]; 2] = [&[], &["--subtask-depth=0"]];
    for depth in depths {
        let shown = preview(&cli, &[&args[..], depth].concat());
        shown.says(&[
            "its task is not published",
            "its task is for tech, not for user",
            "the conditions of its task are false",
        ]);
    }
    let args = [
        coffee.as_str(),
        "--level=tech",
        "--answer=hard=b",
        "--explain",
    ];
    let published = preview(&cli, &[&args[..], &["--include-unpublished"]].concat());
    assert!(published.contains("hidden: subtask hidden"), "{published}");
    assert!(!published.contains("its task is"), "{published}");
}

#[apply(on_one_database)]
fn explain_says_why_a_task_inside_a_file_is_hidden(cli: Cli) {
    let mut question = observation("hard", None);
    let answer = &mut question["feedback_config"][0];
    answer["linked"] = json!(true);
    answer["values"][0]["task_json"] = json!({
        "task": {"name": "ignored", "product_id": 7, "roles": ["ACCESS_LEVEL_TECH"]},
        "steps": [end()],
    });
    answer["values"][1]["task_json"] = json!({
        "task": {"name": "ignored", "product_id": 7},
        "steps": [end()],
    });
    let document = json!({"task": {"name": "Coffee", "product_id": 7}, "steps": [question]});
    let args = ["preview", "-", "--level=user", "--explain"];
    let output = cli.command(&args).stdin(&document.to_string()).run();
    let shown = output.succeeded().stdout;
    let lines = shown.matches("its task is for tech, not for user").count();
    assert_eq!(lines, 1, "{shown}");
}

#[apply(on_one_database)]
fn a_task_that_may_be_hidden_is_said_to_be(cli: Cli) {
    let inner = json!({
        "task": {"name": "Descale", "product_id": 7,
                 "dependency_shorthand": "components.7.hard = a"},
        "steps": [end()],
    });
    let inner = cli.import(&inner);
    let coffee = json!({
        "task": {"name": "Coffee", "product_id": 7},
        "steps": [observation("hard", None), subtask(&inner)],
    });
    let coffee = cli.import(&coffee);
    let unknown = preview(&cli, &[&coffee]);
    let inner = "end: Done [undetermined: the task may be hidden, unknown value]";
    unknown.says(&[inner, "the subtask may be hidden"]);
    let hidden = preview(&cli, &[&coffee, "--answer=hard=b"]);
    hidden.says(&["end: Done [hidden: task hidden]"]);
}

#[apply(on_one_database)]
fn variables_that_only_hidden_steps_ask_for_are_marked(cli: Cli) {
    const MARK: &str = "; only hidden steps ask for it\n";
    let end = json!({"product_id": 7, "type": "STEP_TYPE_END", "title": "Done",
                     "dependency_shorthand": "components.7.second = a"});
    let document = json!({
        "task": {"name": "Coffee", "product_id": 7},
        "steps": [
            observation("first", None),
            observation("second", Some("components.7.first = a")),
            end,
        ],
    });
    let guid = cli.import(&document);
    let settled = preview(&cli, &[&guid, "--answer=first=b"]);
    assert!(settled.contains("Done [hidden: condition]"), "{settled}");
    assert!(!settled.contains("open: "), "{settled}");
    // Another guide may have asked for it.
    let other = json!({
        "task": {"name": "Tea", "product_id": 7},
        "steps": [observation("second", None)],
    });
    cli.import(&other);
    let hidden = preview(&cli, &[&guid, "--answer=first=b"]);
    hidden.says(&["its answers are a, b; only hidden"]);
    let visible = preview(&cli, &[&guid, "--answer=first=a"]);
    assert!(visible.contains("open: components.7.second"), "{visible}");
    assert!(!visible.contains(MARK), "{visible}");
}

#[apply(on_one_database)]
fn json_has_the_steps_of_every_page(cli: Cli) {
    let steps = (0..600).map(|number| {
        serde_json::json!({"product_id": 7, "type": "STEP_TYPE_END", "title": format!("E{number}")})
    });
    let steps: Vec<_> = steps.collect();
    let document = serde_json::json!({"task": {"name": "Long", "product_id": 7}, "steps": steps});
    let import = cli.command(&["import", "-", "--format=json"]);
    let made = import.stdin(&document.to_string()).run().succeeded().json();
    let guid = text(&made[0]["guid"]);
    let output = cli
        .command(&["preview", &guid, "--format=json"])
        .run()
        .succeeded();
    let preview = output.json();
    let shown = preview["steps"].as_array().expect("steps");
    assert_eq!(shown.len(), 600);
    assert_eq!(shown[0]["visibility"], "VISIBILITY_VISIBLE");
    assert_eq!(shown[599]["visibility"], "VISIBILITY_HIDDEN");
    assert_eq!(preview["task"]["guid"], guid.as_str());
}
