#![allow(clippy::expect_used)]

use proptest::prelude::*;
use prost::Message;
use prost_types::FileDescriptorSet;

use super::*;
use crate::{
    messages::decode::{step::STEP_FIELDS, task::TASK_FIELDS},
    proto::FILE_DESCRIPTOR_SET,
};

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
        ("Task", "TaskTranslation", &TASK_FIELDS),
        ("Step", "StepTranslation", &STEP_FIELDS),
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

/// The comment of the field `update_mask` of a message.
fn comment_of_mask(message: &str) -> String {
    /// Numbers of `message_type` in a file and of `field` in a message, by which comments are
    /// found.
    const MESSAGE: i32 = 4;
    const FIELD: i32 = 2;
    let documented = include_bytes!(concat!(env!("OUT_DIR"), "/documented.bin"));
    let set = FileDescriptorSet::decode(&documented[..]).expect("the descriptors");
    let comments = set.file.iter().filter_map(|file| {
        let at = |index: usize| i32::try_from(index).expect("an index");
        let messages = &file.message_type;
        let number = messages.iter().position(|it| it.name() == message)?;
        let mut fields = messages.get(number)?.field.iter();
        let field = fields.position(|field| field.name() == "update_mask")?;
        let path = [MESSAGE, at(number), FIELD, at(field)];
        let locations = &file.source_code_info.as_ref()?.location;
        let location = locations.iter().find(|location| location.path == path)?;
        Some(location.leading_comments().replace('\n', " "))
    });
    comments.collect()
}

#[test]
fn the_comment_of_a_mask_lists_every_field_that_an_update_changes() {
    for (message, fields) in [
        ("UpdateTaskRequest", &TASK_FIELDS),
        ("UpdateStepRequest", &STEP_FIELDS),
    ] {
        let comment = comment_of_mask(message);
        let list = comment.split_once("The fields to change: ");
        let list = list.and_then(|(_, list)| list.split_once(", or single translations"));
        let (list, _) = list.expect("a list of fields");
        let named = list.split(',').map(|name| name.trim().trim_matches('`'));
        assert_eq!(named.collect::<Vec<_>>(), fields.honored, "{message}");
    }
}

proptest! {
    #[test]
    fn a_path_is_known_or_refused(path in "(translations\\.)?[a-z_.`*-]{0,20}") {
        let mut violations = Violations::new();
        let mask = FieldMask { paths: vec!["title".to_owned(), path] };
        Mask::parse(Some(mask), &STEP_FIELDS, &mut violations, &mut Ignored::default());
        prop_assert!(violations.total() <= 1);
        let refused = violations.kept().iter();
        prop_assert!(refused.clone().all(|refused| refused.path == "update_mask.paths[1]"));
    }
}
