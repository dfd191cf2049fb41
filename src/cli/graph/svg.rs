//! A graph as SVG. The steps are stacked in order. To their right, each observation has a vertical
//! line, from which an arrow leads to every step that its answers show. A general graph layout
//! would draw arrows across the boxes of a list.

use std::collections::BTreeMap;

use console::truncate_str;

use super::{
    model::{Graph, GraphNode},
    wrapped,
};
use crate::proto::v1::StepType;

const MARGIN: f32 = 24.0;
const BOX_WIDTH: f32 = 400.0;
const BOX_PADDING: f32 = 10.0;
const BOX_GAP: f32 = 14.0;
/// The additional gap between a task and the next one.
const TASK_GAP: f32 = 30.0;
/// The space for the texts of arrows, between the boxes and the lines.
const LABEL_WIDTH: f32 = 190.0;
const LANE_WIDTH: f32 = 14.0;
/// The height of an arrow and the text above it.
const ARROW_HEIGHT: f32 = 18.0;
const TITLE_SIZE: f32 = 14.0;
const NOTE_SIZE: f32 = 12.0;
const LINE_HEIGHT: f32 = 1.35;
/// The number of text columns that fit in a box and above an arrow.
const TITLE_COLUMNS: usize = 40;
const NOTE_COLUMNS: usize = 55;
const LABEL_COLUMNS: usize = 26;
const GRAY: &str = "#77828c";
const RED: &str = "#c00000";
/// Distinguishable line colors on white.
const COLORS: [&str; 8] = [
    "#1f5fa8", "#b3541e", "#2e7d32", "#8e24aa", "#00737a", "#a3195b", "#6d5a00", "#455a9c",
];

pub(super) fn svg(graph: &Graph) -> String {
    let boxes = place(graph);
    let lanes = assign_lanes(graph, &boxes);
    let x_of = |lane: usize| MARGIN + BOX_WIDTH + LABEL_WIDTH + lane as f32 * LANE_WIDTH;
    let width = x_of(lanes.iter().max().map_or(0, |lane| lane + 1)) + MARGIN;
    let height = boxes.last().map_or(0.0, NodeBox::bottom) + MARGIN;
    let name = boxes.first().map_or("", |task| &task.node.heading);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         font-family=\"'DejaVu Sans', Verdana, Arial, sans-serif\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escaped(name)
    );
    for task in &graph.tasks {
        let of_task = boxes.get(task.clone()).unwrap_or_default();
        if let (Some(first), Some(last)) = (of_task.first(), of_task.last()) {
            svg.push_str(&ground(first.top, last.bottom()));
        }
    }
    let mut drawn = BTreeMap::new();
    let arrows = graph.edges.iter().zip(lanes).zip(COLORS.iter().cycle());
    for (((from, targets), lane), color) in arrows {
        if let Some(from) = boxes.get(*from) {
            svg.push_str(&draw_arrows(
                from,
                targets,
                &boxes,
                &mut drawn,
                x_of(lane),
                color,
            ));
        }
    }
    for task in &graph.tasks {
        for (index, it) in boxes.iter().enumerate().take(task.end).skip(task.start) {
            svg.push_str(&it.svg(index + 1 == task.end));
        }
    }
    svg + "</svg>\n"
}

/// A node and its position.
struct NodeBox<'a> {
    node: &'a GraphNode,
    top: f32,
    height: f32,
    /// The lines of the text with their sizes.
    texts: Vec<(String, f32)>,
}

/// Stacks the nodes, each high enough for its text and its arrows.
fn place(graph: &Graph) -> Vec<NodeBox<'_>> {
    let mut arrows: BTreeMap<usize, usize> = BTreeMap::new();
    for (from, targets) in &graph.edges {
        for node in targets.iter().map(|(to, _)| to).chain([from]) {
            *arrows.entry(*node).or_default() += 1;
        }
    }
    let mut top = MARGIN;
    let nodes = graph.nodes.iter().enumerate().map(|(index, node)| {
        let notes = node.notes.iter();
        let notes = notes.flat_map(|note| wrapped(note, NOTE_COLUMNS));
        let title = wrapped(&node.heading, TITLE_COLUMNS).into_iter();
        let texts = [(node.kind_text(), NOTE_SIZE)].into_iter();
        let texts = texts.chain(title.map(|line| (line, TITLE_SIZE)));
        let texts: Vec<_> = texts.chain(notes.map(|line| (line, NOTE_SIZE))).collect();
        let text: f32 = texts.iter().map(|(_, size)| size).sum();
        let arrows = arrows.get(&index).copied().unwrap_or_default() as f32 * ARROW_HEIGHT;
        if index > 0 {
            top += if node.kind.is_none() {
                BOX_GAP + TASK_GAP
            } else {
                BOX_GAP
            };
        }
        let placed = NodeBox {
            node,
            top,
            height: (text * LINE_HEIGHT).max(arrows) + 2.0 * BOX_PADDING,
            texts,
        };
        top = placed.bottom();
        placed
    });
    nodes.collect()
}

