//! TranslationService: decode, one store call, encode.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use tonic::{Request, Response, Status};

use super::{
    Services,
    call::respond,
    decode::{self, Field, REQUIRED, feedback, field, json},
    encode, page,
};
use crate::{
    domain::{
        Result,
        ids::TaskId,
        translation::{Language, MAX_LANGUAGES},
        translation_work::{
            AutomaticTranslation, MAX_ITEMS_WRITTEN, ResourceId, SourceDigest, TranslationOutcome,
            TranslationWorkFilter,
        },
        violation::{Reason, Violations},
    },
    messages::ignored::Ignored,
    proto::v1::{
        self, ListTranslationWorkRequest, ListTranslationWorkResponse, TranslationResult,
        WriteTranslationsRequest, WriteTranslationsResponse,
        translation_service_server::TranslationService,
    },
};

#[tonic::async_trait]
impl TranslationService for Services {
    async fn list_translation_work(
        &self,
        request: Request<ListTranslationWorkRequest>,
    ) -> Result<Response<ListTranslationWorkResponse>, Status> {
        respond(request, async |caller, request| {
            // The order of the languages does not matter, nor their case.
            let languages = request.languages.iter();
            let languages: BTreeSet<Language> =
                languages.filter_map(|tag| Language::parse(tag)).collect();
            let filters = ListTranslationWorkRequest {
                languages: languages.iter().map(ToString::to_string).collect(),
                ..request.clone()
            };
            let tokens = self.page_tokens(&caller, "ListTranslationWork", &filters);
            let ListTranslationWorkRequest {
                languages,
                task,
                page_size,
                page_token,
            } = request;
            let (filter, after, size) = decode::all(|violations| {
                let languages = sorted_languages(&languages, violations);
                let task = task.and_then(|task| only_task(&task, Field::root("task", violations)));
                let filter = TranslationWorkFilter { languages, task };
                let (after, size) = page::start(&tokens, page_size, &page_token, violations)?;
                Some((filter, after, size))
            })?;
            let account = self.account(&caller);
            let found = account.list_work(&filter, after, size).await?;
            let (work, next_page_token) = page::encode_found(
                found.items,
                found.next,
                &tokens,
                |(_, cursor)| *cursor,
                |(work, _)| encode::work(work),
            );
            Ok(ListTranslationWorkResponse {
                work,
                next_page_token,
            })
        })
        .await
    }

    async fn write_translations(
        &self,
        request: Request<WriteTranslationsRequest>,
    ) -> Result<Response<WriteTranslationsResponse>, Status> {
        respond(request, async |caller, request| {
            let WriteTranslationsRequest { translations } = request;
            let (items, sent) = decode::all(|violations| {
                let mut list = Field::root("translations", violations);
                if translations.is_empty() {
                    list.refuse(Reason::FieldRequired, "needs at least one translation");
                }
                if !list.at_most(translations.len(), MAX_ITEMS_WRITTEN) {
                    return None;
                }
                let sent: Vec<SentTexts> = translations.iter().map(SentTexts::of).collect();
                let all = translations.into_iter().enumerate();
                let decoded =
                    all.filter_map(|(index, message)| decode_item(message, list.index(index)));
                let decoded: Vec<_> = decoded.collect();
                // In a valid request, the decision refuses them together with items of
                // which the task or step has none of the texts.
                if list.violation_count() > 0 {
                    let sent = sent.iter().enumerate();
                    for (index, _) in sent.filter(|(_, sent)| sent.texts.is_empty()) {
                        let mut item = list.index(index);
                        item.refuse(Reason::FieldRequired, "needs a text");
                    }
                }
                Some((decoded, sent))
            })?;
            let account = self.account(&caller);
            let outcomes = account.write_translations(items).await?;
            let mut ignored = Ignored::default();
            for (outcome, sent) in outcomes.iter().zip(sent) {
                ignored.add(sent.ignored(*outcome));
            }
            let result = |outcome| i32::from(encode_outcome(outcome));
            Ok(WriteTranslationsResponse {
                results: outcomes.into_iter().map(result).collect(),
                ignored_paths: ignored.into_fields().map(str::to_owned).collect(),
            })
        })
        .await
    }
}

