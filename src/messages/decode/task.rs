//! Tasks.

use super::{
    Field, dependencies,
    field::{self, non_blank_text},
    translations,
};
use crate::{
    domain::task::{AccessLevel, NewTask, TaskContent},
    proto::v1,
};

pub fn new(message: v1::Task, mut at: Field<'_>) -> Option<NewTask> {
    decode(message, true, &mut at)
}

/// Notes the violations of the sent fields. No field is required.
pub fn check(message: v1::Task, mut at: Field<'_>) {
    decode(message, false, &mut at);
}

/// The task. Unless fields are `required`, it is `None` without a name.
fn decode(message: v1::Task, required: bool, at: &mut Field<'_>) -> Option<NewTask> {
    let mut content = TaskContent {
        dependencies: dependencies::with_shorthand(
            message.dependencies,
            message.dependency_shorthand,
            at,
        ),
        published: at
            .field("published")
            .optional(message.published, field::published)
            .unwrap_or_default(),
        roles: match message.roles.is_empty() {
            true => AccessLevel::ALL.to_vec(),
            false => roles(message.roles, at.field("roles")),
        },
        external_id: None,
        translations: translations::all(message.translations, at.field("translations")),
    };
    let (mut name, mut product) = (None, None);
    if required || !message.name.is_empty() {
        name = non_blank_text(message.name, at.field("name"));
    }
    if required {
        product = field::required_product(message.product_id, at.field("product_id"));
    }
    let external_id = message.external_id.and_then(field::sent_text);
    content.external_id = at
        .field("external_id")
        .optional(external_id, field::external_id);
    Some(NewTask {
        name: name?,
        product: product?,
        content,
    })
}

/// Access levels without duplicates, in their order.
fn roles(numbers: Vec<i32>, mut field: Field<'_>) -> Vec<AccessLevel> {
    let mut levels = Vec::with_capacity(AccessLevel::ALL.len());
    for (index, number) in numbers.into_iter().enumerate() {
        let level = access_level(number, field.index(index));
        levels.extend(level.filter(|level| !levels.contains(level)));
    }
    levels
}

pub fn access_level(number: i32, mut field: Field<'_>) -> Option<AccessLevel> {
    let known = AccessLevel::from_repr;
    field.enum_value(number, "an access level", "AccessLevel", known)
}
