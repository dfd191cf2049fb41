//! The order of a task's steps.
//!
//! A step's place is a whole number and, where no number is left between two
//! neighbours, a fraction behind it. A new place is found from its two
//! neighbours alone, and no other step changes, so an insert costs the same in
//! a task of any length. Places grow by one bit for each insert at the same
//! spot; past [`FRACTION_MAX`] the task is renumbered.

/// Room between two steps that were appended.
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

    /// A place after `last`, the last one there is; `None` when numbers run
    /// out.
    pub fn after(last: Option<&Place>) -> Option<Self> {
        let position = last.map_or(0, |last| last.position).checked_add(GAP)?;
        Some(Self {
            position,
            fraction: Vec::new(),
        })
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

/// Where a page of a task's steps ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
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

    /// Inserts after the element at an index, renumbering when there is no
    /// room, as the store does.
    fn insert(places: &mut Vec<Place>, after: Option<usize>) -> bool {
        let place = match after {
            Some(index) if index + 1 < places.len() => {
                Place::between(&places[index], &places[index + 1])
            }
            _ => Place::after(places.last()),
        };
        let Some(place) = place else {
            for (index, place) in places.iter_mut().enumerate() {
                *place = Place::nth(index);
            }
            assert!(!insert(places, after));
            return true;
        };
        let index = after.map_or(places.len(), |index| (index + 1).min(places.len()));
        places.insert(index, place);
        false
    }

    #[test]
    fn five_hundred_inserts_at_one_spot_need_no_renumbering() {
        let mut places = vec![Place::nth(0), Place::nth(1)];
        for _ in 0..500 {
            assert!(!insert(&mut places, Some(0)));
        }
        assert!(places.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_spot_that_runs_full_is_renumbered() {
        let mut places = vec![Place::nth(0), Place::nth(1)];
        let renumbered = (0..3_000).filter(|_| insert(&mut places, Some(0))).count();
        assert!((1..=3).contains(&renumbered), "{renumbered}");
        assert!(places.is_sorted_by(|a, b| a < b));
    }

    proptest! {
        #[test]
        fn any_history_of_inserts_stays_sorted(
            spots in prop::collection::vec(prop::option::of(0_usize..40), 1..400),
        ) {
            let mut places = Vec::new();
            for spot in spots {
                insert(&mut places, spot);
                prop_assert!(places.is_sorted_by(|a, b| a < b));
                prop_assert!(places.iter().all(|place| place.fraction.last() != Some(&0)));
            }
        }
    }
}
