//! `expertise references`.

use std::collections::{BTreeMap, BTreeSet};

use console::Term;

use super::{
    CliError, PAGE_SIZE, document,
    layout::{TableColumn, table, with_hanging_indent_on},
    out::{self, JsonArray},
    tasks, transfer, wording,
};
use crate::{
    client::Client,
    config::{Format, ReferencesArgs},
    domain::analysis::parse_account_name,
    proto::v1::{ListReferencesRequest, Reference, ReferenceKind, Step, StepType, TaskDocument},
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
    let message = ListReferencesRequest {
        task: task.map_or_else(String::new, |task| task.to_string()),
        variable: variable.clone().unwrap_or_default(),
        answer: answer.clone().unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut listed = Vec::new();
    let mut array = JsonArray::new();
    client
        .for_each_page(message, |page| {
            match format {
                Format::Text => listed.extend(page.references),
                Format::Json => {
                    for reference in &page.references {
                        array.push(&document::json("Reference", reference)?)?;
                    }
                }
            }
            Ok::<_, CliError>(())
        })
        .await?;
    match format {
        Format::Json => array.end(),
        Format::Text => {
            let document = match (task, variable) {
                (Some(task), Some(_)) => transfer::export(client, &task.to_string()).await.ok(),
                (Some(_) | None, _) => None,
            };
            if let (Some(document), Some(variable)) = (&document, variable) {
                print_full_names(client, document, variable);
            }
            if listed.is_empty() {
                print_nothing_found(client, references);
                return Ok(());
            }
            // A reference has the id of its task alone.
            let tasks = tasks::list_all(client, None).await?;
            let names = tasks.into_iter().map(|task| (task.guid, task.name));
            let names = names.collect();
            if task.is_none() {
                print_own_names(client, variable.as_deref().unwrap_or_default(), &listed);
            }
            let rows = listed.into_iter().map(|reference| row(reference, &names));
            out::print(&table(COLUMNS, rows.collect()))
        }
    }
}

/// Says what was looked for and not found, and where names and answers are found.
fn print_nothing_found(client: &Client, references: &ReferencesArgs) {
    let ReferencesArgs {
        task,
        variable,
        answer,
    } = references;
    let Some(variable) = variable else {
        out::print_error("no step refers to this task, and no answer manages it");
        return;
    };
    let answered = match answer {
        Some(answer) => format!(" with the answer {answer:?}"),
        None => String::new(),
    };
    let show = client.command("show GUID");
    let spelling = format!("`{show}` shows the names and answers of a guide");
    let (place, advice) = match task {
        Some(_) => ("this task", spelling),
        None if variable.starts_with("components.") => ("this account", spelling),
        None => (
            "this account",
            "an account-wide name is components.PRODUCT.NAME, and an own name needs --task"
                .to_owned(),
        ),
    };
    print_wrapped(&format!(
        "nothing in {place} sets or reads {variable}{answered}: {advice}"
    ));
}

/// Prints a command for each full name of the variable. Other guides read it by that name, and so
/// do conditions with a `path`: an observation sets both its own name and the full one.
fn print_full_names(client: &Client, document: &TaskDocument, variable: &str) {
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
        let full = format!("components.{product}.{variable}");
        let command = client.command(&format!("references --variable {full}"));
        print_wrapped(&format!(
            "conditions may read it by its full name, too: `{command}` lists them"
        ));
    }
}

/// Prints a line to standard error, wrapped at the width of the terminal.
fn print_wrapped(line: &str) {
    let wrapped = with_hanging_indent_on(&Term::stderr(), "", &out::sanitize(line));
    out::print_error(wrapped.trim_end());
}

/// The most tasks that are named with commands for their own names.
const MAX_OWN_NAMES: usize = 3;

/// Names the tasks whose conditions may read an account-wide variable by its own name.
fn print_own_names(client: &Client, variable: &str, listed: &[Reference]) {
    let Some((_, own)) = parse_account_name(variable) else {
        return;
    };
    let setters = listed.iter().filter(|it| it.kind() == ReferenceKind::Sets);
    let tasks = setters.filter_map(|it| Some(it.place.as_ref()?.task.as_str()));
    let tasks: BTreeSet<&str> = tasks.collect();
    for task in tasks.into_iter().take(MAX_OWN_NAMES) {
        let command = client.command(&format!("references --task {task} --variable {own}"));
        print_wrapped(&format!("readers of the own name: `{command}` lists them"));
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
