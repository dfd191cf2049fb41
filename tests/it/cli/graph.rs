//! `expertise graph`.

use std::fs;

use roxmltree::{Document, Node};
use serde_json::{Value, json};

use crate::kit::{
    apply,
    command::{Cli, Says, command, example_guide},
    on_one_database,
};

/// Characters that mean something in one of the forms, in other scripts, or nowhere.
const HOSTILE: &str = "\"<b>&amp;#35; ]] }} |x| %%{init}%% `a` \\n $1 -->\n\u{202e}\u{1b}\u{fffe}[0m שלום 🔧 漢字 end";

/// A guide whose texts are all hostile.
fn hostile() -> Value {
    json!({
        "task": {"name": HOSTILE, "product_id": 7},
        "steps": [
            {
                "product_id": 7,
                "type": "STEP_TYPE_OBSERVATION",
                "title": HOSTILE,
                "feedback_config": [{"name": HOSTILE, "type": "enum", "values": [
                    {"key": HOSTILE, "value": HOSTILE}, {"key": "other", "value": "Other"},
                ]}],
            },
            {
                "product_id": 7,
                "type": "STEP_TYPE_SOLUTION",
                "title": HOSTILE,
                "dependencies": {"operator": "LOGICAL_OPERATOR_AND", "nodes": [
                    {"condition": {"variable": HOSTILE, "operator": "=", "targets": [HOSTILE]}},
                    {"condition": {"variable": HOSTILE, "operator": "!=", "targets": ["other"]}},
                ]},
            },
        ],
    })
}

fn graph(document: &Value, format: &str) -> String {
    let graph = command(&["graph", "-", "--format", format]);
    graph.stdin(&document.to_string()).run().succeeded().stdout
}

/// The texts of an image, without the names of arrows that show when they are pointed at.
fn texts<'a>(image: &'a Document<'_>) -> Vec<&'a str> {
    let texts = image.descendants().filter(|node| node.has_tag_name("text"));
    texts
        .filter_map(|it| it.children().filter_map(|it| it.text()).next_back())
        .collect()
}

#[test]
fn a_picture_has_what_each_answer_shows_and_what_nobody_sees() {
    let step = |kind: &str, title: &str, more: Value| {
        let mut step = json!({
            "product_id": 7,
            "type": format!("STEP_TYPE_{kind}"),
            "title": title,
        });
        let members = step.as_object_mut().expect("a step");
        members.extend(more.as_object().cloned().unwrap_or_default());
        step
    };
    let answers = |name: &str, linked: bool| {
        json!({"feedback_config": [{"name": name, "type": "enum", "linked": linked, "values": [
            {"key": "yes", "value": "Yes"}, {"key": "no", "value": "No"},
        ]}]})
    };
    let mut kind = answers("kind", true);
    kind["feedback_config"][0]["values"][0]["task_json"] = json!({
        "task": {"dependency_shorthand": "components.7.kind = yes"},
        "steps": [step("END", "Ends here", json!({}))],
    });
    let condition = |name: &str, target: &str| json!({"condition": {"path": "components.7", "variable": name, "operator": "=", "targets": [target]}});
    let both = json!({"dependencies": {"operator": "LOGICAL_OPERATOR_AND", "nodes": [
        condition("lamp", "yes"), condition("lamp", "no"),
    ]}});
    let document = json!({
        "task": {"name": "Lamp", "product_id": 7},
        "steps": [
            step("OBSERVATION", "Is it lit?", answers("lamp", false)),
            step("SOLUTION", "Leave it", json!({"dependency_shorthand": "components.7.lamp != no"})),
            step("SOLUTION", "Draft", json!({"published": 0})),
            step("INFORMATION", "Never", both),
            step("OBSERVATION", "Which kind?", kind),
            step("END", "Done", json!({})),
        ],
    });
    let mermaid = graph(&document, "mermaid");
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("graph_mermaid", mermaid);
        insta::assert_snapshot!("graph_dot", graph(&document, "dot"));
    });
    let svg = graph(&document, "svg");
    let image = Document::parse(&svg).expect("XML");
    let texts = texts(&image);
    for text in [
        "solution, hidden",
        "information, unreachable",
        "2. Leave it",
        "if components.7.lamp is \"yes\" and components.7.lamp is",
        "not No",
        "Yes AND No",
        "1. Ends here",
        "yes: Yes",
    ] {
        assert!(texts.contains(&text), "no {text:?} in {texts:?}");
    }
    let red = svg.matches("stroke=\"#c00000\" stroke-width=\"3\"");
    assert_eq!(red.count(), 1, "{svg}");
}

