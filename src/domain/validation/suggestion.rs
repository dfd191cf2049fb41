//! Names that were probably meant.

use serde_json::Value;

use super::{
    budget::{Budget, Work},
    finding::{Finding, shortened},
};

/// What a candidate costs that is looked at, in pairs of characters.
const CANDIDATE_COST: usize = 16;
/// The most characters of a suggestion in a hint. The fact has all of it.
const MAX_SUGGESTED_CHARS: usize = 200;

impl Finding {
    /// Adds the name that the caller probably meant.
    pub fn suggesting(mut self, name: &str) -> Self {
        let shown = shortened(name, MAX_SUGGESTED_CHARS);
        self.hint = format!("Is `{shown}` meant? {}", self.hint);
        let name = Value::String(name.to_owned());
        self.facts.insert("suggestion".to_owned(), name);
        self
    }
}

/// The candidate with the least edit distance: at most 2 or a third of the name's length,
/// whichever is more, and so that they have something in common. What both begin with up to a
/// dot, such as `components.7.`, does not count.
/// `None` once too many candidates and pairs of characters were compared.
pub fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    budget: &Budget<'_>,
) -> Option<&'c str> {
    let mut closest: Option<(usize, &str)> = None;
    for candidate in candidates {
        if !budget.spend(Work::Suggestions, CANDIDATE_COST) {
            return None;
        }
        let (rest, other) = without_common_groups(name, candidate);
        let length = rest.chars().count();
        let max_distance = (length / 3).max(2);
        // A character has up to four bytes.
        let most_bytes = 4 * (length + max_distance);
        if candidate == name || other.len() > most_bytes {
            continue;
        }
        let other_length = other.chars().count();
        if other_length.abs_diff(length) > max_distance {
            continue;
        }
        if !budget.spend(Work::Suggestions, length * other_length) {
            return None;
        }
        let distance = strsim::levenshtein(rest, other);
        let is_similar = distance <= max_distance && distance < length.max(other_length);
        let found = (distance, candidate);
        if is_similar && closest.is_none_or(|closest| found < closest) {
            closest = Some(found);
        }
    }
    closest.map(|(_, candidate)| candidate)
}

/// What follows the last dot up to which two names are the same.
fn without_common_groups<'n>(name: &'n str, other: &'n str) -> (&'n str, &'n str) {
    let pairs = name.bytes().zip(other.bytes());
    let common = pairs.take_while(|(one, another)| one == another);
    let after_dot = common
        .zip(1..)
        .filter(|((byte, _), _)| *byte == b'.')
        .last();
    let begin = after_dot.map_or(0, |(_, length)| length);
    (
        name.get(begin..).unwrap_or(name),
        other.get(begin..).unwrap_or(other),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::analysis::StopSignal;

    #[test]
    fn the_closest_name_differs_by_two_or_a_third_of_the_length() {
        let names = ["charge_light", "charge_light_after", "power"];
        for (name, found) in [
            ("charge_ligth", Some("charge_light")),
            ("powr", Some("power")),
            ("pwr", Some("power")),
            ("pow", Some("power")),
            ("po", None),
            ("power", None),
            ("charge", None),
            ("charge_light_af", Some("charge_light")),
        ] {
            let budget = Budget::new(StopSignal::NEVER);
            assert_eq!(closest(name, names, &budget), found, "{name}");
        }
    }

    #[test]
    fn of_several_similar_names_the_closest_is_found_or_the_first_in_order() {
        for names in [
            ["voltbges", "voltagee", "voltagea"],
            ["voltagea", "voltbges", "voltagee"],
        ] {
            let budget = Budget::new(StopSignal::NEVER);
            assert_eq!(closest("voltage", names, &budget), Some("voltagea"));
        }
    }

    #[test]
    fn the_closest_name_has_something_in_common_that_not_every_name_has() {
        for (name, candidate, is_closest) in [
            ("components.7.powr", "components.7.power", true),
            ("components.7.display", "components.7.power", false),
            ("components.7.zz", "components.7.ab", false),
            ("components.71.power", "components.7.power", true),
            ("component.7.power", "components.7.power", true),
            ("ja", "no", false),
            ("jo", "no", true),
            ("é.a.x", "é.a.y.z", false),
        ] {
            let budget = Budget::new(StopSignal::NEVER);
            let found = is_closest.then_some(candidate);
            assert_eq!(closest(name, [candidate], &budget), found, "{name}");
        }
    }

    #[test]
    fn the_closest_name_is_looked_for_as_long_as_comparisons_are_left() {
        for (left, found) in [(41, Some("power")), (40, None)] {
            let budget = Budget::new(StopSignal::NEVER).with(Work::Suggestions, left);
            assert_eq!(closest("powre", ["power"], &budget), found);
        }
    }
}
