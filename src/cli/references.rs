//! `expertise references`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CliError, PAGE_SIZE, document,
    layout::{TableColumn, table},
    out::{self, JsonArray},
    tasks, transfer, wording,
};
use crate::{
    client::Client,
    config::{Format, ReferencesArgs},
    proto::v1::{ListReferencesRequest, Reference, Step, StepType},
};

/// Lists references page by page, to the last one.
pub(super) async fn references(
    client: &Client,
    references: &ReferencesArgs,
    format: Format,
) -> Result<(), CliError> {
    let ReferencesArgs {
        task,
        variable,
        answer,
    } = references;
    let task = match task {
        Some(task) => Some(tasks::find(client, task).await?),
        None => None,
    };
    let mut message = ListReferencesRequest {
        task: task.map_or_else(String::new, |task| task.to_string()),
        variable: variable.clone().unwrap_or_default(),
        answer: answer.clone().unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut listed = Vec::new();
    let mut array = JsonArray::new();
    loop {
        let page = client
            .analyse(message.clone(), |mut analysis, request| async move {
                analysis.list_references(request).await
            })
            .await?;
        match format {
            Format::Text => listed.extend(page.references),
            Format::Json => {
                for reference in &page.references {
                    array.push(&document::json("Reference", reference)?)?;
                }
            }
        }
        if page.next_page_token.is_empty() {
            break;
        }
        message.page_token = page.next_page_token;
    }
    if let (Format::Text, Some(task), Some(variable)) = (format, task, variable) {
        print_full_names(client, &task.to_string(), variable).await;
    }
    match format {
        Format::Json => array.end(),
        Format::Text if listed.is_empty() => {
            out::print_error("nothing in this account refers to it");
            let is_own = |name: &String| !name.starts_with("components.");
            if task.is_none() && variable.as_ref().is_some_and(is_own) {
                out::print_error(
                    "an account-wide name is components.PRODUCT.NAME; an own name needs --task",
                );
            }
            Ok(())
        }
        Format::Text => {
            // A reference has the id of its task alone.
            let tasks = tasks::list_all(client, None).await?;
            let names = tasks.into_iter().map(|task| (task.guid, task.name));
            let names = names.collect();
            let rows = listed.into_iter().map(|reference| row(reference, &names));
            out::print(&table(COLUMNS, rows.collect()))
        }
    }
}

/// Names the variable as other guides, and conditions with a path, read it: an observation
/// sets both its own name and the full one.
async fn print_full_names(client: &Client, task: &str, variable: &str) {
    let Ok(document) = transfer::export(client, task).await else {
        return;
    };
    let sets = |step: &&Step| {
        let mut configs = step.feedback_config.iter();
        step.r#type() == StepType::Observation && configs.any(|config| config.name == variable)
    };
    let products: BTreeSet<i64> = document
        .steps
        .iter()
        .filter(sets)
        .map(Step::product_id)
        .collect();
    for product in products {
        let full = out::sanitize(&format!("components.{product}.{variable}"));
        out::print_error(&format!(
            "conditions may read it by its full name, too: `expertise references --variable {full}` \
             lists them"
        ));
    }
}

const COLUMNS: [TableColumn; 6] = [
    TableColumn::Text("KIND"),
    TableColumn::Text("TASK"),
    TableColumn::Whole("STEP OR TASK"),
    TableColumn::Text("CONDITION"),
    TableColumn::Whole("PATH"),
    TableColumn::Text("TITLE"),
];

fn row(reference: Reference, names: &BTreeMap<String, String>) -> [String; 6] {
    let kind = wording::name(reference.kind().as_str_name(), "REFERENCE_KIND_");
    let place = reference.place.unwrap_or_default();
    let name = names.get(&place.task).cloned().unwrap_or_default();
    let id = match place.step.as_str() {
        "" => place.task,
        _ => place.step,
    };
    let condition = match reference.operator.as_str() {
        "" => String::new(),
        operator => wording::comparison(operator, &reference.targets),
    };
    [kind, name, id, condition, place.path, place.title].map(|text| out::sanitize(&text))
}
