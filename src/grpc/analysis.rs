//! AnalysisService: decode, one store call, encode.

use tonic::{Request, Response};

use super::{Services, call::Answer, previews, references, validations};
use crate::{
    domain::{analysis::Reference, validation::Rule},
    messages::{decode, encode},
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
    ) -> Answer<PreviewTaskResponse> {
        let (call, request) = self.call(request)?;
        let tokens = call.page_tokens("PreviewTask", &request);
        let (preview, explain) =
            decode::all(|violations| previews::preview_task(request, &tokens, violations))?;
        let page = call.account.preview_task(preview).await?;
        Ok(Response::new(previews::preview(&page, &tokens, explain)))
    }

    async fn validate_task(
        &self,
        request: Request<ValidateTaskRequest>,
    ) -> Answer<ValidateTaskResponse> {
        let (call, request) = self.call(request)?;
        let tokens = call.page_tokens("ValidateTask", &request);
        let validation =
            decode::all(|violations| validations::validate_task(request, &tokens, violations))?;
        let page = call.account.validate_task(validation).await?;
        Ok(Response::new(validations::validation(page, &tokens)))
    }

    async fn list_findings(
        &self,
        request: Request<ListFindingsRequest>,
    ) -> Answer<ListFindingsResponse> {
        let (call, request) = self.call(request)?;
        let tokens = call.page_tokens("ListFindings", &request);
        let listing =
            decode::all(|violations| validations::list_findings(request, &tokens, violations))?;
        let page = call.account.list_findings(listing).await?;
        Ok(Response::new(validations::findings(page, &tokens)))
    }

    async fn list_rules(&self, request: Request<ListRulesRequest>) -> Answer<ListRulesResponse> {
        let (_, ListRulesRequest {}) = self.call(request)?;
        Ok(Response::new(ListRulesResponse {
            rules: Rule::ALL.iter().copied().map(encode::rule).collect(),
        }))
    }

    async fn list_references(
        &self,
        request: Request<ListReferencesRequest>,
    ) -> Answer<ListReferencesResponse> {
        let (call, request) = self.call(request)?;
        let tokens = call.page_tokens("ListReferences", &request);
        let (filter, (after, size)) = decode::all(|violations| {
            let (size, token) = (request.page_size, &request.page_token);
            let filter =
                references::filter(&request.task, request.variable, request.answer, violations);
            filter.zip(tokens.start(size, token, violations))
        })?;
        let found = call.account.list_references(&filter, after, size).await?;
        let (references, next_page_token) = tokens.found(
            found.items,
            found.next,
            Reference::cursor,
            references::reference,
        );
        Ok(Response::new(ListReferencesResponse {
            references,
            next_page_token,
        }))
    }
}
