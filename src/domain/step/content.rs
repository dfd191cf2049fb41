//! The fields that steps of every type have, and updates of them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::{
    dependency::Group,
    external_id::ExternalId,
    json::{Instruction, Json},
    patch::Edit,
    task::Published,
    text::{Body, Tag},
    translation::{StepTranslation, StepTranslations, TranslationsEdit},
};

/// The fields of every type of step. By default, all are empty and the step is published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepContent {
    /// The text.
    pub body: Option<Body>,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// The caller's own id.
    pub external_id: Option<ExternalId>,
    /// Instructions of the caller's own shape.
    pub instructions: Vec<Instruction>,
    /// How it repeats.
    pub looping: Option<Looping>,
    /// Parts needed.
    pub parts: Vec<Tag>,
    /// Whether it is shown.
    pub published: Published,
    /// Skills needed.
    pub skills: Vec<Tag>,
    /// Tags.
    pub tags: Vec<Tag>,
    /// Its texts in other languages.
    pub translations: StepTranslations,
}

/// An update of them.
#[derive(Clone, Debug, Default)]
pub struct ContentPatch {
    /// The text.
    pub body: Edit<Body>,
    /// When it is visible.
    pub dependencies: Edit<Group>,
    /// The caller's own id.
    pub external_id: Edit<ExternalId>,
    /// Instructions.
    pub instructions: Option<Vec<Instruction>>,
    /// How it repeats.
    pub looping: Edit<Looping>,
    /// Parts needed.
    pub parts: Option<Vec<Tag>>,
    /// Whether it is shown.
    pub published: Edit<Published>,
    /// Skills needed.
    pub skills: Option<Vec<Tag>>,
    /// Tags.
    pub tags: Option<Vec<Tag>>,
    /// Its texts in other languages.
    pub translations: TranslationsEdit<StepTranslation>,
}

impl ContentPatch {
    /// Applies the update.
    pub fn apply(self, content: &mut StepContent) {
        let Self {
            body,
            dependencies,
            external_id,
            instructions,
            looping,
            parts,
            published,
            skills,
            tags,
            translations,
        } = self;
        body.apply(&mut content.body);
        dependencies.apply(&mut content.dependencies);
        external_id.apply(&mut content.external_id);
        looping.apply(&mut content.looping);
        published.apply_or(&mut content.published, Published::default());
        replace(instructions, &mut content.instructions);
        replace(parts, &mut content.parts);
        replace(skills, &mut content.skills);
        replace(tags, &mut content.tags);
        translations.apply(&mut content.translations);
    }
}

fn replace<T>(edit: Option<Vec<T>>, field: &mut Vec<T>) {
    if let Some(new) = edit {
        *field = new;
    }
}

/// How a step repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looping {
    /// The name of the current element.
    pub alias: Tag,
    /// The elements.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub array: Option<Json>,
    /// The number of iterations, or a list of them.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub iterations: Option<Json>,
}

/// Reads a member that is present, so that null becomes `Some` and only an absent member is
/// `None`.
fn present<'de, D: Deserializer<'de>>(member: D) -> std::result::Result<Option<Json>, D::Error> {
    Json::deserialize(member).map(Some)
}
