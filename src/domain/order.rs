//! The order of a task's steps.
//!
//! A step's place is a whole number and, where no number is left between two
//! neighbours, a fraction behind it. A new place is found from its two
//! neighbours alone, and no other step changes, so an insert costs the same in
//! a task of any length. Places grow by one bit for each insert at the same
//! spot; past [`FRACTION_MAX`] the task is renumbered.
//!
//! *Invariant:* an appended step stands behind every place that its task ever gave
//! out in the same numbering, so a page that ended at a deleted step does not skip it.

use super::{ids::StepId, step::Placement};

/// Distance between two steps that were appended.
pub const GAP: i64 = 1 << 20;
/// Longest fraction, in bytes.
pub const FRACTION_MAX: usize = 128;

/// Where a step stands among its siblings; compares like the order itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number.
    pub position: i64,
    /// What comes behind the number: bytes compared one by one, never ending
    /// in 0.
    pub fraction: Vec<u8>,
}

impl Place {
    /// The place of the element at an index of a fresh numbering.
    pub fn nth(index: usize) -> Self {
        let number = i64::try_from(index).unwrap_or(i64::MAX / GAP - 1);
        Self {
            position: (number + 1).saturating_mul(GAP),
            fraction: Vec::new(),
        }
    }

    /// A place between two neighbours, `low < high`; `None` when the fraction
    /// would be too long and the task is to be renumbered.
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
        (place.fraction.len() <= FRACTION_MAX).then_some(place)
    }
}

/// How the steps of a task are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// Counts the numberings: a place means nothing in another one.
    pub epoch: i64,
    /// The largest number that was given out. It does not fall when a step is deleted.
    pub last_position: i64,
}

impl Numbering {
    /// The place behind all that were given out; `None` when numbers run out.
    pub fn append(self) -> Option<Place> {
        Some(Place {
            position: self.last_position.checked_add(GAP)?,
            fraction: Vec::new(),
        })
    }

    /// The numbering once a place is given out.
    fn with(self, place: &Place) -> Self {
        Self {
            last_position: self.last_position.max(place.position),
            ..self
        }
    }
}

/// The place of a step, and of the one behind it.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// The step's.
    pub before: Place,
    /// That of the one behind it; `None` if it is the last.
    pub after: Option<Place>,
}

/// What a new or a removed step does to the order of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderChange {
    /// A step is added behind all places; the database counts.
    Append,
    /// A step is added at a place with this number.
    Insert {
        /// The number.
        position: i64,
    },
    /// A step is added and all are numbered anew.
    Renumber {
        /// The number of the last one.
        last_position: i64,
    },
    /// A step is removed.
    Remove,
}

/// Where a new step goes.
#[derive(Clone, Debug)]
pub struct Insertion {
    /// How that relates to what was asked for.
    pub placement: Placement,
    /// The place; `None` is behind all others, where the database finds it.
    pub place: Option<Place>,
    /// What it does to the order of the task.
    pub change: OrderChange,
    /// Other steps that move.
    pub moved: Vec<(StepId, Place)>,
    /// The version of the task in which the place was found, where the task is not
    /// locked.
    pub task_version: Option<i64>,
}

impl Insertion {
    /// Behind all others, whatever they are.
    pub fn at_end(placement: Placement) -> Self {
        Self {
            placement,
            place: None,
            change: OrderChange::Append,
            moved: Vec::new(),
            task_version: None,
        }
    }

    /// Behind a step, as seen in a version of the task; `None` when there is no room.
    pub fn after(neighbours: &Neighbours, task_version: i64) -> Option<Self> {
        let end = Self {
            task_version: Some(task_version),
            ..Self::at_end(Placement::AfterPrevstep)
        };
        match &neighbours.after {
            None => Some(end),
            Some(after) => Some(end.at(Place::between(&neighbours.before, after)?)),
        }
    }

    /// Behind a step, or at the end, of a locked task; `None` when there is no room.
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