#[test]
fn arrows_have_the_answers_and_what_is_not_published_is_dashed() {
    let rows = [
        ("= off, blinking", "off OR blinking", 1),
        ("!= steady", "not steady", 0),
        ("!= steady, off", "not steady AND not off", 2),
        ("> 12", "> 12", 1),
        ("< 3", "< 3", 1),
    ];
    let answers = ["off", "blinking", "steady"].map(|key| json!({"key": key, "value": key}));
    let mut steps = vec![json!({
        "product_id": 7,
        "type": "STEP_TYPE_OBSERVATION",
        "title": "Which?",
        "feedback_config": [{"name": "lamp", "type": "enum", "values": answers}],
    })];
    steps.extend(rows.map(|(shorthand, _, published)| {
        json!({
            "product_id": 7,
            "type": "STEP_TYPE_SOLUTION",
            "title": "Wait",
            "published": published,
            "dependency_shorthand": format!("components.7.lamp {shorthand}"),
        })
    }));
    let task = json!({"name": "Lamp", "product_id": 7, "published": 2});
    let document = json!({"task": task, "steps": steps});
    let (dot, mermaid) = (graph(&document, "dot"), graph(&document, "mermaid"));
    let is_dashed = |node: usize| {
        let node = format!("    n{node} [shape=");
        let line = dot.lines().find(|line| line.starts_with(&node));
        line.expect(&dot).contains(", style=dashed")
    };
    for (node, (_, label, published)) in (2..).zip(rows) {
        dot.says(&[&format!("  n1 -> n{node} [label=\"{label}\", style=")]);
        let is_hidden = published != 1;
        assert_eq!(is_dashed(node), is_hidden, "{label}");
        let class = format!("  class n{node} hidden\n");
        assert_eq!(mermaid.contains(&class), is_hidden, "{label}");
    }
    assert!(is_dashed(0), "the task: {dot}");
    let dashes = graph(&document, "svg").matches("stroke-dasharray").count();
    assert_eq!(dashes, 3);
}

#[test]
fn a_subtask_step_leads_to_its_task_if_the_guide_manages_it() {
    let ids = [(); 2].map(|()| uuid::Uuid::now_v7().to_string());
    let subtask = |id: &str| json!({"product_id": 7, "type": "STEP_TYPE_SUBTASK", "subtask_id": id, "subtask_pid": 7});
    let managed = json!({
        "task": {"guid": ids[0]},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
    });
    let document = json!({
        "task": {"name": "Lamp", "product_id": 7},
        "steps": [
            {
                "product_id": 7,
                "type": "STEP_TYPE_OBSERVATION",
                "title": "Which?",
                "feedback_config": [{"name": "kind", "type": "enum", "linked": true, "values": [
                    {"key": "a", "value": "Old", "task_json": managed}, {"key": "b", "value": "New"},
                ]}],
            },
            subtask(&ids[0]),
            subtask(&ids[1]),
        ],
    });
    let dot = graph(&document, "dot");
    dot.says(&[
        "\\n2. Old\"]",
        &format!("{}\"]", ids[1]),
        "  n1 -> n4 [label=\"Old\", style=dashed]\n",
        "  n2 -> n4 [label=\"\", style=dashed]\n",
    ]);
    assert_eq!(dot.matches("style=dashed").count(), 2, "{dot}");
}

#[test]
fn a_task_that_never_begins_is_unreachable() {
    let equals = |target: &str| json!({"condition": {"path": "components.7", "variable": "a", "operator": "=", "targets": [target]}});
    let document = json!({
        "task": {"name": "A", "product_id": 7, "dependencies": {
            "operator": "LOGICAL_OPERATOR_AND",
            "nodes": [equals("x"), equals("y")],
        }},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": "Done"}],
    });
    let mermaid = graph(&document, "mermaid");
    mermaid.says(&["[\"task, unreachable<br>A<br>"]);
    assert!(mermaid.ends_with("  class n0 unreachable\n"), "{mermaid}");
}

