//! Tasks.

use super::{json, timestamp};
use crate::{
    domain::{
        etag::Etag,
        external_id::ExternalId,
        row_version::RowVersion,
        task::{IndexState, ManagedBy, Task, TaskContent},
        translation::TaskTranslation,
    },
    proto::v1,
};

pub fn task(task: Task) -> v1::Task {
    let Task {
        guid,
        account,
        name,
        product,
        content:
            TaskContent {
                dependencies,
                published,
                roles,
                external_id,
                translations,
            },
        managed,
        steps,
        numbering: _,
        index,
        row_version,
    } = task;
    let RowVersion {
        version: _,
        dirty,
        created,
        modified,
    } = row_version;
    let IndexState {
        indexed,
        version: indexed_version,
        info,
        at,
    } = index;
    let (dependencies, dependency_shorthand) = json::dependencies(dependencies);
    let (kind, parent_guid, idx) = match managed {
        Some(ManagedBy { parent, idx }) => (v1::TaskType::Linked, parent.to_string(), idx),
        None => (v1::TaskType::Standard, String::new(), 0),
    };
    v1::Task {
        guid: guid.to_string(),
        name: name.into_string(),
        product_id: Some(product.get()),
        dependencies,
        dependency_shorthand,
        published: Some(published.get()),
        roles: roles.into_iter().map(|level| level.number()).collect(),
        translations: translations
            .into_iter()
            .map(|(language, row)| (language.to_string(), translation(row)))
            .collect(),
        r#type: Some(kind.into()),
        steps: steps.iter().map(ToString::to_string).collect(),
        etag: Etag::of(guid.0, &row_version).into_string(),
        account_id: account.into_string(),
        parent_guid,
        idx,
        dirty_record: dirty,
        mvn_indexed: indexed,
        mvn_version: indexed_version,
        mvn_info: info,
        mvn_ts: at.map(timestamp),
        created_ts: Some(timestamp(created)),
        modified_ts: Some(timestamp(modified)),
        external_id: external_id.map(ExternalId::into_string),
    }
}

fn translation(row: TaskTranslation) -> v1::TaskTranslation {
    let TaskTranslation { name, locked } = row;
    v1::TaskTranslation {
        name: name.map(|name| name.into_string()),
        locked: Some(locked),
    }
}
