//! A parser of flags whose texts are checked later, with those of the environment and the file.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};

/// Accepts any text. Shell completions still offer the values of an enum.
#[derive(Clone)]
pub(super) struct AnyText(Vec<PossibleValue>);

impl AnyText {
    pub fn of(setting: &Arg) -> Self {
        Self(setting.get_possible_values())
    }
}

impl TypedValueParser for AnyText {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        text: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Box<dyn Iterator<Item = PossibleValue> + '_> = Box::new(self.0.iter().cloned());
        (!self.0.is_empty()).then_some(values)
    }
}
