//! Suggestions for names that look misspelled.

use serde_json::json;

use super::finding::{Finding, quoted};
use crate::domain::analysis::Allowance;

/// The fixed cost of each candidate, in compared pairs of characters.
const CANDIDATE_COST: usize = 16;

impl Finding {
    pub fn suggesting<'c>(
        mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str>,
        allowance: &Allowance,
    ) -> Self {
        if let Some(meant) = closest(name, candidates, allowance) {
            self.hint = format!("Did you mean {}? {}", quoted(meant), self.hint);
            self.facts.insert("suggestion".to_owned(), json!(meant));
        }
        self
    }
}

/// The candidate with the smallest edit distance. The distance is at most 2 or a third of the
/// name's length, whichever is more, and less than the length of the longer name. Common beginnings
/// up to a dot, such as `components.7.`, are not compared. `None` if the allowance is spent.
pub fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    allowance: &Allowance,
) -> Option<&'c str> {
    let mut closest: Option<(usize, &str)> = None;
    for candidate in candidates {
        if !allowance.spend(CANDIDATE_COST) {
            return None;
        }
        let (rest, other) = without_common_groups(name, candidate);
        let (length, other_length) = (rest.chars().count(), other.chars().count());
        let max_distance = (length / 3).max(2);
        if candidate == name || other_length.abs_diff(length) > max_distance {
            continue;
        }
        if !allowance.spend(length * other_length) {
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

/// The rest of two names after the last dot before which they are equal.
fn without_common_groups<'n>(name: &'n str, other: &'n str) -> (&'n str, &'n str) {
    let pairs = name.bytes().zip(other.bytes());
    let common = pairs.take_while(|(one, another)| one == another).count();
    let dot = name.bytes().take(common).rposition(|byte| byte == b'.');
    let begin = dot.map_or(0, |dot| dot + 1);
    (name.split_at(begin).1, other.split_at(begin).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_near_and_has_something_in_common_that_not_every_name_has() {
        let names = "charge_light charge_light_after power";
        for (name, candidates, found) in [
            ("charge_ligth", names, Some("charge_light")),
            ("pwr", names, Some("power")),
            ("pow", names, Some("power")),
            ("po", names, None),
            ("power", names, None),
            ("charge", names, None),
            ("charge_light_af", names, Some("charge_light")),
            ("voltage", "voltbges voltagee voltagea", Some("voltagea")),
            ("voltage", "voltagea voltbges voltagee", Some("voltagea")),
            (
                "components.7.powr",
                "components.7.power",
                Some("components.7.power"),
            ),
            ("components.7.display", "components.7.power", None),
            ("components.7.zz", "components.7.ab", None),
            (
                "components.71.power",
                "components.7.power",
                Some("components.7.power"),
            ),
            (
                "component.7.power",
                "components.7.power",
                Some("components.7.power"),
            ),
            ("ja", "no", None),
            ("jo", "no", Some("no")),
            ("é.a.x", "é.a.y.z", None),
        ] {
            let closest = closest(name, candidates.split(' '), &Allowance::new(1_000));
            assert_eq!(closest, found, "{name}");
        }
    }

    #[test]
    fn the_closest_name_is_looked_for_as_long_as_comparisons_are_left() {
        for (left, found) in [(41, Some("power")), (40, None)] {
            assert_eq!(closest("powre", ["power"], &Allowance::new(left)), found);
        }
    }
}
