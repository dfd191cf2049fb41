//! TranslationService: decode, one store call, encode.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::{
    call::answer,
    decode::{self, accepted, at_most, feedback, guid, json, line},
    encode, page,
    page_token::{Listing, Mark},
};
use crate::{
    auth::Caller,
    domain::{
        Result,
        ids::TaskId,
        page::Page,
        translation::{LANGUAGES_MAX, Language},
        violation::{Path, Reason, Violations},
        work::{Automatic, Digest, Target, Verdict, WRITES_MAX, WorkCursor, WorkFilter},
    },
    proto::v1::{
        AutomaticTranslation, ListTranslationWorkRequest, ListTranslationWorkResponse,
        TranslationResult, WriteTranslationsRequest, WriteTranslationsResponse,
        translation_service_server::TranslationService,
    },
    store::Store,
};

/// The translations of a store's resources.
#[derive(Clone)]
pub struct Translations {
    /// The store.
    pub store: Store,
}

#[tonic::async_trait]
impl TranslationService for Translations {
    async fn list_translation_work(
        &self,
        request: Request<ListTranslationWorkRequest>,
    ) -> Result<Response<ListTranslationWorkResponse>, Status> {
        answer(request, |caller, request| self.list(caller, request)).await
    }

    async fn write_translations(
        &self,
        request: Request<WriteTranslationsRequest>,
    ) -> Result<Response<WriteTranslationsResponse>, Status> {
        answer(request, |caller, request| self.write(caller, request)).await
    }
}

impl Translations {
    async fn list(
        &self,
        caller: Caller,
        request: ListTranslationWorkRequest,
    ) -> Result<ListTranslationWorkResponse> {
        let ListTranslationWorkRequest {
            languages,
            task,
            page_size,
            page_token,
        } = request;
        let mut faults = Violations::new();
        let languages = all_languages(&languages, &mut faults);
        let task = task.map(|task| guid(&task, TaskId::parse, &Path::root("task"), &mut faults));
        let size = decode::page_size(page_size, &mut faults);
        let filter = WorkFilter {
            languages,
            task: task.flatten(),
        };
        let listing = Listing {
            key: self.store.page_key(),
            account: &caller.account,
            rpc: "ListTranslationWork",
            filters: filters_as_bytes(&filter),
        };
        let after: Option<WorkCursor> = page::after(&listing, &page_token, &mut faults);
        let size = accepted(size, faults)?;
        let account = self.store.account(&caller.account);
        let found = account.list_work(&filter, after, size).await?;
        let count = found.items.len();
        let page = Page {
            items: found.items,
            more: true,
        };
        let (work, cut) = page::cut(
            page,
            &listing,
            |(_, cursor)| *cursor,
            |(work, _)| encode::work(work),
        );
        // Where nothing was cut off, the listing goes on behind what was looked
        // at, which may be far behind what was found.
        let next_page_token = if work.len() == count {
            let next = found.next.map(|next| listing.seal(&next));
            next.unwrap_or_default()
        } else {
            cut
        };
        Ok(ListTranslationWorkResponse {
            work,
            next_page_token,
        })
    }

    async fn write(
        &self,
        caller: Caller,
        request: WriteTranslationsRequest,
    ) -> Result<WriteTranslationsResponse> {
        let WriteTranslationsRequest { translations } = request;
        let mut faults = Violations::new();
        let mut ignored = BTreeSet::new();
        let path = Path::root("translations");
        if translations.is_empty() {
            faults.add(
                &path,
                Reason::FieldRequired,
                "needs at least one translation",
            );
        }
        let items = if at_most(translations.len(), WRITES_MAX, &path, &mut faults) {
            let all = translations.into_iter().enumerate();
            let decoded = all.filter_map(|(index, message)| {
                automatic(message, &path.index(index), &mut faults, &mut ignored)
            });
            decoded.collect()
        } else {
            Vec::new()
        };
        let items: Vec<Automatic> = accepted(Some(items), faults)?;
        let sent: Vec<Sent> = items.iter().map(Sent::of).collect();
        let account = self.store.account(&caller.account);
        let verdicts = account.write_translations(items).await?;
        for (verdict, sent) in verdicts.iter().zip(sent) {
            sent.note(*verdict, &mut ignored);
        }
        let result = |verdict| i32::from(encode_verdict(verdict));
        Ok(WriteTranslationsResponse {
            results: verdicts.into_iter().map(result).collect(),
            ignored_paths: ignored.into_iter().map(str::to_owned).collect(),
        })
    }
}

fn all_languages(tags: &[String], faults: &mut Violations) -> Vec<Language> {
    let path = Path::root("languages");
    if tags.is_empty() {
        faults.add(&path, Reason::FieldRequired, "needs at least one language");
    }
    if !at_most(tags.len(), LANGUAGES_MAX, &path, faults) {
        return Vec::new();
    }
    let languages: BTreeSet<Language> = tags
        .iter()
        .enumerate()
        .filter_map(|(index, tag)| language(tag, &path.index(index), faults))
        .collect();
    languages.into_iter().collect()
}

