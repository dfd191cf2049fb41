//! Shorthands: parsing and rendering are inverse, and a fault points into the
//! text.

use expertise::domain::{
    dependency::{Comparison, Condition, Group, LogicalOperator, Node, Target},
    shorthand,
    text::{Label, Tag},
};

use super::{
    chance::Chance,
    corpus,
    run::{Input, run},
};

const WORDS: [&str; 12] = [
    "components.",
    "7",
    "1204",
    ".",
    " = ",
    "!=",
    ">",
    "<",
    ", ",
    "\"",
    "\\\"",
    "charge_light",
];

#[test]
fn shorthands() {
    let corpus: Vec<String> = corpus::texts("shorthand")
        .iter()
        .flat_map(|text| text.lines().map(str::to_owned))
        .collect();
    corpus
        .iter()
        .for_each(|text| parses_or_says_where_not(text));
    run("shorthand", 300, |chance| {
        if chance.one_in(4) {
            is_rendered_or_of_another_form(condition(&corpus, chance));
        } else {
            let text = chance.pick(&corpus);
            let text = chance.text(text, &WORDS);
            parses_or_says_where_not(&text);
        }
    });
}

fn parses_or_says_where_not(text: &str) {
    let _input = Input {
        target: "shorthand",
        bytes: text.as_bytes(),
    };
    match shorthand::parse(text) {
        Ok(group) => {
            let [Node::Condition(condition)] = group.nodes.as_slice() else {
                panic!("not one condition: {group:?}");
            };
            assert_eq!(group.operator, LogicalOperator::And);
            assert!(!text.contains('\0'), "U+0000 got through");
            assert!(!condition.targets.is_empty());
            let rendered = shorthand::render(&group).expect("it came from a shorthand");
            assert_eq!(
                shorthand::parse(&rendered).as_ref(),
                Ok(&group),
                "{rendered}"
            );
            // One that was rendered is rendered no other way.
            assert_eq!(shorthand::render(&group), Some(rendered));
        }
        Err(fault) => {
            let end = text.chars().count() + 1;
            assert!((1..=end).contains(&fault.at), "{fault} of {end}");
        }
    }
}

fn is_rendered_or_of_another_form(condition: Condition) {
    let group = Group {
        operator: LogicalOperator::And,
        nodes: vec![Node::Condition(condition)],
    };
    let described = format!("{group:?}");
    let _input = Input {
        target: "shorthand",
        bytes: described.as_bytes(),
    };
    if let Some(rendered) = shorthand::render(&group) {
        assert_eq!(shorthand::parse(&rendered), Ok(group), "{rendered}");
    }
}

/// A condition whose texts come from pieces of shorthands.
fn condition(corpus: &[String], chance: &mut Chance) -> Condition {
    let piece = |chance: &mut Chance| {
        let text: Vec<char> = chance.pick(corpus).chars().collect();
        let at = chance.below(text.len() + 1);
        let end = (at + chance.below(10)).min(text.len());
        let piece: String = text[at..end].iter().collect();
        match chance.below(3) {
            0 => piece,
            _ => chance.text(&piece, &WORDS),
        }
    };
    let variable = loop {
        if let Ok(variable) = Label::parse(piece(chance)) {
            break variable;
        }
    };
    let path = loop {
        let product = chance.next() % 100_000;
        let text = match chance.below(4) {
            0 => piece(chance),
            _ => format!("components.{product}"),
        };
        if let Ok(path) = Tag::parse(text) {
            break path;
        }
    };
    let targets = (0..=chance.below(3))
        .map(|_| match chance.below(12) {
            0 => Target::Bool(true),
            1 => Target::Number(0.5),
            _ => Target::Text(piece(chance).replace('\0', "")),
        })
        .collect();
    Condition {
        variable,
        operator: *chance.pick(&Comparison::ALL),
        targets,
        path,
    }
}