/// Assigns the line of each observation to a lane without overlap. Shorter lines are closer to the
/// boxes.
fn assign_lanes(graph: &Graph, boxes: &[NodeBox<'_>]) -> Vec<usize> {
    let spans = graph
        .edges
        .iter()
        .enumerate()
        .map(|(index, (from, targets))| {
            let ends = targets.iter().map(|(to, _)| to).chain([from]);
            let ends = ends.filter_map(|node| boxes.get(*node));
            let low = ends.clone().map(|it| it.top).fold(f32::MAX, f32::min);
            (index, low, ends.map(NodeBox::bottom).fold(0.0, f32::max))
        });
    let mut spans: Vec<(usize, f32, f32)> = spans.collect();
    spans.sort_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    let mut taken: Vec<Vec<(f32, f32)>> = Vec::new();
    let mut lanes = BTreeMap::new();
    for (index, low, high) in spans {
        let is_free = |lane: &Vec<(f32, f32)>| lane.iter().all(|it| it.0 > high || it.1 < low);
        let lane = taken.iter().position(is_free).unwrap_or(taken.len());
        match taken.get_mut(lane) {
            Some(lane) => lane.push((low, high)),
            None => taken.push(vec![(low, high)]),
        }
        lanes.insert(index, lane);
    }
    lanes.into_values().collect()
}

/// The background of the steps of a task.
fn ground(top: f32, bottom: f32) -> String {
    format!(
        "<rect x=\"12\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#f3f5f7\"/>\n",
        top - 12.0,
        BOX_WIDTH + 24.0,
        bottom - top + 24.0
    )
}

/// Draws the line of an observation at `x`, and its arrows. `drawn` counts the arrows to each node.
fn draw_arrows(
    from: &NodeBox<'_>,
    targets: &[(usize, String)],
    boxes: &[NodeBox<'_>],
    drawn: &mut BTreeMap<usize, usize>,
    x: f32,
    color: &str,
) -> String {
    let (right, start) = (MARGIN + BOX_WIDTH, from.bottom() - BOX_PADDING);
    let source = escaped(&from.node.heading);
    let (mut low, mut high) = (start, start);
    let mut svg = String::new();
    for (to, label) in targets {
        let Some(target) = boxes.get(*to) else {
            continue;
        };
        let arrows = drawn.entry(*to).or_default();
        *arrows += 1;
        let y = target.top + *arrows as f32 * ARROW_HEIGHT;
        (low, high) = (low.min(y), high.max(y));
        svg.push_str(&format!(
            "<path d=\"M{x} {y}H{}\" stroke=\"{color}\"/>\
             <path d=\"M{right} {y}l9 -4v8z\" fill=\"{color}\"/>\n\
             <text x=\"{}\" y=\"{}\" font-size=\"{NOTE_SIZE}\" fill=\"{color}\">\
             <title>{source}: {}</title>{}</text>\n",
            right + 8.0,
            right + 14.0,
            y - 3.0,
            escaped(label),
            escaped(&truncate_str(label, LABEL_COLUMNS, "…"))
        ));
    }
    format!(
        "<path d=\"M{right} {start}H{x}M{x} {low}V{high}\" fill=\"none\" stroke=\"{color}\"/>\n\
         <circle cx=\"{right}\" cy=\"{start}\" r=\"3\" fill=\"{color}\"/>\n{svg}"
    )
}

impl NodeBox<'_> {
    fn bottom(&self) -> f32 {
        self.top + self.height
    }

    /// Draws the node, and an arrow to the next node of its task.
    fn svg(&self, is_last: bool) -> String {
        let Self {
            node, top, height, ..
        } = self;
        let (fill, radius) = match node.kind {
            None => ("#dfe5ea", 8),
            Some(StepType::Observation) => ("#e3effb", 8),
            Some(StepType::Solution) => ("#e6f4e7", 8),
            Some(StepType::Idp) => ("#fdf0d8", 8),
            Some(StepType::Information | StepType::Unspecified) => ("#ffffff", 8),
            Some(StepType::Subtask) => ("#f1e7f7", 8),
            Some(StepType::End) => ("#eeeeee", 24),
        };
        let dashes = match node.is_hidden {
            true => " stroke-dasharray=\"6 4\"",
            false => "",
        };
        let (stroke, thickness, kind_color) = match node.is_unreachable {
            true => (RED, 3, RED),
            false => (GRAY, 1, "#555e66"),
        };
        let mut svg = format!(
            "<rect x=\"{MARGIN}\" y=\"{top}\" width=\"{BOX_WIDTH}\" height=\"{height}\" \
             rx=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\" \
             stroke-width=\"{thickness}\"{dashes}/>\n"
        );
        let (x, mut y) = (MARGIN + BOX_PADDING, top + BOX_PADDING);
        for (index, (line, size)) in self.texts.iter().enumerate() {
            y += size * LINE_HEIGHT;
            let style = match (index, *size) {
                (0, _) => format!(" fill=\"{kind_color}\""),
                (_, TITLE_SIZE) => " font-weight=\"600\"".to_owned(),
                _ => String::new(),
            };
            let (baseline, line) = (y - 0.3 * size, escaped(line));
            svg.push_str(&format!(
                "<text x=\"{x}\" y=\"{baseline}\" font-size=\"{size}\"{style}>{line}</text>\n"
            ));
        }
        if !is_last {
            let (middle, bottom) = (MARGIN + BOX_WIDTH / 2.0, self.bottom());
            svg.push_str(&format!(
                "<path d=\"M{middle} {bottom}v{BOX_GAP}\" stroke=\"{GRAY}\"/>\
                 <path d=\"M{middle} {}l-4 -7h8z\" fill=\"{GRAY}\"/>\n",
                bottom + BOX_GAP
            ));
        }
        svg
    }
}

fn escaped(text: &str) -> String {
    // XML does not allow these characters.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], " ");
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
