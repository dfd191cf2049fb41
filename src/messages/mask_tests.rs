#![allow(clippy::expect_used)]

use proptest::prelude::*;
use prost::Message;
use prost_types::FileDescriptorSet;

use super::*;
use crate::proto::FILE_DESCRIPTOR_SET;

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
        let known = [fields.honored, fields.ignored, fields.identifying].concat();
        let count = known.len();
        let known: BTreeSet<_> = known.into_iter().map(str::to_owned).collect();
        assert_eq!(known.len(), count, "{message}: a field twice");
        assert_eq!(known, fields_of(message));
        let row_fields: BTreeSet<_> = fields.translation.iter().map(ToString::to_string).collect();
        assert_eq!(row_fields, fields_of(row));
    }
}

proptest! {
    #[test]
    fn a_path_is_known_or_refused(path in "(translations\\.)?[a-z_.`*-]{0,20}") {
        let mut violations = Violations::new();
        let mask = FieldMask { paths: vec!["title".to_owned(), path] };
        Mask::parse(Some(mask), &STEP, &mut violations, &mut Ignored::default());
        prop_assert!(violations.total() <= 1);
        let refused = violations.kept().iter();
        prop_assert!(refused.clone().all(|refused| refused.path == "update_mask.paths[1]"));
    }
}
