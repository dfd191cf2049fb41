//! IndexService: decode, one store call, encode.

use std::collections::HashSet;

use uuid::Uuid;

use super::call::Call;
use crate::{
    domain::{
        Result,
        ids::TaskId,
        index_work::{Acknowledgement, IndexWork as Work, MAX_ACKNOWLEDGED_ITEMS},
        violation::Reason,
    },
    messages::decode::{self, Field, REQUIRED, field},
    proto::v1::{
        AcknowledgeIndexedRequest, AcknowledgeIndexedResponse, IndexWork, IndexedItem,
        ListIndexWorkRequest, ListIndexWorkResponse,
    },
};

impl Call {
    pub async fn list_index_work(
        self,
        request: ListIndexWorkRequest,
    ) -> Result<ListIndexWorkResponse> {
        let tokens = self.page_tokens(&request);
        let (after, size) = decode::all(|violations| {
            tokens.start(request.page_size, &request.page_token, violations)
        })?;
        let page = self.account.list_index_work(after, size).await?;
        let encode = |(_, work)| index_work(work);
        let (work, next_page_token) = tokens.page(page, |(cursor, _)| *cursor, encode);
        Ok(ListIndexWorkResponse {
            work,
            next_page_token,
        })
    }

    pub async fn acknowledge_indexed(
        self,
        request: AcknowledgeIndexedRequest,
    ) -> Result<AcknowledgeIndexedResponse> {
        let items = decode::all(|violations| {
            let mut list = violations.at("items");
            list.not_empty(&request.items, "needs at least one item");
            let mut known = HashSet::new();
            list.elements(request.items, MAX_ACKNOWLEDGED_ITEMS, |item, field| {
                acknowledgement(item, field, &mut known)
            })
        })?;
        let outcomes = self.account.acknowledge_indexed(items).await?;
        let result = |outcome| outcome as i32;
        Ok(AcknowledgeIndexedResponse {
            results: outcomes.into_iter().map(result).collect(),
        })
    }
}

/// An item of an acknowledgement. `known` has the ids of earlier items.
fn acknowledgement(
    item: IndexedItem,
    mut field: Field<'_>,
    known: &mut HashSet<Uuid>,
) -> Option<Acknowledgement> {
    // A task or a step.
    let parse = |text: &str| TaskId::parse(text).map(|TaskId(guid)| guid);
    let guid = field::guid(&item.guid, parse, field.field("guid"));
    if guid.is_some_and(|guid| !known.insert(guid)) {
        let description = "names the same task or step as an earlier item";
        field
            .field("guid")
            .refuse(Reason::FieldInvalid, description);
    }
    if item.etag.is_empty() {
        field.field("etag").refuse(Reason::FieldRequired, REQUIRED);
    }
    field::refuse_nul(&item.etag, field.field("etag"));
    let info = field::text(item.info, field.field("info"));
    Some(Acknowledgement {
        guid: guid?,
        etag: item.etag,
        indexed: item.indexed.unwrap_or(true),
        index_version: item.index_version,
        info: info?,
    })
}

/// A task or step that an index must read or delete.
fn index_work(work: Work) -> IndexWork {
    IndexWork {
        guid: work.guid.to_string(),
        kind: work.kind as i32,
        task: work.task.to_string(),
        state: work.state as i32,
        etag: work.etag,
    }
}
