//! Digests of the names that tasks and steps read and set, each for one use. The
//! database indexes digests, as names can be too long for an index.

use std::collections::BTreeSet;

use uuid::Uuid;

use crate::domain::{dependency::Group, ids::TaskId, sha256::Sha256, step::Step, task::Task};

use super::names::{account_name, full_name};

/// The digest of a name and of what is done with it: the first bytes of a SHA-256. They are
/// kept as a UUID, which both databases store and compare as 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameDigest(pub Uuid);

/// What a task or step does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// It is an observation that sets the name for the whole account.
    Sets,
    /// One of its conditions reads the name, of the account or of its task.
    Reads,
}

/// The names that a task or step reads and sets, as digests.
pub type NameDigests = BTreeSet<NameDigest>;

impl NameDigest {
    /// The digest of a full name and a use.
    pub fn new(used: NameUse, name: &str) -> Self {
        Self::of(
            match used {
                NameUse::Sets => b"sets",
                NameUse::Reads => b"read",
            },
            name,
        )
    }

    /// The digest of a name that is set within a task. It differs from task to task, so
    /// that a search in one task skips the others.
    pub fn of_own_name(task: TaskId, name: &str) -> Self {
        Self::of(task.0.as_bytes(), name)
    }

    fn of(prefix: &[u8], name: &str) -> Self {
        let digest = Sha256::default().with(prefix).with(name);
        Self(Uuid::from_bytes(digest.finish()))
    }
}

/// A task or step, which reads and sets names.
pub trait NamesVariables {
    /// Whether all fields that name variables are equal in two states of a task or step. Then
    /// the digests are equal, too, as its ids and its product never change.
    fn has_same_names(&self, other: &Self) -> bool;

    /// The names that it reads and sets, as digests.
    fn digests(&self) -> NameDigests;
}

impl NamesVariables for Task {
    fn has_same_names(&self, other: &Self) -> bool {
        self.content.dependencies == other.content.dependencies
    }

    fn digests(&self) -> NameDigests {
        let mut digests = NameDigests::new();
        add_read(self.content.dependencies.as_ref(), &mut digests);
        digests
    }
}

impl NamesVariables for Step {
    fn has_same_names(&self, other: &Self) -> bool {
        self.content.dependencies == other.content.dependencies
            && observed_name(self) == observed_name(other)
    }

    fn digests(&self) -> NameDigests {
        let mut digests = NameDigests::new();
        add_read(self.content.dependencies.as_ref(), &mut digests);
        if let Some(name) = observed_name(self) {
            let of_account = account_name(self.product, name);
            digests.insert(NameDigest::new(NameUse::Sets, &of_account));
            digests.insert(NameDigest::of_own_name(self.task, name));
        }
        digests
    }
}

fn observed_name(step: &Step) -> Option<&str> {
    step.kind
        .observation_feedback()
        .map(|feedback| feedback.name.as_str())
}

fn add_read(group: Option<&Group>, digests: &mut NameDigests) {
    if let Some(group) = group {
        group.for_each_condition(&mut |condition| {
            digests.insert(NameDigest::new(NameUse::Reads, &full_name(condition)));
        });
    }
}

/// The digests that a write adds and drops.
#[derive(Debug, Default)]
pub struct ChangedNameDigests {
    /// Those that are new.
    pub added: Vec<NameDigest>,
    /// Those that are gone.
    pub dropped: Vec<NameDigest>,
}

/// How the digests of a task or step change. Computes no digest if no name changes.
pub fn changed_name_digests<T: NamesVariables>(
    before: Option<&T>,
    after: &T,
) -> ChangedNameDigests {
    if before.is_some_and(|before| before.has_same_names(after)) {
        return ChangedNameDigests::default();
    }
    let before = before.map_or_else(NameDigests::new, T::digests);
    let after = after.digests();
    ChangedNameDigests {
        added: after.difference(&before).copied().collect(),
        dropped: before.difference(&after).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_digests_of_names_are_fixed() {
        // They are stored: another digest would need every row written again.
        let hex = |NameDigest(digest)| digest.simple().to_string();
        let light = "components.1.light";
        assert_eq!(
            hex(NameDigest::new(NameUse::Sets, light)),
            "b211cdfdcfdc82e4b9c2389622d25705"
        );
        assert_eq!(
            hex(NameDigest::new(NameUse::Reads, light)),
            "76659f0efdc5cd838663a51fd6ec8fc5"
        );
        assert_eq!(
            hex(NameDigest::of_own_name(TaskId(Uuid::nil()), "light")),
            "73c624edf081ec41b25751a1f38c8704"
        );
    }

    #[test]
    fn own_names_of_two_tasks_have_two_digests() {
        let one = NameDigest::of_own_name(TaskId(Uuid::nil()), "light");
        let other = NameDigest::of_own_name(TaskId(Uuid::max()), "light");
        assert_ne!(one, other);
        assert_ne!(one, NameDigest::new(NameUse::Sets, "light"));
    }
}
