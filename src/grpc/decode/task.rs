//! Tasks.

use std::collections::BTreeMap;

use super::{
    dependencies, expected, guid, line, product, published, sent_list, sent_text, text_violation,
    translations,
};
use crate::{
    domain::{
        etag::Expected,
        ids::TaskId,
        task::{AccessLevel, NewTask, Published, TaskPatch},
        text::Name,
        violation::{Path, Reason, Violations},
    },
    grpc::{ignored::Ignored, mask::Mask},
    proto::v1,
};

/// A new task; `at` is where it stands in the request.
pub fn new(
    message: v1::Task,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut Ignored,
) -> Option<NewTask> {
    note_system_fields(&message, ignored);
    ignored.note([
        ("guid", !message.guid.is_empty()),
        ("etag", !message.etag.is_empty()),
    ]);
    let Honored {
        name,
        product_id,
        dependencies,
        dependency_shorthand,
        published: shown,
        roles: levels,
        translations: rows,
    } = honored(message);
    let name = line(name, &at.field("name"), faults);
    let product = product(product_id, &at.field("product_id"), faults);
    let dependencies = dependencies::with_shorthand(dependencies, dependency_shorthand, at, faults);
    let published = shown.map_or(Some(Published::default()), |shown| {
        published(shown, &at.field("published"), faults)
    });
    let roles = sent_list(levels).map_or_else(
        || AccessLevel::ALL.to_vec(),
        |levels| roles(levels, &at.field("roles"), faults),
    );
    let translations = translations::all(rows, &at.field("translations"), faults);
    Some(NewTask {
        name: name?,
        product: product?,
        dependencies,
        published: published?,
        roles,
        translations,
    })
}

/// Which task an update is for, in which version, and what it says.
pub struct Update {
    /// The task.
    pub guid: TaskId,
    /// Its version.
    pub expected: Expected,
    /// What it says; what is wrong with it so far is in there.
    pub patch: TaskPatch,
}

/// An update of a task, with what is wrong with it so far; `None`, and the
/// faults stay where they are, when nobody knows of which task. `at` is where it
/// stands in the request.
pub fn update(
    message: v1::Task,
    mask: &Mask,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut Ignored,
) -> Option<Update> {
    note_system_fields(&message, ignored);
    ignored.note([
        ("product_id", message.product_id.is_some()),
        (
            "dependency_shorthand",
            message.dependency_shorthand.is_some(),
        ),
    ]);
    let id = guid(&message.guid, TaskId::parse, &at.field("guid"), faults);
    let expected = expected(&message.etag, &at.field("etag"), faults);
    let mut patch = patch(honored(message), mask, at, faults);
    let guid = id?;
    patch.faults = std::mem::take(faults);
    Some(Update {
        guid,
        expected,
        patch,
    })
}

fn patch(fields: Honored, mask: &Mask, at: &Path<'_>, faults: &mut Violations) -> TaskPatch {
    let Honored {
        name,
        product_id: _,
        dependencies,
        dependency_shorthand: _,
        published: shown,
        roles: levels,
        translations: rows,
    } = fields;
    let path = at.field("name");
    let name_sent = !name.is_empty() || mask.names("name");
    TaskPatch {
        name: mask.edit("name", sent_text(name), |name| {
            Some(Name::parse(name).map_err(|fault| text_violation(fault, &path)))
        }),
        name_sent,
        dependencies: mask.edit("dependencies", dependencies, |group| {
            dependencies::group(group, &at.field("dependencies"), faults)
        }),
        published: mask.edit("published", shown, |shown| {
            published(shown, &at.field("published"), faults)
        }),
        roles: mask.edit("roles", sent_list(levels), |levels| {
            Some(roles(levels, &at.field("roles"), faults))
        }),
        translations: translations::edits(rows, mask.rows(), &at.field("translations"), faults),
        faults: Violations::new(),
    }
}

/// The fields of a task that a caller may set.
struct Honored {
    name: String,
    product_id: Option<i64>,
    dependencies: Option<v1::DependencyGroup>,
    dependency_shorthand: Option<String>,
    published: Option<i32>,
    roles: Vec<i32>,
    translations: BTreeMap<String, v1::TaskTranslation>,
}

fn honored(message: v1::Task) -> Honored {
    let v1::Task {
        guid: _,
        name,
        product_id,
        dependencies,
        dependency_shorthand,
        published,
        roles,
        translations,
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
    } = message;
    Honored {
        name,
        product_id,
        dependencies,
        dependency_shorthand,
        published,
        roles,
        translations,
    }
}

/// Lists the fields that the system sets and this message carries.
fn note_system_fields(message: &v1::Task, ignored: &mut Ignored) {
    ignored.note([
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
fn roles(numbers: Vec<i32>, path: &Path<'_>, faults: &mut Violations) -> Vec<AccessLevel> {
    let mut levels = Vec::with_capacity(AccessLevel::ALL.len());
    for (index, number) in numbers.into_iter().enumerate() {
        match access_level(number, &path.index(index), faults) {
            Some(level) if !levels.contains(&level) => levels.push(level),
            Some(_) | None => {}
        }
    }
    levels
}

/// The access level of a number.
pub fn access_level(number: i32, path: &Path<'_>, faults: &mut Violations) -> Option<AccessLevel> {
    let level = AccessLevel::from_number(number);
    if level.is_none() {
        faults.add(path, Reason::FieldInvalid, "is not an access level");
    }
    level
}
