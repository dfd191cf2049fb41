//! JSON and dependencies.

use prost_types::{Struct, Value as Message, value::Kind};
use serde_json::{Map, Value};

use crate::{
    domain::{
        dependency::{Condition, ConditionTarget, Group, Node},
        json::Instruction,
        shorthand,
    },
    proto::v1::{self, dependency_node},
};

pub fn instructions(list: Vec<Instruction>) -> Vec<Struct> {
    list.into_iter()
        .map(|Instruction(members)| object(members))
        .collect()
}

pub fn object(members: Map<String, Value>) -> Struct {
    let members = members.into_iter();
    Struct {
        fields: members.map(|(key, member)| (key, value(member))).collect(),
    }
}

pub fn value(json: Value) -> Message {
    match json {
        Value::Null => Kind::NullValue(0).into(),
        Value::Bool(value) => value.into(),
        Value::Number(number) => number.as_f64().unwrap_or_default().into(),
        Value::String(text) => text.into(),
        Value::Array(values) => values.into_iter().map(value).collect::<Vec<_>>().into(),
        Value::Object(members) => object(members).fields.into(),
    }
}

/// Dependencies, and their shorthand if they have one.
pub fn dependencies(group: Option<Group>) -> (Option<v1::DependencyGroup>, Option<String>) {
    let shorthand = group.as_ref().and_then(shorthand::render);
    (group.map(dependency_group), shorthand)
}

pub fn dependency_group(group: Group) -> v1::DependencyGroup {
    v1::DependencyGroup {
        operator: group.operator as i32,
        nodes: group.nodes.into_iter().map(dependency_node).collect(),
    }
}

fn dependency_node(node: Node) -> v1::DependencyNode {
    let node = match node {
        Node::Condition(inner) => dependency_node::Node::Condition(condition(inner)),
        Node::Group(inner) => dependency_node::Node::Group(dependency_group(inner)),
    };
    v1::DependencyNode { node: Some(node) }
}

fn condition(condition: Condition) -> v1::Condition {
    v1::Condition {
        variable: condition.variable.into_string(),
        operator: condition.operator.symbol().to_owned(),
        targets: condition.targets.into_iter().map(target).collect(),
        path: condition.path.into_string(),
    }
}

/// A target of a condition.
pub fn target(target: ConditionTarget) -> Message {
    match target {
        ConditionTarget::Text(text) => text.into(),
        ConditionTarget::Number(number) => number.into(),
        ConditionTarget::Bool(value) => value.into(),
    }
}
