//! Conditions under which a task or step is visible.

use serde_json::{Value, json};

use super::{
    json::{WIRE_OVERHEAD, number},
    shorthand,
    text::{Label, Tag},
};

/// Deepest nesting of groups, the outermost counted.
pub const GROUPS_MAX: usize = 16;
/// Most conditions of one resource.
pub const CONDITIONS_MAX: usize = 1_000;

/// How the nodes of a group combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalOperator {
    /// Every node must hold.
    And,
    /// At least one node must hold.
    Or,
}

/// A group of at least one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// How its nodes combine.
    pub operator: LogicalOperator,
    /// Its nodes, in order.
    pub nodes: Vec<Node>,
}

/// A node of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A comparison.
    Condition(Condition),
    /// A nested group.
    Group(Group),
}

/// A comparison of a variable with values.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The variable.
    pub variable: Label,
    /// How it is compared.
    pub operator: Comparison,
    /// The values that it is compared with; at least one.
    pub targets: Vec<ConditionTarget>,
    /// The path of the variable.
    pub path: Tag,
}

/// How a variable is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Is one of the targets.
    Equal,
    /// Is none of the targets.
    NotEqual,
    /// Is greater than the target.
    Greater,
    /// Is less than the target.
    Less,
}

impl Comparison {
    /// All operators, longer symbols first.
    pub const ALL: [Self; 4] = [Self::NotEqual, Self::Equal, Self::Greater, Self::Less];

    /// The symbol of the operator.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
        }
    }

    /// Parses a symbol.
    pub fn parse(symbol: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.symbol() == symbol)
    }
}

/// A value that a variable is compared with. Numbers are equal if their bits are, so 0 and
/// -0 differ.
#[derive(Clone, Debug)]
pub enum ConditionTarget {
    /// A text without U+0000.
    Text(String),
    /// A finite number.
    Number(f64),
    /// A truth value.
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

impl LogicalOperator {
    /// The operator as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
        }
    }
}

impl Group {
    /// Upper bound of the encoded size of the group and its short form, in bytes.
    pub fn wire_bytes(&self) -> usize {
        self.bytes() + shorthand::render(self).map_or(0, |short| short.len())
    }

    fn bytes(&self) -> usize {
        let node = |node: &Node| match node {
            Node::Group(group) => group.bytes(),
            Node::Condition(condition) => condition.bytes(),
        };
        WIRE_OVERHEAD + self.nodes.iter().map(node).sum::<usize>()
    }

    /// The stored form: `["AND", [{"variable": …}, ["OR", […]]]]`.
    pub fn to_json(&self) -> Value {
        let nodes: Vec<Value> = self.nodes.iter().map(Node::to_json).collect();
        json!([self.operator.name(), nodes])
    }

    /// Parses the stored form.
    pub fn from_json(value: &Value) -> Option<Self> {
        let [operator, nodes] = value.as_array()?.as_slice() else {
            return None;
        };
        let operator = match operator.as_str()? {
            "AND" => LogicalOperator::And,
            "OR" => LogicalOperator::Or,
            _ => return None,
        };
        let nodes = nodes
            .as_array()?
            .iter()
            .map(Node::from_json)
            .collect::<Option<_>>()?;
        Some(Self { operator, nodes })
    }
}

impl Node {
    fn to_json(&self) -> Value {
        match self {
            Self::Group(group) => group.to_json(),
            Self::Condition(condition) => condition.to_json(),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        if value.is_array() {
            Group::from_json(value).map(Self::Group)
        } else {
            Condition::from_json(value).map(Self::Condition)
        }
    }
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

    fn to_json(&self) -> Value {
        let targets: Vec<Value> = self.targets.iter().map(ConditionTarget::to_json).collect();
        json!({
            "variable": self.variable.as_str(),
            "operator": self.operator.symbol(),
            "targets": targets,
            "path": self.path.as_str(),
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name| value.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            variable: Label::parse(text("variable")?).ok()?,
            operator: Comparison::parse(&text("operator")?)?,
            targets: value
                .get("targets")?
                .as_array()?
                .iter()
                .map(ConditionTarget::from_json)
                .collect::<Option<_>>()?,
            path: Tag::parse(text("path")?).ok()?,
        })
    }
}

impl ConditionTarget {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(value) => number(*value).unwrap_or(Value::Null),
            Self::Bool(value) => json!(value),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(value) => value.as_f64().map(Self::Number),
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}
