//! The order of a task's steps.
//!
//! A step's place is a whole number, with a fraction if no number is free between its
//! neighbours. An insert needs only the places of its two neighbours and changes no other
//! step, so it costs the same in a task of any length. Each insert between the same two
//! steps adds one bit to the fraction; past [`MAX_FRACTION_BYTES`] the task is renumbered.
//!
//! *Invariant:* an appended step comes after every place that its task ever used in the
//! same numbering, so a page that ended at a deleted step does not skip it.

use serde::{Deserialize, Serialize};

use super::{ids::StepId, step::Placement};

/// Distance between two appended steps.
pub const GAP: i64 = 1 << 20;
/// Longest fraction, in bytes.
pub const MAX_FRACTION_BYTES: usize = 128;

/// The place of a step in its task. Places compare in the order of the steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The whole number.
    pub position: i64,
    /// The fraction: bytes compared one by one, never ending in 0.
    pub fraction: Vec<u8>,
}

impl Place {
    /// The place of the step at an index when a task is numbered anew.
    pub fn nth(index: usize) -> Self {
        let number = i64::try_from(index).unwrap_or(i64::MAX / GAP - 1);
        Self {
            position: (number + 1).saturating_mul(GAP),
            fraction: Vec::new(),
        }
    }

    /// A place between two neighbours, `low < high`; `None` if the fraction would be too
    /// long, so that the task must be renumbered.
    pub fn between(low: &Place, high: &Place) -> Option<Self> {
        let room = high.position.checked_sub(low.position)?;
        let place = if room >= 2 {
            Self {
                position: low.position + room / 2,
                fraction: Vec::new(),
            }
        } else {
            let limit = (room == 0).then_some(high.fraction.as_slice());
            Self {
                position: low.position,
                fraction: middle(&low.fraction, limit),
            }
        };
        (place.fraction.len() <= MAX_FRACTION_BYTES).then_some(place)
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
    /// The place after all that were ever used; `None` if there are no more numbers.
    pub fn append(self) -> Option<Place> {
        Some(Place {
            position: self.last_position.checked_add(GAP)?,
            fraction: Vec::new(),
        })
    }

    /// The numbering after a place is used.
    fn with(self, place: &Place) -> Self {
        Self {
            last_position: self.last_position.max(place.position),
            ..self
        }
    }
}

/// The steps between which a new one is inserted.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// The place of the step before it.
    pub before: Place,
    /// The place of the step after it; `None` if the step before is the last.
    pub after: Option<Place>,
}

/// The change of a task's order by a new or a removed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderChange {
    /// A step is appended; the database computes its place.
    Append,
    /// A step is inserted at a place.
    Insert {
        /// The number of the place.
        position: i64,
    },
    /// A step is inserted and all steps are renumbered.
    Renumber {
        /// The number of the last step.
        last_position: i64,
    },
    /// A step is removed.
    Remove,
}

/// The insertion of a new step.
#[derive(Clone, Debug)]
pub struct Insertion {
    /// How the place relates to the requested one.
    pub placement: Placement,
    /// The place; `None` appends, and the database computes the place.
    pub place: Option<Place>,
    /// The change of the task's order.
    pub change: OrderChange,
    /// Other steps that get a new place.
    pub moved: Vec<(StepId, Place)>,
    /// The version of the task that the place is based on, if the task is not locked.
    pub task_version: Option<i64>,
}

impl Insertion {
    /// Appends the step, whatever steps there are.
    pub fn at_end(placement: Placement) -> Self {
        Self {
            placement,
            place: None,
            change: OrderChange::Append,
            moved: Vec::new(),
            task_version: None,
        }
    }

    /// Inserts after a step of an unlocked task, whose neighbours were read in this version of
    /// the task; `None` if there is no room.
    pub fn after(neighbours: &Neighbours, task_version: i64) -> Option<Self> {
        let appended = Self {
            task_version: Some(task_version),
            ..Self::at_end(Placement::AfterPrevstep)
        };
        match &neighbours.after {
            None => Some(appended),
            Some(after) => Some(appended.at(Place::between(&neighbours.before, after)?)),
        }
    }

    /// Inserts after a step, or appends, in a locked task; `None` if there is no room.
    pub fn in_locked(
        placement: Placement,
        neighbours: Option<&Neighbours>,
        numbering: Numbering,
    ) -> Option<Self> {
        let place = match neighbours {
            Some(Neighbours {
                before,
                after: Some(after),
            }) => Place::between(before, after)?,
            Some(Neighbours { after: None, .. }) | None => numbering.append()?,
        };
        Some(Self::at_end(placement).at(place))
    }

    /// Inserts after a step, or appends, and renumbers all steps. `order` lists the existing
    /// steps.
    pub fn renumbering(placement: Placement, order: &[StepId], after: Option<StepId>) -> Self {
        let after = order.iter().position(|step| Some(*step) == after);
        let index = after.map_or(order.len(), |after| after + 1);
        let place = |at: usize| Place::nth(if at < index { at } else { at + 1 });
        let moved = order.iter().enumerate();
        Self {
            place: Some(Place::nth(index)),
            change: OrderChange::Renumber {
                last_position: Place::nth(order.len()).position,
            },
            moved: moved.map(|(at, step)| (*step, place(at))).collect(),
            ..Self::at_end(placement)
        }
    }

    fn at(self, place: Place) -> Self {
        Self {
            change: OrderChange::Insert {
                position: place.position,
            },
            place: Some(place),
            ..self
        }
    }
}

