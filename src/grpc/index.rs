//! IndexService: decode, one store call, encode.

use std::collections::HashSet;

use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{
    Services,
    call::respond,
    decode::{self, Field, REQUIRED, field},
    encode, page,
};
use crate::{
    domain::{
        Result,
        ids::TaskId,
        index_work::{Acknowledgement, MAX_ACKNOWLEDGED_ITEMS},
        page::Page,
        violation::Reason,
    },
    proto::v1::{
        AcknowledgeIndexedRequest, AcknowledgeIndexedResponse, IndexedItem, ListIndexWorkRequest,
        ListIndexWorkResponse, index_service_server::IndexService,
    },
};

#[tonic::async_trait]
impl IndexService for Services {
    async fn list_index_work(
        &self,
        request: Request<ListIndexWorkRequest>,
    ) -> Result<Response<ListIndexWorkResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListIndexWork", &request);
            let ListIndexWorkRequest {
                page_size,
                page_token,
            } = request;
            let (after, size) =
                decode::all(|violations| page::start(&tokens, page_size, &page_token, violations))?;
            let Page { items, more } = self.account(&caller).list_index_work(after, size).await?;
            let (work, next_page_token) = page::encode(
                Page { items, more },
                &tokens,
                |(cursor, _)| *cursor,
                |(_, work)| encode::index_work(work),
            );
            Ok(ListIndexWorkResponse {
                work,
                next_page_token,
            })
        })
        .await
    }

    async fn acknowledge_indexed(
        &self,
        request: Request<AcknowledgeIndexedRequest>,
    ) -> Result<Response<AcknowledgeIndexedResponse>, Status> {
        respond(request, async |caller, request| {
            let AcknowledgeIndexedRequest { items } = request;
            let items = decode::all(|violations| {
                let mut list = Field::root("items", violations);
                if items.is_empty() {
                    list.refuse(Reason::FieldRequired, "needs at least one item");
                }
                if !list.at_most(items.len(), MAX_ACKNOWLEDGED_ITEMS) {
                    return None;
                }
                let mut known = HashSet::new();
                let all = items.into_iter().enumerate();
                let decoded = all.filter_map(|(index, item)| {
                    acknowledgement(item, list.index(index), &mut known)
                });
                Some(decoded.collect())
            })?;
            let outcomes = self.account(&caller).acknowledge_indexed(items).await?;
            let result = |outcome| encode::index_result(outcome).into();
            Ok(AcknowledgeIndexedResponse {
                results: outcomes.into_iter().map(result).collect(),
            })
        })
        .await
    }
}

/// An item of an acknowledgement. `known` has the ids of those before.
fn acknowledgement(
    item: IndexedItem,
    mut field: Field<'_>,
    known: &mut HashSet<Uuid>,
) -> Option<Acknowledgement> {
    let IndexedItem {
        guid,
        etag,
        indexed,
        index_version,
        info,
    } = item;
    // A task or a step.
    let parse = |text: &str| TaskId::parse(text).map(|TaskId(guid)| guid);
    let guid = field::guid(&guid, parse, field.field("guid"));
    if let Some(guid) = guid
        && !known.insert(guid)
    {
        let description = "names the same task or step as an item before";
        field
            .field("guid")
            .refuse(Reason::FieldInvalid, description);
    }
    if etag.is_empty() {
        field.field("etag").refuse(Reason::FieldRequired, REQUIRED);
    }
    field::refuse_nul(&etag, field.field("etag"));
    let info = field::text(info, field.field("info"));
    Some(Acknowledgement {
        guid: guid?,
        etag,
        indexed: indexed.unwrap_or(true),
        index_version,
        info: info?,
    })
}
