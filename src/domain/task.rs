//! Tasks.

use super::{
    decide::WriteContext,
    dependency::Group,
    error::Error,
    etag::Etag,
    ids::{AccountId, ProductId, StepId, TaskId},
    link::ManagedTaskUpdate,
    order::Numbering,
    patch::{Deferred, Edit},
    revision::Revision,
    step::ReferencedTask,
    text::Name,
    time::Timestamp,
    translation::{
        LANGUAGES_MAX, TaskOverlay, TaskOverlayEdit, TaskTranslations, TranslationsEdit,
    },
    violation::{Path, Reason, Violations},
};

/// Who may see a task. The numbers are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLevel {
    /// End users.
    User = 0,
    /// Technicians.
    Tech = 1,
    /// Technicians, second level.
    Tech2 = 2,
    /// Technicians, third level.
    Tech3 = 3,
    /// Experts.
    Expert = 5,
    /// End users, second group.
    User2 = 7,
    /// End users, third group.
    User3 = 8,
}

impl AccessLevel {
    /// All levels: who sees a task that names none.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Tech,
        Self::Tech2,
        Self::Tech3,
        Self::Expert,
        Self::User2,
        Self::User3,
    ];

    /// The level of a number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The level's number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The level as one bit of a set.
    pub fn bit(self) -> i32 {
        1 << self.number()
    }
}

/// Whether something is shown: 0 is hidden, 1 published, other numbers are the
/// callers' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published(i32);

impl Published {
    /// Accepts what is not negative.
    pub fn new(number: i32) -> Option<Self> {
        (number >= 0).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> i32 {
        self.0
    }
}

impl Default for Published {
    fn default() -> Self {
        Self(1)
    }
}

/// Which tasks a listing shows; an absent filter does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only tasks of this product.
    pub product: Option<ProductId>,
    /// Only tasks with this value.
    pub published: Option<Published>,
    /// Only tasks that this level may see.
    pub role: Option<AccessLevel>,
    /// Only managed tasks, or only others.
    pub managed: Option<bool>,
}

/// What a caller says of a new task.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// What people call it.
    pub name: Name,
    /// The product it is about, for ever.
    pub product: ProductId,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// Whether it is shown.
    pub published: Published,
    /// Who may see it: at least one, no duplicates.
    pub roles: Vec<AccessLevel>,
    /// Its texts in other languages.
    pub translations: TaskTranslations,
}

/// The observation's value that manages a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedBy {
    /// The task whose observation it is.
    pub parent: TaskId,
    /// The value's position, from 0.
    pub idx: i32,
}

/// State of the external index.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IndexState {
    /// Whether it holds the task.
    pub indexed: bool,
    /// The version it holds.
    pub version: i64,
    /// What it says.
    pub info: String,
    /// When it last read the task.
    pub at: Option<Timestamp>,
}

/// A task as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its id.
    pub guid: TaskId,
    /// Its owner.
    pub account: AccountId,
    /// What people call it.
    pub name: Name,
    /// The product it is about.
    pub product: ProductId,
    /// When it is visible; `None` is always.
    pub dependencies: Option<Group>,
    /// Whether it is shown.
    pub published: Published,
    /// Who may see it.
    pub roles: Vec<AccessLevel>,
    /// Its texts in other languages.
    pub translations: TaskTranslations,
    /// What manages it, if anything does.
    pub managed: Option<ManagedBy>,
    /// Its steps in order.
    pub steps: Vec<StepId>,
    /// How its steps are numbered.
    pub numbering: Numbering,
    /// State of the external index.
    pub index: IndexState,
    /// Which state it is in. A change of its list of steps makes a new one too.
    pub revision: Revision,
}

/// A task as far as writes of its steps and references to it need it.
#[derive(Clone, Debug)]
pub struct TaskHead {
    /// Its id.
    pub guid: TaskId,
    /// What people call it.
    pub name: Name,
    /// The product it is about.
    pub product: ProductId,
    /// Whether an observation manages it.
    pub managed: bool,
    /// How many steps it has.
    pub step_count: i64,
    /// How its steps are numbered.
    pub numbering: Numbering,
    /// Its bytes on the wire, its list of steps left out.
    pub size: i64,
    /// How many languages it is translated into.
    pub languages: usize,
    /// Which state it is in.
    pub revision: Revision,
}

