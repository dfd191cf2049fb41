//! Names that were probably meant.

/// How many characters a misspelt name differs by at most.
const MAX_DISTANCE: usize = 2;
/// Most bytes of a name that is compared.
const MAX_NAME_BYTES: usize = 200;

/// The candidate that a name may be a misspelling of.
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
