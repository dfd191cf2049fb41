//! `expertise graph`: the layout of images.

use std::fs;

use roxmltree::{Document, Node};
use serde_json::{Value, json};

use crate::command::{command, example_guide};

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
    let hostile = "\"<b>&amp;#35; ]]> \u{202e}\u{1b}\u{fffe}[0m ".to_owned() + &long;
    documents.push(json!({
        "task": {"name": hostile.chars().take(150).collect::<String>(), "product_id": 7},
        "steps": [{"product_id": 7, "type": "STEP_TYPE_END", "title": long.get(..380)}],
    }));
    assert!(documents.len() > 3);
    for document in documents {
        let graph = command(&["graph", "-", "--format=svg"]).stdin(&document.to_string());
        let svg = graph.run().succeeded().stdout;
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
