//! AnalysisService: decode, one store call, encode.

use tonic::{Request, Response, Status};

use super::{Services, call::respond, decode, encode, page, references};
use crate::{
    domain::{analysis::Reference, validation::Rule},
    proto::v1::{
        ListFindingsRequest, ListFindingsResponse, ListReferencesRequest, ListReferencesResponse,
        ListRulesRequest, ListRulesResponse, PreviewTaskRequest, PreviewTaskResponse,
        ValidateTaskRequest, ValidateTaskResponse, analysis_service_server::AnalysisService,
    },
};

#[tonic::async_trait]
impl AnalysisService for Services {
    async fn preview_task(
        &self,
        request: Request<PreviewTaskRequest>,
    ) -> Result<Response<PreviewTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "PreviewTask", &request);
            let (call, explain) = decode::all(|violations| {
                decode::preview::preview_task(request, &tokens, violations)
            })?;
            let account = self.account(&caller);
            let page = account.preview_task(call).await?;
            Ok(encode::preview(&page, &tokens, explain))
        })
        .await
    }

    async fn validate_task(
        &self,
        request: Request<ValidateTaskRequest>,
    ) -> Result<Response<ValidateTaskResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ValidateTask", &request);
            let call = decode::all(|violations| {
                decode::validation::validate_task(request, &tokens, violations)
            })?;
            let account = self.account(&caller);
            let page = account.validate_task(call).await?;
            Ok(encode::validation(page, &tokens))
        })
        .await
    }

    async fn list_findings(
        &self,
        request: Request<ListFindingsRequest>,
    ) -> Result<Response<ListFindingsResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListFindings", &request);
            let call = decode::all(|violations| {
                decode::validation::list_findings(request, &tokens, violations)
            })?;
            let account = self.account(&caller);
            let page = account.list_findings(call).await?;
            Ok(encode::findings(page, &tokens))
        })
        .await
    }

    async fn list_rules(
        &self,
        request: Request<ListRulesRequest>,
    ) -> Result<Response<ListRulesResponse>, Status> {
        respond(request, async |_, request| {
            let ListRulesRequest {} = request;
            Ok(ListRulesResponse {
                rules: Rule::ALL.iter().copied().map(encode::rule).collect(),
            })
        })
        .await
    }

    async fn list_references(
        &self,
        request: Request<ListReferencesRequest>,
    ) -> Result<Response<ListReferencesResponse>, Status> {
        respond(request, async |caller, request| {
            let tokens = self.page_tokens(&caller, "ListReferences", &request);
            let ListReferencesRequest {
                task,
                variable,
                answer,
                page_size,
                page_token,
            } = request;
            let (filter, after, size) = decode::all(|violations| {
                let filter = references::filter(&task, variable, answer, violations);
                let (after, size) = page::start(&tokens, page_size, &page_token, violations)?;
                Some((filter?, after, size))
            })?;
            let account = self.account(&caller);
            let found = account.list_references(&filter, after, size).await?;
            let (references, next_page_token) = page::encode_found(
                found.items,
                found.next,
                &tokens,
                Reference::cursor,
                encode::reference,
            );
            Ok(ListReferencesResponse {
                references,
                next_page_token,
            })
        })
        .await
    }
}
