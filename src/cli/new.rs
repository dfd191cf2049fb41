//! `expertise new`.

use std::{io::ErrorKind, path::PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{CliError, document, out};
use crate::{config::value, files, proto::v1::TaskDocument};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct NewArgs {
    /// The product of the guide
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = value::number(1..=i64::MAX))]
    pub product_id: i64,
    /// The file to write, which must not exist, or - for standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[allow(clippy::expect_used)]
pub fn new_guide(args: &NewArgs) -> Result<(), CliError> {
    let out = args.out.as_deref().filter(|file| *file != "-");
    let name = out.and_then(|file| file.file_stem()?.to_str());
    let guide = guide(args.product_id, name.unwrap_or("the-lamp-stays-dark"));
    let guide: Option<TaskDocument> = document::from_json("TaskDocument", &guide);
    let guide = guide.expect("the template is a guide");
    let text = document::text(&guide);
    match out {
        Some(file) => files::create(file, &text).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => CliError::Failed(format!(
                "{} already exists: name another file",
                file.display()
            )),
            _ => CliError::cannot_write(&file.display().to_string(), error),
        }),
        None => out::print(&text),
    }
}

/// A guide with a step of each type except subtask.
fn guide(product: i64, external_id: &str) -> Value {
    let plugged_in = |key: &str| format!("components.{product}.plugged_in = {key}");
    json!({
        "task": {
            "name": "The lamp stays dark",
            "product_id": product,
            "external_id": external_id,
            "published": 1,
        },
        "steps": [
            {
                "product_id": product,
                "type": "STEP_TYPE_INFORMATION",
                "title": "Before you begin",
                "body": "<p>You need a second bulb. Never touch one that is hot.</p>",
            },
            {
                "product_id": product,
                "type": "STEP_TYPE_OBSERVATION",
                "title": "Is the lamp plugged in?",
                "feedback_config": [{
                    "name": "plugged_in",
                    "type": "enum",
                    "values": [{"key": "yes", "value": "Yes"}, {"key": "no", "value": "No"}],
                }],
            },
            {
                "product_id": product,
                "type": "STEP_TYPE_SOLUTION",
                "title": "Plug the lamp in",
                "cost": 2,
                "dependency_shorthand": plugged_in("no"),
            },
            {
                "product_id": product,
                "type": "STEP_TYPE_SOLUTION",
                "title": "Replace the bulb",
                "cost": 5,
                "dependency_shorthand": plugged_in("yes"),
            },
            {"product_id": product, "type": "STEP_TYPE_END", "title": "The lamp is lit"},
        ],
    })
}
