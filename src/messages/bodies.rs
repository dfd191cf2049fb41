//! The bodies of messages. They can have megabytes, so they are kept outside of the messages while
//! these are merged and decoded.

use std::mem::take;

use prost::Message;

use crate::{
    domain::{
        step::Step,
        text::{Body, MAX_BODY_CHARS, check},
    },
    proto::v1,
};

/// Bodies that messages name by their numbers. Clones share the bodies.
#[derive(Clone, Debug, Default)]
pub struct Bodies(Vec<Body>);

impl Bodies {
    /// Replaces a body by its number. A body that breaks a limit stays in the message, where the decoder
    /// refuses it.
    pub fn take(&mut self, text: &mut String) {
        if check(text, MAX_BODY_CHARS).is_ok()
            && let Ok(body) = Body::parse(take(text))
        {
            *text = self.number(body);
        }
    }

    /// Equal bodies have the same number.
    fn number(&mut self, body: Body) -> String {
        let known = self.0.iter().position(|known| *known == body);
        let number = known.unwrap_or_else(|| {
            self.0.push(body);
            self.0.len() - 1
        });
        number.to_string()
    }

    /// Encodes the message of a stored step, with numbers in place of the step's bodies.
    pub fn encode(&mut self, step: &Step, mut message: v1::Step) -> Vec<u8> {
        message.body = step.content.body.clone().map(|body| self.number(body));
        for (language, translation) in &step.content.translations {
            if let Some(sent) = message.translations.get_mut(language.as_str()) {
                sent.body = translation.body.clone().map(|body| self.number(body));
            }
        }
        message.encode_to_vec()
    }

    /// Replaces numbers by their bodies.
    pub fn restore<'b>(&self, numbers: impl Iterator<Item = &'b mut Body>) {
        for number in numbers {
            let index = number.as_str().parse::<usize>().ok();
            if let Some(body) = index.and_then(|index| self.0.get(index)) {
                *number = body.clone();
            }
        }
    }
}