/// The languages of a listing, sorted and without duplicates; at least one.
fn sorted_languages(tags: &[String], violations: &mut Violations) -> Vec<Language> {
    let mut list = Field::root("languages", violations);
    if tags.is_empty() {
        list.refuse(Reason::FieldRequired, "needs at least one language");
    }
    let languages = field::languages(tags, MAX_LANGUAGES, list).into_iter();
    let sorted: BTreeSet<Language> = languages.collect();
    sorted.into_iter().collect()
}

/// The task that a listing is limited to.
fn only_task(id: &str, mut field: Field<'_>) -> Option<TaskId> {
    if id.is_empty() {
        let description = "is empty: leave it out for the whole account";
        field.refuse(Reason::FieldRequired, description);
        return None;
    }
    field::guid(id, TaskId::parse, field)
}

/// The texts that an item has, as paths.
fn sent_texts(item: &v1::AutomaticTranslation) -> Vec<&'static str> {
    // Each field is named, so that a new text is not forgotten.
    let v1::AutomaticTranslation {
        guid: _,
        language: _,
        name,
        title,
        body,
        instructions,
        feedback_config,
        source_digest: _,
    } = item;
    let texts = [
        (NAME, name.is_some()),
        ("translations.title", title.is_some()),
        ("translations.body", body.is_some()),
        ("translations.instructions", !instructions.is_empty()),
        ("translations.feedback_config", !feedback_config.is_empty()),
    ];
    let sent = texts.into_iter().filter(|(_, is_sent)| *is_sent);
    sent.map(|(path, _)| path).collect()
}

/// The only text of a task; a step has the others.
const NAME: &str = "translations.name";

fn decode_item(
    message: v1::AutomaticTranslation,
    mut at: Field<'_>,
) -> Option<AutomaticTranslation> {
    let v1::AutomaticTranslation {
        guid,
        language,
        name,
        title,
        body,
        instructions,
        feedback_config,
        source_digest,
    } = message;
    let guid = field::guid(&guid, TaskId::parse, at.field("guid"));
    let language = field::language(&language, at.field("language"));
    let mut digest = at.field("source_digest");
    if source_digest.is_empty() {
        digest.refuse(Reason::FieldRequired, REQUIRED);
    }
    field::refuse_nul(&source_digest, digest);
    let instructions = json::instructions(instructions, at.field("instructions"));
    let feedback = feedback::translated(feedback_config, at.field("feedback_config"));
    Some(AutomaticTranslation {
        name: name.and_then(|name| field::translated_text(name, at.field("name"))),
        title: title.and_then(|title| field::translated_text(title, at.field("title"))),
        body: body.and_then(|body| field::body(body, at.field("body"))),
        instructions,
        feedback,
        digest: read_digest(&source_digest),
        guid: guid?.0,
        language: language?,
    })
}

/// The text of a digest in the contract.
pub fn digest(digest: SourceDigest) -> String {
    URL_SAFE_NO_PAD.encode(digest.0)
}

fn read_digest(text: &str) -> Option<SourceDigest> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    bytes.try_into().ok().map(SourceDigest)
}

/// What an automatic translation has, as paths.
struct SentTexts {
    texts: Vec<&'static str>,
    /// Links in the question, which no translation has.
    links: Ignored,
}

impl SentTexts {
    fn of(item: &v1::AutomaticTranslation) -> Self {
        let mut links = Ignored::default();
        feedback::list_ignored_of_translation(&item.feedback_config, &mut links);
        Self {
            texts: sent_texts(item),
            links,
        }
    }

    /// The ignored paths: texts that the written resource does not have, and links. None if
    /// nothing was written.
    fn ignored(self, outcome: TranslationOutcome) -> Vec<&'static str> {
        let has_name = match outcome {
            TranslationOutcome::Written(ResourceId::Task(_)) => true,
            TranslationOutcome::Written(ResourceId::Step(_)) => false,
            TranslationOutcome::Locked
            | TranslationOutcome::Stale
            | TranslationOutcome::NotFound => return Vec::new(),
        };
        let texts = self.texts.into_iter();
        let texts = texts.filter(|path| (*path == NAME) != has_name);
        texts.chain(self.links.into_fields()).collect()
    }
}

fn encode_outcome(outcome: TranslationOutcome) -> TranslationResult {
    match outcome {
        TranslationOutcome::Written(_) => TranslationResult::Written,
        TranslationOutcome::Locked => TranslationResult::SkippedLocked,
        TranslationOutcome::Stale => TranslationResult::Stale,
        TranslationOutcome::NotFound => TranslationResult::NotFound,
    }
}
