//! Suggestions for misspelled names.

/// The maximum edit distance of a misspelled name.
const MAX_DISTANCE: usize = 2;
/// Longer names are not compared.
const MAX_NAME_BYTES: usize = 200;

/// The closest candidate that the name may be a misspelling of.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let distances = candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate));
    let near = distances.filter(|(distance, _)| *distance <= MAX_DISTANCE);
    near.min().map(|(_, candidate)| candidate)
}
