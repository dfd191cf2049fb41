//! A graph as text for Mermaid, which code forges and editors draw.

use super::model::{Graph, GraphNode};
use crate::proto::v1::StepType;

pub(super) fn mermaid(graph: &Graph) -> String {
    let mut text = "flowchart TD\n".to_owned();
    for (index, task) in graph.tasks.iter().enumerate() {
        text.push_str(&format!("  subgraph t{index}[\" \"]\n"));
        for (node, id) in graph.nodes.iter().zip(0..).take(task.end).skip(task.start) {
            text.push_str(&format!("    n{id}{}\n", shape(node)));
        }
        let ids: Vec<String> = task.clone().map(|id| format!("n{id}")).collect();
        if ids.len() > 1 {
            text.push_str(&format!("    {}\n", ids.join(" --> ")));
        }
        text.push_str("  end\n");
    }
    for (from, targets) in &graph.edges {
        for (to, label) in targets {
            let label = match label.as_str() {
                "" => String::new(),
                label => format!("|\"{}\"|", escaped(label)),
            };
            text.push_str(&format!("  n{from} -.->{label} n{to}\n"));
        }
    }
    text.push_str("  classDef hidden stroke-dasharray:4\n");
    text.push_str("  classDef unreachable stroke:#c00,stroke-width:3px\n");
    for (node, id) in graph.nodes.iter().zip(0..) {
        let classes = [
            (node.is_hidden, "hidden"),
            (node.is_unreachable, "unreachable"),
        ];
        for (_, class) in classes.into_iter().filter(|(is_set, _)| *is_set) {
            text.push_str(&format!("  class n{id} {class}\n"));
        }
    }
    text
}

/// The shape of a node around its text.
fn shape(node: &GraphNode) -> String {
    let (open, close) = match node.kind {
        None => ("[", "]"),
        Some(StepType::Observation) => ("{{", "}}"),
        Some(StepType::Subtask) => ("[[", "]]"),
        Some(StepType::End) => ("([", "])"),
        Some(StepType::Idp) => ("[/", "/]"),
        Some(StepType::Solution | StepType::Information | StepType::Unspecified) => ("(", ")"),
    };
    let lines: Vec<String> = node.lines().map(|line| escaped(&line)).collect();
    format!("{open}\"{}\"{close}", lines.join("<br>"))
}

/// A quoted text. Characters that are special in Mermaid are written as numbers.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || !c.is_ascii() || " .,:?!()+=-/'_".contains(c);
    let characters = text.chars().map(|c| match is_plain(c) {
        true => c.to_string(),
        false => format!("#{};", u32::from(c)),
    });
    characters.collect()
}
