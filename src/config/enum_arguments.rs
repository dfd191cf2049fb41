//! Enums of the contract as arguments: their values by the last part of their names, in
//! lower case, such as `tech` for `ACCESS_LEVEL_TECH`.

use clap::{ValueEnum, builder::PossibleValue};

use crate::proto::v1::{AbsentSteps, AccessLevel, Severity, TaskType};

impl ValueEnum for AbsentSteps {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Keep, Self::Delete]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        named(self.as_str_name(), "ABSENT_STEPS_")
    }
}

impl ValueEnum for AccessLevel {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::User,
            Self::User2,
            Self::User3,
            Self::Tech,
            Self::Tech2,
            Self::Tech3,
            Self::Expert,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        named(self.as_str_name(), "ACCESS_LEVEL_")
    }
}

impl ValueEnum for Severity {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Info, Self::Warning, Self::Error]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        named(self.as_str_name(), "SEVERITY_")
    }
}

impl ValueEnum for TaskType {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Standard, Self::Linked]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        named(self.as_str_name(), "TASK_TYPE_")
    }
}

fn named(name: &str, prefix: &str) -> Option<PossibleValue> {
    let name = name.strip_prefix(prefix)?;
    Some(PossibleValue::new(name.to_ascii_lowercase()))
}
