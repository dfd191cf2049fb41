//! The pages of `tests/cli`, each a test.

use std::{collections::BTreeSet, fs};

use super::transcript;

/// Declares the tests of pages.
macro_rules! transcripts {
    ($($page:ident)+) => {
        const PAGES: &[&str] = &[$(stringify!($page)),+];

        $(#[test]
        fn $page() {
            transcript::check(stringify!($page));
        })+
    };
}

transcripts! {
    accounts apply caller changes credentials databases delete diff drift edit edit_merge export
    export_large graph health history import lint list manual merge names new preview prune
    references references_between_files restore retries settings show translate
}

#[test]
fn every_page_is_run() {
    let files = fs::read_dir(transcript::directory()).expect("the pages");
    let files = files.filter_map(|file| {
        let name = file.expect("a page").file_name().into_string();
        name.ok()?.strip_suffix(".md").map(str::to_owned)
    });
    let run = PAGES.iter().map(|page| (*page).to_owned());
    assert_eq!(files.collect::<BTreeSet<_>>(), run.collect());
}
