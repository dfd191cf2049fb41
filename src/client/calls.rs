//! The calls that commands make: each request with its service and method.

use tonic::{Request, Response, Status, transport::Channel};

use super::MAX_MESSAGE_BYTES;
use crate::proto::v1::{
    self, analysis_service_client::AnalysisServiceClient,
    change_service_client::ChangeServiceClient, revision_service_client::RevisionServiceClient,
    step_service_client::StepServiceClient, task_service_client::TaskServiceClient,
    translation_service_client::TranslationServiceClient,
};

/// A request of a call.
pub(crate) trait Call: Clone {
    /// What the server answers.
    type Answer;

    /// Sends it once.
    async fn send(
        channel: Channel,
        request: Request<Self>,
    ) -> Result<Response<Self::Answer>, Status>;
}

/// A request for a page of a list.
pub(crate) trait PageCall: Call {
    /// Asks for the page that a token stands for.
    fn set_page_token(&mut self, token: String);

    /// The token of the next page; empty on the last page.
    fn next_page_token(page: &Self::Answer) -> &str;
}

macro_rules! calls {
    ($($service:ident { $($request:ident, $method:ident, $answer:ident;)+ })+) => {$($(
        impl Call for v1::$request {
            type Answer = v1::$answer;

            async fn send(
                channel: Channel,
                request: Request<Self>,
            ) -> Result<Response<Self::Answer>, Status> {
                let client = $service::new(channel);
                let mut client = client.max_decoding_message_size(MAX_MESSAGE_BYTES);
                client.$method(request).await
            }
        }
    )+)+};
}

calls! {
    TaskServiceClient {
        DeleteTaskRequest, delete_task, DeleteTaskResponse;
        ExportTaskRequest, export_task, ExportTaskResponse;
        GetTaskRequest, get_task, GetTaskResponse;
        ImportTaskRequest, import_task, ImportTaskResponse;
        ListTasksRequest, list_tasks, ListTasksResponse;
    }
    StepServiceClient {
        GetStepRequest, get_step, GetStepResponse;
    }
    AnalysisServiceClient {
        ListReferencesRequest, list_references, ListReferencesResponse;
        PreviewTaskRequest, preview_task, PreviewTaskResponse;
        ValidateTaskRequest, validate_task, ValidateTaskResponse;
    }
    RevisionServiceClient {
        CreateRevisionRequest, create_revision, CreateRevisionResponse;
        DeleteRevisionRequest, delete_revision, DeleteRevisionResponse;
        GetRevisionRequest, get_revision, GetRevisionResponse;
        ListDeletedTasksRequest, list_deleted_tasks, ListDeletedTasksResponse;
        ListRevisionsRequest, list_revisions, ListRevisionsResponse;
        RestoreRevisionRequest, restore_revision, RestoreRevisionResponse;
        SetRevisionAliasRequest, set_revision_alias, SetRevisionAliasResponse;
    }
    ChangeServiceClient {
        ListChangesRequest, list_changes, ListChangesResponse;
    }
    TranslationServiceClient {
        ListTranslationWorkRequest, list_translation_work, ListTranslationWorkResponse;
        WriteTranslationsRequest, write_translations, WriteTranslationsResponse;
    }
}

macro_rules! page_calls {
    ($($request:ident)+) => {$(
        impl PageCall for v1::$request {
            fn set_page_token(&mut self, token: String) {
                self.page_token = token;
            }

            fn next_page_token(page: &Self::Answer) -> &str {
                &page.next_page_token
            }
        }
    )+};
}

page_calls! {
    ListDeletedTasksRequest ListReferencesRequest ListRevisionsRequest ListTasksRequest
    PreviewTaskRequest ValidateTaskRequest
}
