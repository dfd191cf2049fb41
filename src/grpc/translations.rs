//! TranslationService: decode, one store call, encode.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::call::Call;
use crate::{
    domain::{
        Result,
        ids::TaskId,
        translation::{Language, MAX_LANGUAGES},
        translation_work::{
            AutomaticTranslation, MAX_ITEMS_WRITTEN, ResourceId, SourceDigest, SourceTexts,
            TranslationOutcome, TranslationWork, TranslationWorkFilter,
        },
        violation::{Reason, Violations},
    },
    messages::{
        decode::{self, Field, REQUIRED, feedback, field, translations::TranslationMessage},
        encode::{json, step::source_feedback},
    },
    proto::v1::{
        self, ListTranslationWorkRequest, ListTranslationWorkResponse, TranslationResult,
        WriteTranslationsRequest, WriteTranslationsResponse,
    },
};

impl Call {
    pub async fn list_translation_work(
        self,
        request: ListTranslationWorkRequest,
    ) -> Result<ListTranslationWorkResponse> {
        // The order and case of the languages do not matter.
        let languages = request.languages.iter();
        let languages: BTreeSet<Language> =
            languages.filter_map(|tag| Language::parse(tag)).collect();
        let filters = ListTranslationWorkRequest {
            languages: languages.iter().map(ToString::to_string).collect(),
            ..request.clone()
        };
        let tokens = self.page_tokens(&filters);
        let (filter, (after, size)) = decode::all(|violations| {
            let filter = TranslationWorkFilter {
                languages: sorted_languages(request.languages, violations),
                task: violations.at("task").optional(request.task, only_task),
            };
            let start = tokens.start(request.page_size, &request.page_token, violations);
            Some((filter, start?))
        })?;
        let found = self.account.list_work(&filter, after, size).await?;
        let (work, next_page_token) = tokens.found(
            found.items,
            found.next,
            |(_, cursor)| *cursor,
            |(work, _)| self::work(work),
        );
        Ok(ListTranslationWorkResponse {
            work,
            next_page_token,
        })
    }

    pub async fn write_translations(
        self,
        request: WriteTranslationsRequest,
    ) -> Result<WriteTranslationsResponse> {
        let sent: Vec<SentTexts> = request.translations.iter().map(SentTexts::new).collect();
        let items = decode::all(|violations| {
            let mut list = violations.at("translations");
            list.not_empty(&sent, "needs at least one translation");
            let items = list.elements(request.translations, MAX_ITEMS_WRITTEN, decode_item)?;
            // In a valid request, the decision refuses these items together with items whose texts
            // do not exist.
            if list.violation_count() > 0 {
                let sent = sent.iter().enumerate();
                for (index, _) in sent.filter(|(_, sent)| sent.texts.is_empty()) {
                    let mut item = list.index(index);
                    item.refuse(Reason::FieldRequired, "needs a text");
                }
            }
            Some(items)
        })?;
        let outcomes = self.account.write_translations(items).await?;
        let mut ignored = BTreeSet::new();
        for (outcome, sent) in outcomes.iter().zip(sent) {
            ignored.extend(sent.ignored(*outcome));
        }
        let result = |outcome| i32::from(encode_outcome(outcome));
        Ok(WriteTranslationsResponse {
            results: outcomes.into_iter().map(result).collect(),
            ignored_paths: ignored.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// The languages of a listing, sorted and without duplicates; at least one.
fn sorted_languages(tags: Vec<String>, violations: &mut Violations) -> Vec<Language> {
    let mut list = violations.at("languages");
    list.not_empty(&tags, "needs at least one language");
    let languages = field::languages(tags, MAX_LANGUAGES, list).into_iter();
    languages.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The task that a listing is limited to.
fn only_task(id: String, mut field: Field<'_>) -> Option<TaskId> {
    if id.is_empty() {
        let description = "is empty: leave it out for the whole account";
        field.refuse(Reason::FieldRequired, description);
        return None;
    }
    field::guid(&id, TaskId::parse, field)
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
    let locked = Some(false);
    let task = v1::TaskTranslation { name, locked };
    let step = v1::StepTranslation {
        title,
        body,
        instructions,
        feedback_config,
        locked,
    };
    Some(AutomaticTranslation {
        task: task.decode(&mut at),
        step: step.decode(&mut at),
        digest: read_digest(&source_digest),
        guid: guid?.0,
        language: language?,
    })
}

/// The text of a digest in the API.
fn digest(digest: SourceDigest) -> String {
    URL_SAFE_NO_PAD.encode(digest.0)
}

fn read_digest(text: &str) -> Option<SourceDigest> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    bytes.try_into().ok().map(SourceDigest)
}

/// The texts of an automatic translation, as paths.
struct SentTexts {
    texts: Vec<&'static str>,
    /// Links in the question, which translations do not have.
    links: Vec<&'static str>,
}

impl SentTexts {
    fn new(item: &v1::AutomaticTranslation) -> Self {
        let has_question = !item.feedback_config.is_empty();
        let texts = [
            (NAME, item.name.is_some()),
            ("translations.title", item.title.is_some()),
            ("translations.body", item.body.is_some()),
            ("translations.instructions", !item.instructions.is_empty()),
            ("translations.feedback_config", has_question),
        ];
        let sent = texts.into_iter().filter(|(_, is_sent)| *is_sent);
        Self {
            texts: sent.map(|(path, _)| path).collect(),
            links: feedback::ignored_links(&item.feedback_config),
        }
    }

    /// The ignored paths: texts that the written resource does not have, and links. Empty if
    /// nothing was written.
    fn ignored(self, outcome: TranslationOutcome) -> Vec<&'static str> {
        let TranslationOutcome::Written(resource) = outcome else {
            return Vec::new();
        };
        let has_name = matches!(resource, ResourceId::Task(_));
        let texts = self.texts.into_iter();
        let texts = texts.filter(|path| (*path == NAME) != has_name);
        texts.chain(self.links).collect()
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

/// A task or step to translate.
fn work(work: TranslationWork) -> v1::TranslationWork {
    let (guid, kind) = match work.resource {
        ResourceId::Task(task) => (task.to_string(), v1::TranslationKind::Task),
        ResourceId::Step(step) => (step.to_string(), v1::TranslationKind::Step),
    };
    v1::TranslationWork {
        guid,
        kind: kind.into(),
        language: work.language.to_string(),
        state: work.state as i32,
        source: Some(texts(work.source)),
        source_digest: digest(work.digest),
    }
}

fn texts(source: SourceTexts) -> v1::TranslationSource {
    match source {
        SourceTexts::Task { name } => v1::TranslationSource {
            name: Some(name),
            ..v1::TranslationSource::default()
        },
        SourceTexts::Step {
            title,
            body,
            instructions,
            feedback,
        } => v1::TranslationSource {
            name: None,
            title: Some(title),
            body: body.map(|body| body.into_string()),
            instructions: json::instructions(instructions),
            feedback_config: feedback.map(source_feedback).into_iter().collect(),
        },
    }
}