#[test]
fn texts_are_escaped_in_every_form() {
    let mermaid = graph(&hostile(), "mermaid");
    for line in mermaid.lines().filter(|line| line.contains('"')) {
        let (before, rest) = line.split_once('"').expect("a quote");
        let (text, after) = rest.rsplit_once('"').expect("a quote");
        assert!(
            !text
                .replace("<br>", "")
                .contains(['"', '<', '`', '\\', ']', '%', '|', '{']),
            "{line}"
        );
        assert!(before.len() + after.len() < 40, "{line}");
    }
    mermaid.says(&["#34;#60;b#62;#38;amp#59;#35;35#59;"]);
    let dot = graph(&hostile(), "dot");
    assert!(dot.contains(r#"\"<b>&amp;amp;#35;"#), "{dot}");
    let quotes = |line: &str| {
        line.replace("\\\\", "")
            .replace("\\\"", "")
            .matches('"')
            .count()
    };
    for line in dot.lines() {
        assert_eq!(quotes(line) % 2, 0, "{line}");
    }
    let svg = graph(&hostile(), "svg");
    let image = Document::parse(&svg).expect("XML");
    let title = image.descendants().find(|node| node.has_tag_name("title"));
    let name: String = HOSTILE
        .chars()
        .map(|c| match c {
            '\n' | '\u{202e}' | '\u{1b}' | '\u{fffe}' => ' ',
            c => c,
        })
        .collect();
    assert_eq!(title.and_then(|node| node.text()), Some(name.as_str()));
    for picture in [mermaid, dot, svg] {
        assert!(!picture.contains(['\u{202e}', '\u{1b}']), "{picture}");
    }
}

/// The numbers of attributes.
fn numbers<const N: usize>(node: &Node<'_, '_>, names: [&str; N]) -> [f32; N] {
    names.map(|name| {
        let number = node.attribute(name).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("no {name} in {node:?}"))
    })
}

#[test]
fn boxes_and_texts_of_images_do_not_overlap() {
    let files = fs::read_dir(example_guide("")).expect("the examples");
    let files = files.map(|file| file.expect("a file").path());
    let files = files.filter(|file| file.extension().is_some_and(|it| it == "json"));
    let long =
        "Wide WORDS, and onewordthatislongerthanalineofaboxandhastobebroken 漢字漢字漢字".repeat(5);
    let mut documents: Vec<Value> = files
        .map(|file| {
            serde_json::from_str(&fs::read_to_string(file).expect("a guide")).expect("JSON")
        })
        .collect();
    documents.push(json!({
        "task": {"name": long.get(..190), "product_id": 7},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": long.get(..380)}],
    }));
    assert!(documents.len() > 5);
    for document in documents {
        let svg = graph(&document, "svg");
        let image = Document::parse(&svg).expect("XML");
        let boxes = image
            .descendants()
            .filter(|node| node.attribute("stroke-width").is_some());
        let boxes = boxes.map(|node| numbers(&node, ["x", "y", "width", "height"]));
        let boxes: Vec<[f32; 4]> = boxes.collect();
        for pair in boxes.windows(2) {
            assert!(pair[0][1] + pair[0][3] < pair[1][1], "{pair:?}");
        }
        let texts = image.descendants().filter(|node| node.has_tag_name("text"));
        let mut arrows = Vec::new();
        for text in texts {
            let [x, y, size] = numbers(&text, ["x", "y", "font-size"]);
            match boxes
                .iter()
                .find(|it| x < it[0] + it[2] && y > it[1] && y < it[1] + it[3])
            {
                Some(_) => {}
                None => arrows.push((y, size)),
            }
        }
        arrows.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in arrows.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= pair[1].1, "{pair:?}");
        }
    }
}

#[test]
fn a_document_that_is_no_guide_is_refused() {
    let graph = command(&["graph", "-"])
        .stdin(r#"{"task": {"name": "A"}}"#)
        .run();
    assert_eq!(graph.code, Some(1), "{graph:?}");
    graph.stderr.says(&["an import would refuse it"]);
    command(&["graph", "absent.json"])
        .run()
        .fails_with(1, &["there is no such file"]);
}

#[apply(on_one_database)]
fn a_stored_guide_is_drawn_like_its_file(cli: Cli) {
    let guid = &cli.import_guides(&["laptop-will-not-start.json"])[0];
    let authored = cli.authored(guid);
    for format in ["mermaid", "dot", "svg"] {
        let stored = ["graph", guid, "--format", format, "--out=picture"];
        let stored = cli.command(&stored).run().succeeded().file("picture");
        let file = command(&["graph", "-", "--format", format])
            .stdin(&authored)
            .run();
        assert_eq!(stored, file.succeeded().stdout, "{format}");
    }
    cli.command(&["keep", guid]).run().succeeded();
    let drawn = |guide: &str| cli.command(&["graph", guide]).run().succeeded().stdout;
    let before = drawn(guid);
    let changed = authored.replace("\"title\": \"", "\"title\": \"Now: ");
    let import = cli.command(&["import", "-"]).stdin(&changed);
    import.run().succeeded();
    assert_ne!(drawn(guid), before);
    assert_eq!(drawn(&format!("{guid}@1")), before);
}
