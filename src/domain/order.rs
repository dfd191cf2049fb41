//! The order of a task's steps.
//!
//! A step's place is an integer, with gaps between neighbors. An insert reads only the places of
//! its two neighbors and changes no other step, so its cost does not depend on the length of the
//! task. When a gap is exhausted, all steps of the task are renumbered.
//!
//! *Invariant:* an appended step comes after every place that was ever used in the same numbering.
//! So if a page ended at a step that was deleted since, the next page does not skip the appended
//! step.

use serde::{Deserialize, Serialize};

use super::{ids::StepId, step::Placement};

/// The distance between two appended steps.
pub const GAP: i64 = 1 << 40;
/// The maximum distance between a step and one that is inserted after it, so that a list can be inserted
/// step by step into one gap.
const MAX_INSERT_DISTANCE: i64 = 1 << 28;

/// The place of a step in its task. Places compare in the order of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place(pub i64);

impl Place {
    /// The place of the step at an index when a task is renumbered.
    pub fn nth(index: usize) -> Self {
        let number = i64::try_from(index).unwrap_or(i64::MAX / GAP - 1);
        Self((number + 1).saturating_mul(GAP))
    }

    /// A place between two neighbors, `low < high`; `None` if the gap is exhausted.
    pub fn between(low: Place, high: Place) -> Option<Self> {
        let distance = (high.0.checked_sub(low.0)? / 2).min(MAX_INSERT_DISTANCE);
        (distance > 0).then_some(Self(low.0 + distance))
    }
}

/// How the steps of a task are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// Counts the renumberings: places of different epochs cannot be compared.
    pub epoch: i64,
    /// The largest number ever used. Deleting a step does not lower it.
    pub last_position: i64,
}

impl Numbering {
    /// The place after all places that were ever used; `None` if there are no more numbers.
    pub fn append(self) -> Option<Place> {
        self.last_position.checked_add(GAP).map(Place)
    }

    /// New places for this many steps.
    fn renumber(self, count: usize) -> (Vec<Place>, Self) {
        let places: Vec<Place> = (0..count).map(Place::nth).collect();
        let numbering = Self {
            epoch: self.epoch + 1,
            last_position: places.last().map_or(0, |place| place.0),
        };
        (places, numbering)
    }

    fn with(self, place: Place) -> Self {
        Self {
            last_position: self.last_position.max(place.0),
            ..self
        }
    }
}

/// The steps between which a new one is inserted.
#[derive(Clone, Copy, Debug)]
pub struct Neighbors {
    pub before: Place,
    pub after: Option<Place>,
}

impl Neighbors {
    /// Before the first step.
    pub fn before_first(first: Place) -> Self {
        Self {
            before: Place(0),
            after: Some(first),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Insertion {
    /// How the place relates to the requested one.
    pub placement: Placement,
    pub place: Place,
    pub numbering: Numbering,
    pub moved: Vec<(StepId, Place)>,
}

impl Insertion {
    /// Inserts between two steps, or appends; `None` if there is no room.
    pub fn new(
        placement: Placement,
        neighbors: Option<Neighbors>,
        numbering: Numbering,
    ) -> Option<Self> {
        let place = match neighbors {
            Some(Neighbors {
                before,
                after: Some(after),
            }) => Place::between(before, after)?,
            Some(Neighbors { after: None, .. }) | None => numbering.append()?,
        };
        Some(Self {
            placement,
            place,
            numbering: numbering.with(place),
            moved: Vec::new(),
        })
    }

    /// Inserts after a step, or as the placement says, and renumbers all steps. `order` lists the
    /// existing steps.
    pub fn renumbering(
        placement: Placement,
        numbering: Numbering,
        order: &[StepId],
        after: Option<StepId>,
    ) -> Self {
        let after = order.iter().position(|step| Some(*step) == after);
        let index = match (placement, after) {
            (Placement::First, _) => 0,
            (_, Some(after)) => after + 1,
            (_, None) => order.len(),
        };
        let (mut places, numbering) = numbering.renumber(order.len() + 1);
        let place = places.remove(index);
        Self {
            placement,
            place,
            numbering,
            moved: order.iter().copied().zip(places).collect(),
        }
    }
}

/// Places for steps in a new order, and the new numbering. `known` has the places of existing
/// steps, which are kept if possible. Otherwise all steps are renumbered.
pub fn arrange(known: &[Option<Place>], numbering: Numbering) -> (Vec<Place>, Numbering) {
    keep_known(known, numbering).unwrap_or_else(|| numbering.renumber(known.len()))
}

/// Places for the new steps that keep all known places; `None` if existing steps change their order
/// or there is no room.
fn keep_known(
    known: &[Option<Place>],
    mut numbering: Numbering,
) -> Option<(Vec<Place>, Numbering)> {
    let existing: Vec<Place> = known.iter().copied().flatten().collect();
    if !existing.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut ahead = existing.into_iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(known.len());
    for known in known {
        let place = match (known, places.last(), ahead.peek()) {
            (Some(place), _, _) => {
                ahead.next();
                *place
            }
            (None, Some(low), Some(high)) => Place::between(*low, *high)?,
            (None, _, None) => numbering.append()?,
            // There are no places before the first existing one, so all steps are renumbered.
            (None, None, Some(_)) => return None,
        };
        numbering = numbering.with(place);
        places.push(place);
    }
    Some((places, numbering))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCursor {
    /// The numbering of the place. The cursor is invalid after a renumbering.
    pub epoch: i64,
    /// The place of the last step of the page, which may since have been deleted.
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorted places and their numbering.
    struct Places {
        all: Vec<Place>,
        numbering: Numbering,
    }

    impl Places {
        fn new(count: usize) -> Self {
            let (all, numbering) = arrange(&vec![None; count], Numbering::default());
            Self { all, numbering }
        }

        /// Inserts after the element at an index. Returns whether all were renumbered.
        fn insert(&mut self, after: usize) -> bool {
            let epoch = self.numbering.epoch;
            let mut known: Vec<Option<Place>> = self.all.iter().copied().map(Some).collect();
            known.insert(after + 1, None);
            let (all, numbering) = arrange(&known, self.numbering);
            *self = Self { all, numbering };
            numbering.epoch != epoch
        }

        fn are_sorted(&self) -> bool {
            self.all.is_sorted_by(|a, b| a < b)
        }
    }

    #[test]
    fn a_list_inserted_step_by_step_into_one_gap_needs_no_renumbering() {
        let mut places = Places::new(2);
        for index in 0..1_000 {
            assert!(!places.insert(index), "{index}");
        }
        assert!(places.are_sorted());
    }

    #[test]
    fn an_exhausted_gap_is_renumbered() {
        let mut places = Places::new(2);
        let renumbered = (0..300).filter(|_| places.insert(0)).count();
        assert!((1..=15).contains(&renumbered), "{renumbered}");
        assert!(places.are_sorted());
    }
}
