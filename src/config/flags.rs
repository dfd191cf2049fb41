//! Settings as flags of the command line.

use std::{collections::BTreeMap, marker::PhantomData};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::{
    any_text::AnyText,
    settings::{default_text, environment_name, flag, key, settings},
};

/// The settings of `A` that were given as flags. Their texts are checked by
/// [`SettingValues::read`], together with those from the environment and the file.
pub(super) struct Flags<A> {
    texts: BTreeMap<String, String>,
    settings: PhantomData<A>,
}

impl<A> Flags<A> {
    /// The text of a flag that was given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// The first flag that was given and is no setting of `B`.
    pub fn first_not_of<B: Args>(&self) -> Option<String> {
        let known = settings::<B>();
        let is_known = |name: &String| known.iter().any(|setting| key(setting) == name);
        let first = self.texts.keys().find(|name| !is_known(name));
        first.map(|key| flag(key))
    }
}

impl<A> Default for Flags<A> {
    fn default() -> Self {
        Self {
            texts: BTreeMap::new(),
            settings: PhantomData,
        }
    }
}

impl<A: Args> Args for Flags<A> {
    fn augment_args(command: Command) -> Command {
        command.args(settings::<A>().iter().map(text_flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: Args> FromArgMatches for Flags<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let settings = settings::<A>();
        let texts = settings.iter().filter_map(|setting| {
            let text = matches.get_one::<String>(key(setting))?;
            Some((key(setting).to_owned(), text.clone()))
        });
        Ok(Self {
            texts: texts.collect(),
            settings: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A setting as a flag that takes any text. If the default depends on other settings, the
/// setting's own help ends with `[default: …]`. A setting without a default is shown as unset.
fn text_flag(setting: &Arg) -> Arg {
    let help = setting.get_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (about, default) = match help.split_once(" [default: ") {
        Some((about, default)) => (about, default.trim_end_matches(']').to_owned()),
        None => (
            help.as_str(),
            default_text(setting).unwrap_or("unset".to_owned()),
        ),
    };
    let name = environment_name(key(setting));
    let value_names = setting.get_value_names().unwrap_or_default();
    Arg::new(setting.get_id().clone())
        .short(setting.get_short())
        .long(key(setting).replace('_', "-"))
        .value_parser(AnyText::of(setting))
        .hide_possible_values(setting.is_hide_possible_values_set())
        .value_names(value_names.iter().cloned())
        .help(format!("{about} [{name}] [default: {default}]"))
        .help_heading(setting.get_help_heading().unwrap_or("Settings").to_owned())
}
