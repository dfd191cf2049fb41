//! Tasks.

use std::sync::LazyLock;

use super::{
    Field, Update, dependencies,
    field::{self, expected_etag, guid, sent_list, sent_text},
    translations,
};
use crate::{
    domain::{
        external_id::ExternalId,
        ids::TaskId,
        patch::Edit,
        task::{AccessLevel, NewTask, TaskPatch},
        text::Name,
        violation::{Reason, Violations},
    },
    messages::{
        ignored::Ignored,
        mask::{FieldSelection, Mask, MaskFields, TRANSLATIONS},
    },
    proto::v1,
};

/// The fields of a task, as masks name them.
pub const TASK_FIELDS: MaskFields = MaskFields {
    honored: &[
        "dependencies",
        "external_id",
        "name",
        "published",
        "roles",
        TRANSLATIONS,
    ],
    ignored: &[
        "account_id",
        "created_ts",
        "dependency_shorthand",
        "dirty_record",
        "idx",
        "modified_ts",
        "mvn_indexed",
        "mvn_info",
        "mvn_ts",
        "mvn_version",
        "parent_guid",
        "product_id",
        "steps",
        "type",
    ],
    identifying: &["etag", "guid"],
    translation: &["locked", "name"],
};

pub fn new(message: v1::Task, mut at: Field<'_>, ignored: &mut Ignored) -> Option<NewTask> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("guid", !message.guid.is_empty()),
        ("etag", !message.etag.is_empty()),
    ]);
    let patch = patch(message, &Mask::Document, &mut at);
    at.check(|path, violations| NewTask::from_patch(patch, path, violations))
}

/// An update of a task.
pub fn update(
    message: v1::Task,
    mask: &Mask,
    mut at: Field<'_>,
    ignored: &mut Ignored,
) -> Option<Update<TaskId, TaskPatch>> {
    list_system_fields(&message, ignored);
    ignored.add_sent([
        ("product_id", message.product_id.is_some()),
        (
            "dependency_shorthand",
            message.dependency_shorthand.is_some(),
        ),
    ]);
    let guid = guid(&message.guid, TaskId::parse, at.field("guid"));
    let expected = expected_etag(&message.etag, at.field("etag"));
    let mut patch = patch(message, mask, &mut at);
    let Some(guid) = guid else {
        at.check(|_, violations| {
            patch.name.honored(violations);
            patch.external_id.honored(violations);
        });
        return None;
    };
    patch.violations = at.take_violations();
    Some(Update {
        guid,
        expected,
        patch,
    })
}

/// The fields that a managed task does not have of its own and that were sent or are in the mask.
fn sent_unmanaged_only(message: &v1::Task, mask: &Mask) -> Vec<&'static str> {
    let fields = [
        (
            "external_id",
            message
                .external_id
                .as_ref()
                .is_some_and(|id| !id.is_empty()),
        ),
        ("name", !message.name.is_empty()),
    ];
    let sent = fields
        .into_iter()
        .filter(|(field, sent)| *sent || mask.names(field));
    sent.map(|(field, _)| field).collect()
}

pub fn patch(message: v1::Task, mask: &Mask, at: &mut Field<'_>) -> TaskPatch {
    let unmanaged_only = sent_unmanaged_only(&message, mask);
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
        product: mask.edit(at, "product_id", product_id, |id, field| {
            Some(field.check_product(id))
        }),
        unmanaged_only,
        external_id: mask.edit(
            at,
            "external_id",
            external_id.and_then(sent_text),
            |id, field| Some(field.check_text(ExternalId::parse(id))),
        ),
        name: mask.edit(at, "name", sent_text(name), |name, field| {
            Some(field.check_text(Name::parse(name)))
        }),
        dependencies: dependencies::edit(mask, dependencies, dependency_shorthand, at),
        published: mask.edit(at, "published", published, field::published),
        roles: match mask.edit(at, "roles", sent_list(roles), self::roles) {
            Edit::Clear if *mask == Mask::WholeDocument => Edit::Set(AccessLevel::ALL.to_vec()),
            edit => edit,
        },
        translations: {
            let at = at.field("translations");
            translations::edits(translations, mask.translations(), at)
        },
        violations: Violations::new(),
    }
}

/// Lists the fields that the system sets and that were sent.
fn list_system_fields(message: &v1::Task, ignored: &mut Ignored) {
    ignored.add_sent([
        ("type", message.r#type.is_some()),
        ("steps", !message.steps.is_empty()),
        ("account_id", !message.account_id.is_empty()),
        ("parent_guid", !message.parent_guid.is_empty()),
        ("idx", message.idx != 0),
        ("dirty_record", message.dirty_record),
        ("mvn_indexed", message.mvn_indexed),
        ("mvn_version", message.mvn_version != 0),
        ("mvn_info", !message.mvn_info.is_empty()),
        ("mvn_ts", message.mvn_ts.is_some()),
        ("created_ts", message.created_ts.is_some()),
        ("modified_ts", message.modified_ts.is_some()),
    ]);
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