/// Places for steps in a new order, and the new numbering. `known` are the places of
/// existing steps. They are kept if possible; otherwise all steps are renumbered.
pub fn arrange(known: &[Option<&Place>], numbering: Numbering) -> (Vec<Place>, Numbering) {
    if let Some(kept) = keep_known(known, numbering) {
        return kept;
    }
    let places: Vec<Place> = (0..known.len()).map(Place::nth).collect();
    let numbering = Numbering {
        epoch: numbering.epoch + 1,
        last_position: places.last().map_or(0, |place| place.position),
    };
    (places, numbering)
}

/// Places that keep every known one; `None` if the known ones change their order or
/// there is no room.
fn keep_known(
    known: &[Option<&Place>],
    mut numbering: Numbering,
) -> Option<(Vec<Place>, Numbering)> {
    let existing: Vec<&Place> = known.iter().copied().flatten().collect();
    if !existing.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut ahead = existing.into_iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(known.len());
    for known in known {
        let place = match (known, places.last(), ahead.peek()) {
            (Some(place), _, _) => {
                ahead.next();
                (*place).clone()
            }
            (None, Some(low), Some(high)) => Place::between(low, high)?,
            (None, _, None) => numbering.append()?,
            // No place is made before the first existing one: all steps are renumbered.
            (None, None, Some(_)) => return None,
        };
        numbering = numbering.with(&place);
        places.push(place);
    }
    Some((places, numbering))
}

/// The end of a page of a task's steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCursor {
    /// The numbering of the place. The cursor is invalid after a renumbering.
    pub epoch: i64,
    /// The place of the last step of the page, which may since have been deleted.
    pub place: Place,
}

/// A byte string between two; `None` is no upper bound.
fn middle(low: &[u8], mut high: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(low.len() + 1);
    for index in 0.. {
        let floor = u16::from(low.get(index).copied().unwrap_or(0));
        let ceiling = high
            .and_then(|high| high.get(index))
            .map_or(256, |byte| u16::from(*byte));
        if ceiling > floor + 1 {
            out.push(u8::try_from(u16::midpoint(floor, ceiling)).unwrap_or(u8::MAX));
            break;
        }
        if ceiling > floor {
            // Any further bytes keep the result below `high`.
            high = None;
        }
        out.push(u8::try_from(floor).unwrap_or(u8::MAX));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sorted places and their numbering.
    #[derive(Default)]
    struct Places {
        all: Vec<Place>,
        numbering: Numbering,
    }

    impl Places {
        fn of(count: usize) -> Self {
            let (all, numbering) = arrange(&vec![None; count], Numbering::default());
            Self { all, numbering }
        }

        /// Inserts after the element at an index, or appends. Returns whether all were
        /// renumbered.
        fn insert(&mut self, after: Option<usize>) -> bool {
            let after = after.filter(|index| *index < self.all.len());
            let epoch = self.numbering.epoch;
            let mut known: Vec<Option<&Place>> = self.all.iter().map(Some).collect();
            known.insert(after.map_or(known.len(), |index| index + 1), None);
            let (all, numbering) = arrange(&known, self.numbering);
            *self = Self { all, numbering };
            numbering.epoch != epoch
        }

        fn are_sorted(&self) -> bool {
            self.all.is_sorted_by(|a, b| a < b)
        }
    }

    #[test]
    fn five_hundred_inserts_between_the_same_steps_need_no_renumbering() {
        let mut places = Places::of(2);
        for _ in 0..500 {
            assert!(!places.insert(Some(0)));
        }
        assert!(places.are_sorted());
    }

    #[test]
    fn places_without_room_between_them_are_renumbered() {
        let mut places = Places::of(2);
        let renumbered = (0..3_000).filter(|_| places.insert(Some(0))).count();
        assert!((1..=3).contains(&renumbered), "{renumbered}");
        assert!(places.are_sorted());
    }

    /// So that none of the numberings before it has the same number.
    #[test]
    fn a_new_numbering_has_the_next_number() {
        let places = Places::of(2);
        let exchanged = [places.all.get(1), places.all.first()];
        let numbering = Numbering {
            epoch: 5,
            ..places.numbering
        };
        assert_eq!(arrange(&exchanged, numbering).1.epoch, 6);
    }

    #[test]
    fn an_appended_step_comes_after_a_deleted_last_one() {
        let mut places = Places::of(3);
        let deleted = places.all.pop();
        places.insert(None);
        assert!(places.all.last() > deleted.as_ref());
    }

    #[test]
    fn a_renumbering_makes_room_after_a_step() {
        let ids: Vec<StepId> = (0..3).map(|_| StepId(uuid::Uuid::now_v7())).collect();
        let insertion = Insertion::renumbering(Placement::AfterPrevstep, &ids, Some(ids[0]));
        assert_eq!(insertion.place, Some(Place::nth(1)));
        let moved: Vec<Place> = insertion
            .moved
            .into_iter()
            .map(|(_, place)| place)
            .collect();
        assert_eq!(moved, [Place::nth(0), Place::nth(2), Place::nth(3)]);
        let last_position = Place::nth(3).position;
        assert_eq!(insertion.change, OrderChange::Renumber { last_position });
    }

    proptest! {
        #[test]
        fn any_history_of_inserts_stays_sorted(
            indexes in prop::collection::vec(prop::option::of(0_usize..40), 1..400),
        ) {
            let mut places = Places::default();
            for index in indexes {
                places.insert(index);
                prop_assert!(places.are_sorted());
                prop_assert!(places.all.iter().all(|place| place.fraction.last() != Some(&0)));
                let last = places.all.iter().map(|place| place.position).max();
                prop_assert!(last <= Some(places.numbering.last_position));
            }
        }
    }
}
