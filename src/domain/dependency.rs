//! Conditions under which a task or step is visible.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use strum_macros::FromRepr;

use super::{
    json::{WIRE_OVERHEAD, number},
    shorthand,
    text::{Label, Tag},
};

/// The maximum nesting of groups, including the outermost.
pub const MAX_NESTED_GROUPS: usize = 16;
pub const MAX_CONDITIONS: usize = 1_000;
pub const MAX_TARGETS: usize = 1_000;
/// The maximum bytes of the targets of a condition, as a JSON list.
pub const MAX_TARGET_BYTES: usize = 65_536;

/// With the numbers of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, Serialize, Deserialize)]
#[repr(i32)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogicalOperator {
    And = 1,
    Or = 2,
}

/// A group of at least one node, stored as `["AND", [{"variable": …}, ["OR", […]]]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "(LogicalOperator, Vec<Node>)")]
pub struct Group {
    pub operator: LogicalOperator,
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Node {
    Condition(Condition),
    Group(Group),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    pub variable: Label,
    pub operator: Comparison,
    /// The values that it is compared with; at least one.
    pub targets: Vec<ConditionTarget>,
    pub path: Tag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Comparison {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = "<")]
    Less,
}

impl Comparison {
    /// All operators, longer symbols first.
    pub const ALL: [Self; 4] = [Self::NotEqual, Self::Equal, Self::Greater, Self::Less];

    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
        }
    }

    pub fn parse(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.symbol() == symbol)
    }
}

/// A value that a variable is compared with. Numbers are equal if their bits are equal, so 0 and -0
/// differ.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionTarget {
    Text(String),
    #[serde(serialize_with = "serialize_number")]
    Number(f64),
    Bool(bool),
}

impl PartialEq for ConditionTarget {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => one.to_bits() == other.to_bits(),
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(_) | Self::Number(_) | Self::Bool(_), _) => false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct PlacedCondition<'a> {
    pub path: String,
    pub condition: &'a Condition,
    /// Whether the outermost group cannot hold without it.
    pub is_needed: bool,
}

/// Counted once for a group, because it has room for four nodes from the first one on.
const GROUP_BYTES: usize = 176;

impl Group {
    /// Upper bound of the encoded size of the group and its shorthand, in bytes.
    pub fn wire_bytes(&self) -> usize {
        self.bytes() + shorthand::render(self).map_or(0, |shorthand| shorthand.len())
    }

    fn bytes(&self) -> usize {
        let node = |node: &Node| match node {
            Node::Group(group) => group.bytes(),
            Node::Condition(condition) => condition.bytes(),
        };
        GROUP_BYTES + self.nodes.iter().map(node).sum::<usize>()
    }

    /// The number of conditions and targets, including those of nested groups.
    pub fn weight(&self) -> usize {
        let mut weight = 0;
        self.for_each_condition(&mut |condition| weight += 1 + condition.targets.len());
        weight
    }

    pub fn conditions(&self) -> usize {
        let mut count = 0;
        self.for_each_condition(&mut |_| count += 1);
        count
    }

    /// The conditions in order, including those of nested groups.
    pub fn placed_conditions(&self) -> Vec<PlacedCondition<'_>> {
        let mut placed = Vec::new();
        self.place("dependencies", true, &mut placed);
        placed
    }

    fn place<'a>(&'a self, path: &str, is_needed: bool, placed: &mut Vec<PlacedCondition<'a>>) {
        let needs_all = match self.operator {
            LogicalOperator::And => true,
            LogicalOperator::Or => self.nodes.len() == 1,
        };
        let is_needed = is_needed && needs_all;
        for (index, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Group(group) => {
                    group.place(&format!("{path}.nodes[{index}].group"), is_needed, placed);
                }
                Node::Condition(condition) => placed.push(PlacedCondition {
                    path: format!("{path}.nodes[{index}].condition"),
                    condition,
                    is_needed,
                }),
            }
        }
    }

    /// Calls `visit` with each condition in order, including those of nested groups.
    pub fn for_each_condition(&self, visit: &mut impl FnMut(&Condition)) {
        for node in &self.nodes {
            match node {
                Node::Group(group) => group.for_each_condition(visit),
                Node::Condition(condition) => visit(condition),
            }
        }
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.operator, &self.nodes).serialize(serializer)
    }
}

impl From<(LogicalOperator, Vec<Node>)> for Group {
    fn from((operator, nodes): (LogicalOperator, Vec<Node>)) -> Self {
        Self { operator, nodes }
    }
}

/// Groups are arrays and conditions are objects. Derived code would copy each group once
/// for every group around it.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group or a condition")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, group: A) -> Result<Node, A::Error> {
        Group::deserialize(SeqAccessDeserializer::new(group)).map(Node::Group)
    }

    fn visit_map<A: MapAccess<'de>>(self, condition: A) -> Result<Node, A::Error> {
        Condition::deserialize(MapAccessDeserializer::new(condition)).map(Node::Condition)
    }
}

/// The bytes of targets as a JSON list without white space.
pub fn target_json_bytes(targets: &[ConditionTarget]) -> usize {
    serde_json::to_vec(targets).map_or(usize::MAX, |json| json.len())
}

impl Condition {
    fn bytes(&self) -> usize {
        let target = |target: &ConditionTarget| match target {
            ConditionTarget::Text(text) => WIRE_OVERHEAD + text.len(),
            ConditionTarget::Number(_) | ConditionTarget::Bool(_) => WIRE_OVERHEAD,
        };
        let texts = self.variable.as_str().len() + self.path.as_str().len();
        let targets: usize = self.targets.iter().map(target).sum();
        texts + targets + 4 * WIRE_OVERHEAD
    }
}

fn serialize_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*value).serialize(serializer)
}
