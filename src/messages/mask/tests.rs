#![allow(clippy::expect_used)]

use proptest::prelude::*;
use prost::Message;
use prost_types::FileDescriptorSet;

use super::*;
use crate::{
    messages::fields::{STEP, TASK},
    proto::v1,
};

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

#[test]
fn a_document_keeps_a_step_only_if_each_sent_field_is_as_stored() {
    let text = |title: &str| v1::StepTranslation {
        title: Some(title.to_owned()),
        ..v1::StepTranslation::default()
    };
    let stored = v1::Step {
        title: "Replace the fuse".to_owned(),
        tags: vec!["fuse".to_owned(), "panel".to_owned()],
        dependency_shorthand: Some("voltage = high".to_owned()),
        translations: [("de".to_owned(), text("Sicherung ersetzen"))].into(),
        ..v1::Step::default()
    };
    let keeps = |absent, change: fn(&mut v1::Step)| {
        let mut sent = stored.clone();
        change(&mut sent);
        let mask = Mask::for_document(absent, BTreeSet::new(), &STEP);
        mask.keeps_all(&stored.encode_to_vec(), &sent.encode_to_vec(), &["parts"])
    };
    type Change = (bool, fn(&mut v1::Step));
    let changes: [Change; 7] = [
        (true, |_| {}),
        (true, |step| step.parts.push("ignored".to_owned())),
        (true, |step| step.r#type = 5),
        (false, |step| step.title.push('s')),
        (false, |step| step.tags.reverse()),
        (false, |step| {
            step.dependency_shorthand = Some("a = b".to_owned())
        }),
        (false, |step| {
            let german = step.translations.get_mut("de");
            german.expect("a translation").locked = Some(true);
        }),
    ];
    for (index, (kept, change)) in changes.iter().enumerate() {
        assert_eq!(keeps(AbsentFields::Keep, *change), *kept, "change {index}");
        assert_eq!(keeps(AbsentFields::Reset, *change), *kept, "change {index}");
    }
    let without_tags: fn(&mut v1::Step) = |step| step.tags.clear();
    assert!(keeps(AbsentFields::Keep, without_tags));
    assert!(!keeps(AbsentFields::Reset, without_tags));
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
