//! Tasks.

use std::sync::LazyLock;

use super::{
    Field, dependencies,
    field::{self, sent_list, sent_text},
    translations,
};
use crate::{
    domain::{
        external_id::ExternalId,
        import::AbsentFields,
        patch::Edit,
        task::{AccessLevel, NewTask, TaskPatch},
        text::Name,
        violation::{Reason, Violations},
    },
    proto::v1,
};

pub fn new(message: v1::Task, mut at: Field<'_>) -> Option<NewTask> {
    let patch = patch(message, AbsentFields::Keep, &mut at);
    at.check(|path, violations| NewTask::from_patch(patch, path, violations))
}

/// The fields that were sent, and those that are reset because they were not.
pub fn patch(message: v1::Task, absent: AbsentFields, at: &mut Field<'_>) -> TaskPatch {
    let v1::Task {
        name,
        dependencies,
        dependency_shorthand,
        published,
        roles,
        translations,
        product_id,
        guid: _,
        r#type: _,
        steps: _,
        etag: _,
        account_id: _,
        parent_guid: _,
        idx: _,
        dirty_record: _,
        mvn_indexed: _,
        mvn_version: _,
        mvn_info: _,
        mvn_ts: _,
        created_ts: _,
        modified_ts: _,
        external_id,
    } = message;
    TaskPatch {
        product: absent.edit(at, "product_id", product_id, |id, field| {
            Some(field.check_product(id))
        }),
        external_id: absent.edit(
            at,
            "external_id",
            external_id.and_then(sent_text),
            |id, field| Some(field.check_text(ExternalId::parse(id))),
        ),
        name: absent.edit(at, "name", sent_text(name), |name, field| {
            Some(field.check_text(Name::parse(name)))
        }),
        dependencies: dependencies::edit(absent, dependencies, dependency_shorthand, at),
        published: absent.edit(at, "published", published, field::published),
        roles: match absent.edit(at, "roles", sent_list(roles), self::roles) {
            Edit::Clear if absent == AbsentFields::Reset => Edit::Set(AccessLevel::ALL.to_vec()),
            edit => edit,
        },
        translations: {
            let at = at.field("translations");
            translations::edits(translations, absent, at)
        },
        violations: Violations::new(),
    }
}

/// Access levels without duplicates, in their order.
fn roles(numbers: Vec<i32>, mut field: Field<'_>) -> Option<Vec<AccessLevel>> {
    let mut levels = Vec::with_capacity(AccessLevel::ALL.len());
    for (index, number) in numbers.into_iter().enumerate() {
        match access_level(number, field.index(index)) {
            Some(level) if !levels.contains(&level) => levels.push(level),
            Some(_) | None => {}
        }
    }
    Some(levels)
}

/// The access level of a number.
pub fn access_level(number: i32, mut field: Field<'_>) -> Option<AccessLevel> {
    let level = AccessLevel::from_number(number);
    if level.is_none() {
        field.refuse(Reason::FieldInvalid, ACCESS_LEVELS.as_str());
    }
    level
}

/// The description of a number that is no access level: it lists those that are.
static ACCESS_LEVELS: LazyLock<String> = LazyLock::new(|| {
    let levels = AccessLevel::ALL.map(|level| {
        let number = level.number();
        let name = v1::AccessLevel::try_from(number).map_or("", |level| level.as_str_name());
        (name, number)
    });
    field::not_a_value("an access level", levels)
});
