//! A fake translation service.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use expertise::proto::v1::{
    AutomaticTranslation, ListTranslationWorkRequest, ListTranslationWorkResponse,
    TranslationResult, TranslationWork, WriteTranslationsRequest, WriteTranslationsResponse,
    translation_service_server::{TranslationService, TranslationServiceServer},
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, metadata::MetadataMap, transport::Server};

/// The work, the answers and the calls of the service.
#[derive(Default)]
pub struct State {
    /// The work list, page by page.
    pub pages: Vec<Vec<TranslationWork>>,
    /// The results of items; others are written.
    pub results: HashMap<String, TranslationResult>,
    /// Items that make their whole request fail.
    pub refused: HashMap<String, Status>,
    /// Answers to the next calls, the last one first.
    pub errors: Vec<Status>,
    /// What was written.
    pub written: Vec<AutomaticTranslation>,
    /// The metadata of the calls.
    pub metadata: Vec<MetadataMap>,
    /// The list requests.
    pub lists: Vec<ListTranslationWorkRequest>,
}

/// A running service.
pub struct FakeService {
    /// Where it is.
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl FakeService {
    /// Starts a service on its own port.
    pub async fn start(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(state));
        let service = TranslationServiceServer::new(Answers(state.clone()));
        tokio::spawn(
            Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Self { url, state }
    }

    /// A service with one page of work.
    pub async fn with(work: Vec<TranslationWork>) -> Self {
        Self::start(State {
            pages: vec![work],
            ..State::default()
        })
        .await
    }

    /// The state so far.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// The sorted guids of the written resources.
    pub fn written(&self) -> Vec<String> {
        let state = self.state();
        let mut guids: Vec<_> = state.written.iter().map(|item| item.guid.clone()).collect();
        guids.sort();
        guids
    }
}

struct Answers(Arc<Mutex<State>>);

impl Answers {
    fn call(&self, metadata: &MetadataMap) -> Result<MutexGuard<'_, State>, Status> {
        let mut state = self.0.lock().expect("no panic");
        state.metadata.push(metadata.clone());
        match state.errors.pop() {
            Some(status) => Err(status),
            None => Ok(state),
        }
    }
}

#[tonic::async_trait]
impl TranslationService for Answers {
    async fn list_translation_work(
        &self,
        request: Request<ListTranslationWorkRequest>,
    ) -> Result<Response<ListTranslationWorkResponse>, Status> {
        let mut state = self.call(request.metadata())?;
        let request = request.into_inner();
        let at: usize = request.page_token.parse().unwrap_or(0);
        state.lists.push(request);
        let next = at + 1;
        Ok(Response::new(ListTranslationWorkResponse {
            work: state.pages.get(at).cloned().unwrap_or_default(),
            next_page_token: if next < state.pages.len() {
                next.to_string()
            } else {
                String::new()
            },
        }))
    }

    async fn write_translations(
        &self,
        request: Request<WriteTranslationsRequest>,
    ) -> Result<Response<WriteTranslationsResponse>, Status> {
        let mut state = self.call(request.metadata())?;
        let translations = request.into_inner().translations;
        let refusal = translations
            .iter()
            .find_map(|item| state.refused.get(&item.guid));
        if let Some(status) = refusal {
            return Err(status.clone());
        }
        let mut results = Vec::new();
        for item in translations {
            let result = state.results.get(&item.guid).copied();
            let result = result.unwrap_or(TranslationResult::Written);
            results.push(result.into());
            if result == TranslationResult::Written {
                state.written.push(item);
            }
        }
        Ok(Response::new(WriteTranslationsResponse {
            results,
            ignored_paths: Vec::new(),
        }))
    }
}
