//! JSON and dependencies.

use prost_types::{ListValue, Struct, Value as Message, value::Kind};
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
    let kind = match json {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(value),
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(value).collect(),
        }),
        Value::Object(members) => Kind::StructValue(object(members)),
    };
    Message { kind: Some(kind) }
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
    let kind = match target {
        ConditionTarget::Text(text) => Kind::StringValue(text),
        ConditionTarget::Number(number) => Kind::NumberValue(number),
        ConditionTarget::Bool(value) => Kind::BoolValue(value),
    };
    Message { kind: Some(kind) }
}
