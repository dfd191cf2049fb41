//! A graph as text for Graphviz.

use super::{
    model::{Graph, GraphNode},
    wrapped,
};
use crate::proto::v1::StepType;

/// The columns of a line in a box.
const COLUMNS: usize = 40;

pub(super) fn dot(graph: &Graph) -> String {
    let mut text = "digraph guide {\n  node [fontname=\"sans-serif\", fontsize=11]\n  \
                    edge [fontname=\"sans-serif\", fontsize=10]\n"
        .to_owned();
    for (index, task) in graph.tasks.iter().enumerate() {
        text.push_str(&format!("  subgraph cluster_{index} {{\n"));
        for (node, id) in graph.nodes.iter().zip(0..).take(task.end).skip(task.start) {
            text.push_str(&format!("    n{id} [{}]\n", attributes(node)));
        }
        let ids: Vec<String> = task.clone().map(|id| format!("n{id}")).collect();
        if ids.len() > 1 {
            text.push_str(&format!("    {} [weight=9]\n", ids.join(" -> ")));
        }
        text.push_str("  }\n");
    }
    for (from, targets) in &graph.edges {
        for (to, label) in targets {
            let label = quoted(label);
            text.push_str(&format!(
                "  n{from} -> n{to} [label={label}, style=dashed]\n"
            ));
        }
    }
    text + "}\n"
}

fn attributes(node: &GraphNode) -> String {
    let shape = match node.kind {
        None => "tab",
        Some(StepType::Observation) => "hexagon",
        Some(StepType::Subtask) => "component",
        Some(StepType::End) => "oval",
        Some(StepType::Idp) => "note",
        Some(StepType::Solution | StepType::Information | StepType::Unspecified) => "box",
    };
    let lines = node.lines().flat_map(|line| wrapped(&line, COLUMNS));
    let lines: Vec<String> = lines.collect();
    let mut attributes = format!("shape={shape}, label={}", quoted(&lines.join("\n")));
    if node.is_hidden {
        attributes.push_str(", style=dashed");
    }
    if node.is_unreachable {
        attributes.push_str(", color=\"#cc0000\", penwidth=3");
    }
    attributes
}

/// A quoted text. Graphviz decodes HTML entities in it.
fn quoted(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('\\', "\\\\");
    let text = text.replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{text}\"")
}
