//! Tasks.

use super::{json, timestamp};
use crate::{
    domain::{
        external_id::ExternalId,
        task::{ManagedBy, Task},
        translation::TaskTranslation,
    },
    proto::v1,
};

pub fn task(task: Task) -> v1::Task {
    let etag = task.etag().into_string();
    let (content, row, index) = (task.content, task.row_version, task.index);
    let (dependencies, dependency_shorthand) = json::dependencies(content.dependencies);
    let (kind, parent_guid, idx) = match task.managed {
        Some(ManagedBy { parent, idx }) => (v1::TaskType::Linked, parent.to_string(), idx),
        None => (v1::TaskType::Standard, String::new(), 0),
    };
    let translations = content.translations.into_iter();
    v1::Task {
        guid: task.guid.to_string(),
        name: task.name.into_string(),
        product_id: Some(task.product.get()),
        dependencies,
        dependency_shorthand,
        published: Some(content.published.get()),
        roles: content.roles.into_iter().map(i32::from).collect(),
        translations: translations
            .map(|(language, row)| (language.to_string(), translation(row)))
            .collect(),
        r#type: Some(kind.into()),
        steps: task.steps.iter().map(ToString::to_string).collect(),
        etag,
        account_id: task.account.into_string(),
        parent_guid,
        idx,
        dirty_record: row.dirty,
        mvn_indexed: index.indexed,
        mvn_version: index.version,
        mvn_info: index.info,
        mvn_ts: index.at.map(timestamp),
        created_ts: Some(timestamp(row.created)),
        modified_ts: Some(timestamp(row.modified)),
        external_id: content.external_id.map(ExternalId::into_string),
    }
}

fn translation(row: TaskTranslation) -> v1::TaskTranslation {
    v1::TaskTranslation {
        name: row.name.map(|name| name.into_string()),
        locked: Some(row.locked),
    }
}
