#![allow(clippy::expect_used)]

use proptest::prelude::*;
use prost::Message;
use prost_types::FileDescriptorSet;

use super::*;
use crate::messages::fields::{STEP, TASK};

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
    for (message, fields) in [("UpdateTaskRequest", &TASK), ("UpdateStepRequest", &STEP)] {
        let comment = comment_of_mask(message);
        let list = comment.split_once("The fields to update: ");
        let list = list.and_then(|(_, list)| list.split_once(". A path"));
        let (list, _) = list.expect("a list of fields");
        let named = list.split('`').skip(1).step_by(2);
        assert_eq!(named.collect::<Vec<_>>(), fields.honored(), "{message}");
    }
}

proptest! {
    #[test]
    fn a_path_is_known_or_refused(path in "(translations\\.)?[a-z_.`*-]{0,20}") {
        let mut violations = Violations::new();
        let mask = FieldMask { paths: vec!["title".to_owned(), path] };
        Mask::parse(Some(mask), &STEP, &mut violations, &mut BTreeSet::new());
        prop_assert!(violations.total() <= 1);
        let refused = violations.kept().iter();
        prop_assert!(refused.clone().all(|refused| refused.path == "update_mask.paths[1]"));
    }
}