    /// Behind a step, or at the end, with all steps numbered anew. `order` are the
    /// steps that there are.
    pub fn renumbering(placement: Placement, order: &[StepId], behind: Option<StepId>) -> Self {
        let behind = order.iter().position(|step| Some(*step) == behind);
        let index = behind.map_or(order.len(), |behind| behind + 1);
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

/// Places for steps in a new order, and how they are numbered then. `known` are the
/// places of those that are there already, which stay where they are if that can be;
/// else all are numbered anew.
pub fn arrange(known: &[Option<&Place>], numbering: Numbering) -> (Vec<Place>, Numbering) {
    if let Some(fitted) = fit(known, numbering) {
        return fitted;
    }
    let places: Vec<Place> = (0..known.len()).map(Place::nth).collect();
    let numbering = Numbering {
        epoch: numbering.epoch + 1,
        last_position: places.last().map_or(0, |place| place.position),
    };
    (places, numbering)
}

/// Places that leave every known one as it is; `None` when the known ones change their
/// order or there is no room.
fn fit(known: &[Option<&Place>], mut numbering: Numbering) -> Option<(Vec<Place>, Numbering)> {
    let standing: Vec<&Place> = known.iter().copied().flatten().collect();
    if !standing.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut ahead = standing.into_iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(known.len());
    for known in known {
        let place = match (known, places.last(), ahead.peek()) {
            (Some(place), _, _) => {
                ahead.next();
                (*place).clone()
            }
            (None, Some(low), Some(high)) => Place::between(low, high)?,
            (None, _, None) => numbering.append()?,
            // Nothing is ever placed before a first step that stands.
            (None, None, Some(_)) => return None,
        };
        numbering = numbering.with(&place);
        places.push(place);
    }
    Some((places, numbering))
}

/// Where a page of a task's steps ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCursor {
    /// The numbering that the place belongs to. When the order has been made
    /// anew since, the place means nothing.
    pub epoch: i64,
    /// The place of the last step shown, whether or not it is still there.
    pub place: Place,
}

/// A byte string between two, of which the upper may be open.
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
            // Whatever follows stays below `high`.
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

    /// Places in their order, with how they are numbered.
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

        /// Inserts behind the element at an index, or at the end; whether all were
        /// numbered anew for it.
        fn insert(&mut self, behind: Option<usize>) -> bool {
            let behind = behind.filter(|index| *index < self.all.len());
            let epoch = self.numbering.epoch;
            let mut known: Vec<Option<&Place>> = self.all.iter().map(Some).collect();
            known.insert(behind.map_or(known.len(), |index| index + 1), None);
            let (all, numbering) = arrange(&known, self.numbering);
            *self = Self { all, numbering };
            numbering.epoch != epoch
        }

        fn are_sorted(&self) -> bool {
            self.all.is_sorted_by(|a, b| a < b)
        }
    }

    #[test]
    fn five_hundred_inserts_at_one_spot_need_no_renumbering() {
        let mut places = Places::of(2);
        for _ in 0..500 {
            assert!(!places.insert(Some(0)));
        }
        assert!(places.are_sorted());
    }

    #[test]
    fn a_spot_that_runs_full_is_renumbered() {
        let mut places = Places::of(2);
        let renumbered = (0..3_000).filter(|_| places.insert(Some(0))).count();
        assert!((1..=3).contains(&renumbered), "{renumbered}");
        assert!(places.are_sorted());
    }

    #[test]
    fn an_appended_step_stands_behind_a_deleted_last_one() {
        let mut places = Places::of(3);
        let deleted = places.all.pop();
        places.insert(None);
        assert!(places.all.last() > deleted.as_ref());
    }

    #[test]
    fn a_renumbering_makes_room_behind_a_step() {
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
            spots in prop::collection::vec(prop::option::of(0_usize..40), 1..400),
        ) {
            let mut places = Places::default();
            for spot in spots {
                places.insert(spot);
                prop_assert!(places.are_sorted());
                prop_assert!(places.all.iter().all(|place| place.fraction.last() != Some(&0)));
                let last = places.all.iter().map(|place| place.position).max();
                prop_assert!(last <= Some(places.numbering.last_position));
            }
        }
    }
}
