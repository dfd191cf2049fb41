//! Shorthands: parsing and rendering are inverse, and an error says a position in the
//! text.

use expertise::domain::{
    dependency::{Comparison, Condition, ConditionTarget, Group, LogicalOperator, Node},
    shorthand,
    text::{Label, Tag},
};

use super::{
    corpus,
    executions::{Input, execute},
    mutations::mutate_text,
};
use crate::kit::rng::Rng;

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
fn parsing_and_rendering_are_inverse() {
    let corpus: Vec<String> = corpus::texts("shorthand")
        .iter()
        .flat_map(|text| text.lines().map(str::to_owned))
        .collect();
    corpus
        .iter()
        .for_each(|text| parses_or_says_the_position(text));
    execute("shorthand", 300, |rng| {
        if rng.one_in(4) {
            is_parsed_as_it_was_rendered(condition(&corpus, rng));
        } else {
            let text = rng.pick(&corpus);
            let text = mutate_text(rng, text, &WORDS);
            parses_or_says_the_position(&text);
        }
    });
}

fn parses_or_says_the_position(text: &str) {
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
            assert!(!text.contains('\0'), "U+0000 is accepted");
            assert!(!condition.targets.is_empty());
            let rendered = shorthand::render(&group).expect("it came from a shorthand");
            assert_eq!(
                shorthand::parse(&rendered).as_ref(),
                Ok(&group),
                "{rendered}"
            );
            // Rendering is the same the second time.
            assert_eq!(shorthand::render(&group), Some(rendered));
        }
        Err(error) => {
            let end = text.chars().count() + 1;
            assert!((1..=end).contains(&error.at), "{error} of {end}");
        }
    }
}

fn is_parsed_as_it_was_rendered(condition: Condition) {
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

/// A condition with parts of shorthands as texts.
fn condition(corpus: &[String], rng: &mut Rng) -> Condition {
    let piece = |rng: &mut Rng| {
        let text: Vec<char> = rng.pick(corpus).chars().collect();
        let at = rng.below(text.len() + 1);
        let end = (at + rng.below(10)).min(text.len());
        let piece: String = text[at..end].iter().collect();
        match rng.below(3) {
            0 => piece,
            _ => mutate_text(rng, &piece, &WORDS),
        }
    };
    let variable = loop {
        if let Ok(variable) = Label::parse(piece(rng)) {
            break variable;
        }
    };
    let path = loop {
        let product = rng.next() % 100_000;
        let text = match rng.below(4) {
            0 => piece(rng),
            _ => format!("components.{product}"),
        };
        if let Ok(path) = Tag::parse(text) {
            break path;
        }
    };
    let targets = (0..=rng.below(3))
        .map(|_| match rng.below(12) {
            0 => ConditionTarget::Bool(true),
            1 => ConditionTarget::Number(0.5),
            _ => ConditionTarget::Text(piece(rng).replace('\0', "")),
        })
        .collect();
    Condition {
        variable,
        operator: *rng.pick(&Comparison::ALL),
        targets,
        path,
    }
}
