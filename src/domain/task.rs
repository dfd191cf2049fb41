//! Tasks.

use serde::{Deserialize, Serialize};
use strum_macros::{AsRefStr, FromRepr};

use super::{
    decide::WriteContext,
    dependency::Group,
    etag::Etag,
    external_id::ExternalId,
    ids::{AccountId, ProductId, StepId, TaskId},
    order::Numbering,
    row_version::RowVersion,
    step::ReferencedTask,
    text::Name,
    time::Timestamp,
    translation::{MAX_LANGUAGES, TaskTranslations},
    violation::{Path, Reason, Violations},
};

/// The maximum number of steps of a task, including wiring steps.
pub const MAX_TASK_STEPS: usize = 10_000;
/// The description of the violation of an import that exceeds it.
pub const TOO_MANY_STEPS: &str = "would give the task more than 10000 steps";

#[derive(Clone, Copy, Debug, PartialEq, Eq, AsRefStr, FromRepr, Serialize, Deserialize)]
#[repr(i32)]
#[serde(into = "i32", try_from = "i32")]
#[strum(serialize_all = "UPPERCASE")]
pub enum AccessLevel {
    User = 0,
    Tech = 1,
    Tech2 = 2,
    Tech3 = 3,
    Expert = 5,
    User2 = 7,
    User3 = 8,
}

impl AccessLevel {
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Tech,
        Self::Tech2,
        Self::Tech3,
        Self::Expert,
        Self::User2,
        Self::User3,
    ];

    pub fn number(self) -> i32 {
        self as i32
    }

    /// The level as one bit of a set.
    pub fn bit(self) -> i32 {
        1 << self.number()
    }
}

impl From<AccessLevel> for i32 {
    fn from(level: AccessLevel) -> Self {
        level.number()
    }
}

impl TryFrom<i32> for AccessLevel {
    type Error = &'static str;

    fn try_from(number: i32) -> std::result::Result<Self, Self::Error> {
        Self::from_repr(number).ok_or("not an access level")
    }
}

/// Whether a task or step is shown: 0 is hidden and 1 is published. Callers define the
/// meaning of other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(i32);

impl Published {
    pub fn new(number: i32) -> Option<Self> {
        (number >= 0).then_some(Self(number))
    }

    pub fn get(self) -> i32 {
        self.0
    }
}

impl Default for Published {
    fn default() -> Self {
        Self(1)
    }
}

/// The filters of a task list. `None` does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub product: Option<ProductId>,
    pub published: Option<Published>,
    /// Only tasks that this access level may see.
    pub role: Option<AccessLevel>,
    pub managed: Option<bool>,
    pub external_id: Option<ExternalId>,
    pub name: Option<Name>,
}

#[derive(Clone, Debug)]
pub struct NewTask {
    pub name: Name,
    /// The product that it is about. It never changes.
    pub product: ProductId,
    pub content: TaskContent,
}

/// The fields of a task that updates change. The JSON form is for the database, which stores some
/// fields elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskContent {
    /// When it is visible; `None` if always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Group>,
    #[serde(skip)]
    pub published: Published,
    pub roles: Vec<AccessLevel>,
    /// The caller's own id; a managed task has none.
    #[serde(skip)]
    pub external_id: Option<ExternalId>,
    #[serde(skip)]
    pub translations: TaskTranslations,
}

/// Published, for everybody, and without conditions, external id and translations.
impl Default for TaskContent {
    fn default() -> Self {
        Self {
            dependencies: None,
            published: Published::default(),
            roles: AccessLevel::ALL.to_vec(),
            external_id: None,
            translations: TaskTranslations::new(),
        }
    }
}

/// The value of an observation that manages a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedBy {
    pub parent: TaskId,
    pub idx: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IndexState {
    pub indexed: bool,
    pub version: i64,
    pub info: String,
    pub at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub guid: TaskId,
    pub account: AccountId,
    pub name: Name,
    pub product: ProductId,
    pub content: TaskContent,
    pub managed: Option<ManagedBy>,
    pub steps: Vec<StepId>,
    pub numbering: Numbering,
    pub index: IndexState,
    /// Its version. A change of its list of steps also creates a new one.
    pub row_version: RowVersion,
}

/// What locking a task returns: the task without its dependencies, translations and list of steps.
#[derive(Clone, Debug)]
pub struct LockedTask {
    pub guid: TaskId,
    pub name: Name,
    pub product: ProductId,
    pub external_id: Option<ExternalId>,
    pub managed: bool,
    pub step_count: i64,
    pub numbering: Numbering,
    pub languages: usize,
    /// The bytes of its dependencies and translations ([`task_size`](super::size::task_size)).
    pub size: i64,
    pub row_version: RowVersion,
}

impl Task {
    pub fn create(new: NewTask, managed: Option<ManagedBy>, context: &WriteContext) -> Self {
        Self {
            guid: TaskId((context.new_id)()),
            account: context.account.clone(),
            name: new.name,
            product: new.product,
            content: new.content,
            managed,
            steps: Vec::new(),
            numbering: Numbering::default(),
            index: IndexState::default(),
            row_version: RowVersion::first(context.now),
        }
    }

    /// Sets the fields that a managed task takes from the value that manages it.
    pub fn managed(mut self, by: ManagedBy, name: Name) -> Self {
        self.managed = Some(by);
        self.name = name;
        self.content.external_id = None;
        self
    }

    pub fn unmanaged(self) -> Self {
        Self {
            managed: None,
            ..self
        }
    }

    /// Sets the next version if the task differs from `before`, and returns whether it does.
    pub fn revise(&mut self, before: &Self, context: &WriteContext) -> bool {
        let changed = self != before;
        if changed {
            self.row_version = before.row_version.next(context);
        }
        changed
    }

    pub fn etag(&self) -> Etag {
        Etag::for_row_version(self.guid.0, &self.row_version)
    }
}

impl LockedTask {
    pub fn etag(&self) -> Etag {
        Etag::for_row_version(self.guid.0, &self.row_version)
    }

    pub fn referenced(&self) -> ReferencedTask {
        ReferencedTask {
            task: self.guid,
            product: self.product,
            name: self.name.clone(),
            external_id: self.external_id.clone(),
        }
    }
}

impl Task {
    pub fn edited(&self, new: NewTask) -> Self {
        Self {
            name: new.name,
            content: new.content,
            ..self.clone()
        }
    }
}

/// Adds a violation if a resource would have too many languages.
pub fn check_languages(resource: &Path<'_>, languages: usize, violations: &mut Violations) {
    if languages > MAX_LANGUAGES {
        violations.add(
            &resource.field("translations"),
            Reason::TooManyElements,
            format!("would have {languages} languages; at most {MAX_LANGUAGES} are allowed"),
        );
    }
}