impl Task {
    /// A task that is made now, without steps.
    pub fn create(new: NewTask, managed: Option<ManagedBy>, context: &WriteContext) -> Self {
        let NewTask {
            name,
            product,
            dependencies,
            published,
            roles,
            translations,
        } = new;
        Self {
            guid: TaskId((context.new_id)()),
            account: context.account.clone(),
            name,
            product,
            dependencies,
            published,
            roles,
            translations,
            managed,
            steps: Vec::new(),
            numbering: Numbering::default(),
            index: IndexState::default(),
            revision: Revision::first(context.now),
        }
    }

    /// The task with what it takes from the value that manages it.
    pub fn apply_value(self, value: ManagedTaskUpdate) -> Self {
        let ManagedTaskUpdate { task: _, name, idx } = value;
        Self {
            name,
            managed: self.managed.map(|managed| ManagedBy { idx, ..managed }),
            ..self
        }
    }

    /// The task when no observation manages it any longer.
    pub fn unmanaged(self) -> Self {
        Self {
            managed: None,
            ..self
        }
    }

    /// Makes this the next state of a task, unless it says the same; whether it does
    /// not.
    pub fn revise(&mut self, before: &Self, context: &WriteContext) -> bool {
        let changed = self != before;
        if changed {
            self.revision = before.revision.next(context.now);
        }
        changed
    }

    /// The state it is in, as callers see it.
    pub fn etag(&self) -> Etag {
        Etag::of(self.guid.0, &self.revision)
    }
}

impl TaskHead {
    /// The state it is in, as callers see it.
    pub fn etag(&self) -> Etag {
        Etag::of(self.guid.0, &self.revision)
    }

    /// The task as a reference sees it.
    pub fn referenced(&self) -> ReferencedTask {
        ReferencedTask {
            task: self.guid,
            product: self.product,
            name: self.name.clone(),
        }
    }
}

/// What an update says of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskPatch {
    /// What was wrong with the request so far.
    pub violations: Violations,
    /// The name; ignored for a managed task.
    pub name: Edit<Deferred<Name>>,
    /// Whether the name was sent or named in the mask, so that a receipt is
    /// due when it is ignored.
    pub name_sent: bool,
    /// When it is visible.
    pub dependencies: Edit<Group>,
    /// Whether it is shown.
    pub published: Edit<Published>,
    /// Who may see it; never emptied.
    pub roles: Edit<Vec<AccessLevel>>,
    /// Its texts in other languages.
    pub translations: TranslationsEdit<TaskOverlay, TaskOverlayEdit>,
}

/// Where violations of a task's own fields are reported.
const TASK: Path<'static> = Path::root("task");

impl Task {
    /// The task after an update, and the fields of the update that were not
    /// honored. Everything is checked against the merged task.
    pub fn merge(&self, patch: TaskPatch) -> Result<(Task, Vec<&'static str>), Error> {
        let mut violations = Violations::new();
        let merged = self.merge_at(patch, &TASK, &mut violations);
        if violations.is_empty() {
            Ok(merged)
        } else {
            Err(Error::Invalid(violations))
        }
    }

    /// The task after an update, as part of something larger: `at` is where the
    /// task stands in the request, and what is wrong is noted.
    pub fn merge_at(
        &self,
        patch: TaskPatch,
        at: &Path<'_>,
        violations: &mut Violations,
    ) -> (Task, Vec<&'static str>) {
        let TaskPatch {
            violations: earlier,
            name,
            name_sent,
            dependencies,
            published,
            roles,
            translations,
        } = patch;
        violations.append(earlier);
        let mut task = self.clone();
        let mut ignored = Vec::new();
        if self.managed.is_some() {
            ignored.extend(name_sent.then_some("name"));
        } else {
            match name {
                Edit::Keep => {}
                Edit::Clear => {
                    violations.add(&at.field("name"), Reason::FieldRequired, "is required");
                }
                Edit::Set(Ok(name)) => task.name = name,
                Edit::Set(Err(violation)) => violations.push(violation),
            }
        }
        dependencies.apply(&mut task.dependencies);
        published.apply_or(&mut task.published, Published::default());
        match roles {
            Edit::Keep => {}
            Edit::Clear => violations.add(
                &at.field("roles"),
                Reason::FieldRequired,
                "needs at least one access level",
            ),
            Edit::Set(roles) => task.roles = roles,
        }
        translations.apply(&mut task.translations);
        check_languages(at, task.translations.len(), violations);
        (task, ignored)
    }
}

/// Notes when a resource would have too many languages.
pub fn check_languages(resource: &Path<'_>, languages: usize, violations: &mut Violations) {
    if languages > LANGUAGES_MAX {
        violations.add(
            &resource.field("translations"),
            Reason::TooManyElements,
            format!("would have {languages} languages; at most {LANGUAGES_MAX} are allowed"),
        );
    }
}
