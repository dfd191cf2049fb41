//! `expertise new`.

use std::io::ErrorKind;

use serde_json::{Value, json};

use super::{CliError, document, out};
use crate::{config::NewArgs, files, proto::v1::TaskDocument};

/// Writes a small guide to start from.
pub fn new_guide(args: &NewArgs) -> Result<(), CliError> {
    let guide: TaskDocument = document::from_json("TaskDocument", &guide(args.product_id))?;
    let text = document::text(&guide)?;
    match args.out.as_deref().filter(|file| *file != "-") {
        Some(file) => files::create(file, &text).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => CliError::Invalid(format!(
                "{} exists, and is left as it is: name another file",
                file.display()
            )),
            _ => CliError::Write {
                place: file.display().to_string(),
                reason: error,
            },
        }),
        None => out::print(&text),
    }
}

/// A guide with a step of each type but a subtask.
fn guide(product: i64) -> Value {
    let plugged_in = |key: &str| format!("components.{product}.plugged_in = {key}");
    json!({
        "task": {"name": "The lamp stays dark", "product_id": product, "published": 1},
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
