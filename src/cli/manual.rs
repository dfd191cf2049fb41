//! `expertise completions` and `expertise man`.

use clap_complete::Shell;
use clap_mangen::Man;

use super::{CliError, out};

pub fn completions(mut command: clap::Command, shell: Shell) -> Result<(), CliError> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    out::print(&String::from_utf8_lossy(&script))
}

pub fn man(mut command: clap::Command, page: Option<&str>) -> Result<(), CliError> {
    // Gives each subcommand its full name.
    command.build();
    let page = page.and_then(|name| command.find_subcommand(name));
    let command = page.unwrap_or(&command).clone();
    let mut text = Vec::new();
    Man::new(command)
        .render(&mut text)
        .map_err(|reason| CliError::cannot_write("the page", reason))?;
    out::print(&String::from_utf8_lossy(&text))
}
