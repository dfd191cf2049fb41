#![allow(clippy::expect_used)]

use proptest::prelude::*;
use prost::Message;
use prost_types::FileDescriptorSet;

use super::*;
use crate::proto::FILE_DESCRIPTOR_SET;

struct Parsed {
    mask: Mask,
    violations: Vec<(String, Reason)>,
    ignored: Vec<String>,
}

fn parse(paths: &[&str]) -> Parsed {
    let paths = paths.iter().map(ToString::to_string).collect();
    let mut violations = Violations::new();
    let mut ignored = Ignored::default();
    let mask = Mask::parse(
        Some(FieldMask { paths }),
        &STEP,
        &mut violations,
        &mut ignored,
    );
    let violations = violations.kept().iter();
    Parsed {
        mask,
        violations: violations.map(|f| (f.path.clone(), f.reason)).collect(),
        ignored: ignored.into_paths("step"),
    }
}

fn rows(paths: &[&str]) -> Vec<(String, Vec<&'static str>)> {
    let Parsed {
        mask, violations, ..
    } = parse(paths);
    assert_eq!(violations, []);
    let TranslationsMask::Only(rows) = mask.translations() else {
        panic!("not single rows: {mask:?}");
    };
    rows.iter()
        .map(|(language, row)| {
            let fields = match row {
                LanguageMask::Whole => vec!["*"],
                LanguageMask::Fields(fields) => fields.iter().copied().collect(),
            };
            (language.to_string(), fields)
        })
        .collect()
}

/// The field names of a message of the contract.
fn fields_of(message: &str) -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the descriptors");
    set.file
        .into_iter()
        .filter(|file| file.package() == "expertise.v1")
        .flat_map(|file| file.message_type)
        .filter(|found| found.name() == message)
        .flat_map(|found| found.field)
        .map(|field| field.name().to_owned())
        .collect()
}

#[test]
fn masks_have_every_field_of_the_contract() {
    for (message, row, fields) in [
        ("Task", "TaskTranslation", &TASK),
        ("Step", "StepTranslation", &STEP),
    ] {
        let known = [fields.honored, fields.listed, fields.silent].concat();
        let count = known.len();
        let known: BTreeSet<_> = known.into_iter().map(str::to_owned).collect();
        assert_eq!(known.len(), count, "{message}: a field twice");
        assert_eq!(known, fields_of(message));
        let row_fields: BTreeSet<_> = fields.translation.iter().map(ToString::to_string).collect();
        assert_eq!(row_fields, fields_of(row));
    }
}

#[test]
fn no_paths_are_no_mask() {
    assert_eq!(parse(&[]).mask, Mask::Populated);
    let mut ignored = Ignored::default();
    let mask = Mask::parse(None, &STEP, &mut Violations::new(), &mut ignored);
    assert_eq!(mask, Mask::Populated);
}

#[test]
fn a_star_stands_alone() {
    assert_eq!(parse(&["*"]).mask, Mask::All);
    let invalid = |path: &str| (path.to_owned(), Reason::FieldInvalid);
    assert_eq!(
        parse(&["title", "*"]).violations,
        [invalid("update_mask.paths[1]")]
    );
    assert_eq!(
        parse(&["*", "*"]).violations,
        [
            invalid("update_mask.paths[0]"),
            invalid("update_mask.paths[1]")
        ]
    );
}

#[test]
fn a_key_is_plain_or_in_backticks() {
    assert_eq!(
        rows(&[
            "translations.DE",
            "translations.`pt-br`",
            "translations.zh-hant.title",
            "translations.`zh-Hant`.body",
        ]),
        [
            ("de".to_owned(), vec!["*"]),
            ("pt-BR".to_owned(), vec!["*"]),
            ("zh-Hant".to_owned(), vec!["body", "title"]),
        ]
    );
}

#[test]
fn a_wider_path_includes_a_narrower_one() {
    for paths in [
        ["translations.de", "translations.de.title"],
        ["translations.de.title", "translations.de"],
    ] {
        assert_eq!(rows(&paths), [("de".to_owned(), vec!["*"])]);
    }
    for paths in [
        ["translations", "translations.de"],
        ["translations.de", "translations"],
    ] {
        assert!(matches!(
            parse(&paths).mask.translations(),
            TranslationsMask::Replace
        ));
    }
}

#[test]
fn ignored_fields_are_listed_except_guid_and_etag() {
    let parsed = parse(&["type", "guid", "etag", "task", "title"]);
    assert_eq!(parsed.violations, []);
    assert_eq!(parsed.ignored, ["step.task", "step.type"]);
    assert!(parsed.mask.names("title"));
}

#[test]
fn an_unknown_path_is_refused_at_its_index() {
    for (path, reason) in [
        ("", Reason::MaskPathUnknown),
        ("nonsense", Reason::MaskPathUnknown),
        ("title.x", Reason::MaskPathUnknown),
        ("tags[0]", Reason::MaskPathUnknown),
        ("step.title", Reason::MaskPathUnknown),
        ("translations.de.name", Reason::MaskPathUnknown),
        ("translations.de.title.x", Reason::MaskPathUnknown),
        ("translations.de.", Reason::MaskPathUnknown),
        ("translations.`de`title", Reason::MaskPathUnknown),
        ("translationsde", Reason::MaskPathUnknown),
        ("translations.", Reason::FieldInvalid),
        ("translations.d_e", Reason::FieldInvalid),
        ("translations.`de", Reason::FieldInvalid),
        ("translations.``", Reason::FieldInvalid),
    ] {
        let violations = parse(&["title", path]).violations;
        assert_eq!(
            violations,
            [("update_mask.paths[1]".to_owned(), reason)],
            "{path}"
        );
    }
}

proptest! {
    #[test]
    fn a_path_is_known_or_refused(path in "(translations\\.)?[a-z_.`*-]{0,20}") {
        let parsed = parse(&["title", &path]);
        prop_assert!(parsed.violations.len() <= 1);
        prop_assert!(parsed.violations.iter().all(|(at, _)| at == "update_mask.paths[1]"));
    }
}
