//! Which subtags of language tags are registered.

use std::{collections::HashSet, ops::RangeInclusive, sync::LazyLock};

use super::Language;

/// The registered subtags in canonical case, which tells languages, scripts and regions apart.
static SUBTAGS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("subtags.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});
/// The subtags for private use.
const PRIVATE_USE: [RangeInclusive<&str>; 4] =
    ["qaa"..="qtz", "Qaaa"..="Qabx", "QM"..="QZ", "XA"..="XZ"];
/// The maximum length of a registered language.
const MAX_LANGUAGE_BYTES: usize = 3;

impl Language {
    /// The first language, script, region or variant subtag that is not in the IANA Language Subtag
    /// Registry. Private use subtags count as registered.
    pub fn unregistered_subtag(&self) -> Option<String> {
        let tag = oxilangtag::LanguageTag::parse(self.as_str()).ok()?;
        let language = tag.primary_language();
        // Some tags are registered as a whole.
        if language.contains('-') || self.as_str().starts_with("x-") {
            return None;
        }
        let long = Some(language).filter(|it| it.len() > MAX_LANGUAGE_BYTES);
        let languages = [language]
            .into_iter()
            .chain(tag.extended_language_subtags());
        let subtags = languages.chain(tag.script()).chain(tag.region());
        let mut subtags = subtags.chain(tag.variant_subtags());
        let unknown = long.or_else(|| subtags.find(|it| !is_registered(it)));
        unknown.map(str::to_owned)
    }
}

fn is_registered(subtag: &str) -> bool {
    let is_private = |range: &RangeInclusive<&str>| {
        range.start().len() == subtag.len() && range.contains(&subtag)
    };
    SUBTAGS.contains(subtag) || PRIVATE_USE.iter().any(is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_subtag_that_is_not_registered_is_found() {
        for (tag, unknown) in [
            ("de", None),
            ("DE-ch-1996", None),
            ("gsw", None),
            ("tok", None),
            ("zh-yue-Hant-HK", None),
            ("es-419", None),
            ("qaa-Qaaa-QM", None),
            ("en-x-german", None),
            ("x-german", None),
            ("i-klingon", None),
            ("de-DE-u-co-phonebk", None),
            ("german", Some("german")),
            ("ge", Some("ge")),
            ("qb", Some("qb")),
            ("fonipa", Some("fonipa")),
            ("en-UK", Some("UK")),
            ("zh-Hanz", Some("Hanz")),
            ("de-1997", Some("1997")),
        ] {
            let language = Language::parse(tag).expect("a tag");
            assert_eq!(language.unregistered_subtag().as_deref(), unknown, "{tag}");
        }
    }
}
