//! AnalysisService: decode, one store call, encode.

use super::{call::Call, previews, references, validations};
use crate::{
    domain::{Result, analysis::Reference, validation::Rule},
    messages::{decode, encode},
    proto::v1::{
        ListFindingsRequest, ListFindingsResponse, ListReferencesRequest, ListReferencesResponse,
        ListRulesRequest, ListRulesResponse, PreviewTaskRequest, PreviewTaskResponse,
        ValidateTaskRequest, ValidateTaskResponse, preview_task_request, validate_task_request,
    },
};

impl Call {
    pub async fn preview_task(
        self,
        mut request: PreviewTaskRequest,
    ) -> Result<PreviewTaskResponse> {
        if let Some(preview_task_request::Source::Guid(guid)) = &mut request.source {
            guid.make_ascii_lowercase();
        }
        let tokens = self.page_tokens(&request);
        let (preview, explain) =
            decode::all(|violations| previews::preview_task(request, &tokens, violations))?;
        let page = self.account.preview_task(preview).await?;
        Ok(previews::preview(&page, &tokens, explain))
    }

    pub async fn validate_task(
        self,
        mut request: ValidateTaskRequest,
    ) -> Result<ValidateTaskResponse> {
        if let Some(validate_task_request::Source::Guid(guid)) = &mut request.source {
            guid.make_ascii_lowercase();
        }
        let tokens = self.page_tokens(&request);
        let validation =
            decode::all(|violations| validations::validate_task(request, &tokens, violations))?;
        let page = self.account.validate_task(validation).await?;
        Ok(validations::validation(page, &tokens))
    }

    pub async fn list_findings(self, request: ListFindingsRequest) -> Result<ListFindingsResponse> {
        let tokens = self.page_tokens(&request);
        let listing =
            decode::all(|violations| validations::list_findings(request, &tokens, violations))?;
        let page = self.account.list_findings(listing).await?;
        Ok(validations::findings(page, &tokens))
    }

    pub async fn list_rules(self, _: ListRulesRequest) -> Result<ListRulesResponse> {
        Ok(ListRulesResponse {
            rules: Rule::ALL.iter().copied().map(encode::rule).collect(),
        })
    }

    pub async fn list_references(
        self,
        request: ListReferencesRequest,
    ) -> Result<ListReferencesResponse> {
        let tokens = self.page_tokens(&request);
        let (filter, (after, size)) = decode::all(|violations| {
            let (size, token) = (request.page_size, &request.page_token);
            let filter =
                references::filter(&request.task, request.variable, request.answer, violations);
            filter.zip(tokens.start(size, token, violations))
        })?;
        let found = self.account.list_references(&filter, after, size).await?;
        let (references, next_page_token) = tokens.found(
            found.items,
            found.next,
            Reference::cursor,
            references::reference,
        );
        Ok(ListReferencesResponse {
            references,
            next_page_token,
        })
    }
}