fn language(tag: &str, path: &Path<'_>, faults: &mut Violations) -> Option<Language> {
    let language = Language::parse(tag);
    if language.is_none() {
        let (reason, description) = if tag.is_empty() {
            (Reason::FieldRequired, decode::REQUIRED)
        } else {
            (Reason::FieldInvalid, "is not a well-formed language tag")
        };
        faults.add(path, reason, description);
    }
    language
}

/// The filters of a listing: the same languages in any order are the same.
fn filters_as_bytes(filter: &WorkFilter) -> Vec<u8> {
    let WorkFilter { languages, task } = filter;
    let mut bytes = task.map_or_else(Vec::new, |task| task.0.as_bytes().to_vec());
    for language in languages {
        bytes.push(0);
        bytes.extend(language.as_str().as_bytes());
    }
    bytes
}

impl Mark for WorkCursor {
    fn to_bytes(&self) -> Vec<u8> {
        let Self {
            steps,
            guid,
            languages,
        } = self;
        let mut bytes = vec![
            u8::from(*steps),
            u8::try_from(*languages).unwrap_or(u8::MAX),
        ];
        bytes.extend(guid.as_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([steps, languages], guid) = bytes.split_first_chunk()?;
        Some(Self {
            steps: *steps == 1,
            guid: Uuid::from_slice(guid).ok()?,
            languages: usize::from(*languages),
        })
    }
}

fn automatic(
    message: AutomaticTranslation,
    at: &Path<'_>,
    faults: &mut Violations,
    ignored: &mut BTreeSet<&'static str>,
) -> Option<Automatic> {
    note_links(&message, ignored);
    let AutomaticTranslation {
        guid: id,
        language: tag,
        name,
        title,
        body,
        instructions,
        feedback_config,
        source_digest,
    } = message;
    let id = guid(&id, TaskId::parse, &at.field("guid"), faults);
    let tag = language(&tag, &at.field("language"), faults);
    if source_digest.is_empty() {
        let path = at.field("source_digest");
        faults.add(&path, Reason::FieldRequired, decode::REQUIRED);
    }
    decode::refuse_nul(&source_digest, &at.field("source_digest"), faults);
    let path = at.field("instructions");
    let instructions = json::instructions(instructions, &path, faults);
    let path = at.field("feedback_config");
    let feedback = feedback::translated(feedback_config, &path, faults);
    Some(Automatic {
        name: name.and_then(|name| line(name, &at.field("name"), faults)),
        title: title.and_then(|title| line(title, &at.field("title"), faults)),
        body: body.and_then(|body| decode::body(body, &at.field("body"), faults)),
        instructions,
        feedback,
        digest: read_digest(&source_digest),
        guid: id?.0,
        language: tag?,
    })
}

fn note_links(message: &AutomaticTranslation, ignored: &mut BTreeSet<&'static str>) {
    let configs = &message.feedback_config;
    if configs.iter().any(|config| config.linked.is_some()) {
        ignored.insert("translations.feedback_config.linked");
    }
    let mut values = configs.iter().flat_map(|config| &config.values);
    if values.any(|value| !value.link.is_empty()) {
        ignored.insert("translations.feedback_config.values.link");
    }
}

/// A digest as callers see it.
pub fn digest(digest: Digest) -> String {
    URL_SAFE_NO_PAD.encode(digest.0)
}

fn read_digest(text: &str) -> Option<Digest> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    bytes.try_into().ok().map(Digest)
}

/// Which texts a translation carries.
struct Sent {
    /// Those of a task.
    task: Vec<&'static str>,
    /// Those of a step.
    step: Vec<&'static str>,
}

impl Sent {
    fn of(item: &Automatic) -> Self {
        let present = |list: [(&'static str, bool); 4]| {
            let sent = list.into_iter().filter(|(_, sent)| *sent);
            sent.map(|(field, _)| field).collect()
        };
        Self {
            task: item.name.iter().map(|_| "translations.name").collect(),
            step: present([
                ("translations.title", item.title.is_some()),
                ("translations.body", item.body.is_some()),
                ("translations.instructions", !item.instructions.is_empty()),
                ("translations.feedback_config", item.feedback.is_some()),
            ]),
        }
    }

    /// Lists what the resource has no place for.
    fn note(self, verdict: Verdict, ignored: &mut BTreeSet<&'static str>) {
        match verdict {
            Verdict::Written(Target::Task(_)) => ignored.extend(self.step),
            Verdict::Written(Target::Step(_)) => ignored.extend(self.task),
            Verdict::Locked | Verdict::Stale | Verdict::NotFound => {}
        }
    }
}

fn encode_verdict(verdict: Verdict) -> TranslationResult {
    match verdict {
        Verdict::Written(_) => TranslationResult::Written,
        Verdict::Locked => TranslationResult::SkippedLocked,
        Verdict::Stale => TranslationResult::Stale,
        Verdict::NotFound => TranslationResult::NotFound,
    }
}
