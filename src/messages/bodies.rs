//! The bodies of messages. They can have megabytes, so they are moved out of the messages before
//! merging and decoding.

use std::{iter::once, mem::take};

use prost::Message;

use crate::{
    domain::{
        step::{Step, StepContent},
        text::{Body, MAX_BODY_CHARS, check},
    },
    messages::encode,
    proto::v1,
};

/// Bodies, which messages refer to by numbers.
#[derive(Debug, Default)]
pub struct Bodies(Vec<Body>);

/// Stands for a stored body that differs from the sent one.
const STORED: &str = "stored";

impl Bodies {
    /// Replaces the bodies of a step with their numbers. A body that exceeds a limit stays in the
    /// message, where the decoder refuses it.
    pub fn take_from(&mut self, message: &mut v1::Step) {
        let translations = message.translations.values_mut().map(|it| &mut it.body);
        for text in once(&mut message.body).chain(translations).flatten() {
            if check(text, MAX_BODY_CHARS).is_ok()
                && let Ok(body) = Body::parse(take(text))
            {
                *text = self.0.len().to_string();
                self.0.push(body);
            }
        }
    }

    /// Encodes a stored step like the sent one, with the same numbers for equal bodies.
    pub fn encode_stored(&self, stored: &Step, sent: &v1::Step) -> Vec<u8> {
        let mut message = encode::step_without_bodies(stored);
        let name = |stored: &Body, sent: Option<&String>| {
            let equal = sent.filter(|number| self.find(number) == Some(stored));
            equal.map_or(STORED, String::as_str).to_owned()
        };
        let stored = &stored.content;
        message.body = stored
            .body
            .as_ref()
            .map(|body| name(body, sent.body.as_ref()));
        for (language, translation) in &stored.translations {
            let sent = sent.translations.get(language.as_str());
            let number = sent.and_then(|sent| sent.body.as_ref());
            if let Some(message) = message.translations.get_mut(language.as_str()) {
                message.body = translation.body.as_ref().map(|body| name(body, number));
            }
        }
        message.encode_to_vec()
    }

    fn find(&self, number: &str) -> Option<&Body> {
        self.0.get(number.parse::<usize>().ok()?)
    }

    /// Restores the bodies: the sent ones, and the ones of the stored step.
    pub fn restore(&self, content: &mut StepContent, stored: Option<&Step>) {
        let stored = stored.map(|step| &step.content);
        let restore = |body: &mut Option<Body>, stored: Option<&Option<Body>>| {
            if let Some(named) = body {
                let sent = self.find(named.as_str()).cloned();
                *body = sent.or_else(|| stored.cloned().flatten());
            }
        };
        restore(&mut content.body, stored.map(|it| &it.body));
        for (language, translation) in &mut content.translations {
            let stored = stored.and_then(|it| it.translations.get(language));
            restore(&mut translation.body, stored.map(|it| &it.body));
        }
    }
}
