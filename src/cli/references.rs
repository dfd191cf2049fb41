//! `expertise references`.

use std::collections::{BTreeMap, BTreeSet};

use clap::{ArgGroup, Args};
use console::Term;

use super::{
    CliError, Format, PAGE_SIZE, document, guides,
    layout::{TableColumn, table, with_hanging_indent_on},
    out::{self, print_array, sanitize},
    wording,
};
use crate::{
    client::Client,
    config::{TaskRef, value},
    domain::analysis::parse_account_name,
    proto::v1::{
        ListReferencesRequest, ListTasksRequest, Reference, ReferenceKind, Step, StepType,
    },
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("referenced").required(true).multiple(true).args(["task", "variable"]))]
pub struct ReferencesArgs {
    /// What refers to this task, named by its guid, or by its name if no other task has it; with --variable, only what is in this task
    #[arg(long)]
    pub task: Option<TaskRef>,
    /// What sets and reads this variable, such as components.1204.charge_light
    #[arg(long, value_name = "NAME", value_parser = value::text)]
    pub variable: Option<String>,
    /// Only what has this answer, or compares with it
    #[arg(long, value_name = "KEY", requires = "variable", value_parser = value::text)]
    pub answer: Option<String>,
}

/// The most tasks that are named with commands for their own names.
const MAX_OWN_NAMES: usize = 3;

pub(super) async fn references(
    client: &Client,
    args: &ReferencesArgs,
    format: Format,
) -> Result<(), CliError> {
    let task = match &args.task {
        Some(task) => guides::find(client, task).await?.to_string(),
        None => String::new(),
    };
    let variable = args.variable.clone().unwrap_or_default();
    let message = ListReferencesRequest {
        task: task.clone(),
        variable: variable.clone(),
        answer: args.answer.clone().unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let listed = client.list(message, |page| page.references).await?;
    if format == Format::Json {
        return print_array(document::json_list("Reference", &listed)?);
    }
    if !task.is_empty() && !variable.is_empty() {
        print_full_names(client, &task, &variable).await;
    }
    if listed.is_empty() {
        print_nothing_found(client, args);
        return Ok(());
    }
    // A reference has the id of its task alone.
    let tasks = guides::list(client, ListTasksRequest::default())
        .await?
        .into_iter();
    let names: BTreeMap<String, String> = tasks.map(|task| (task.guid, task.name)).collect();
    if task.is_empty() {
        print_own_names(client, &variable, &listed);
    }
    let rows = listed.into_iter().map(|reference| row(reference, &names));
    out::print(&table(COLUMNS, rows.collect()))
}

/// Says what was looked for and not found, and where names and answers are found.
fn print_nothing_found(client: &Client, args: &ReferencesArgs) {
    let Some(variable) = &args.variable else {
        out::print_error("no step refers to this task, and no answer manages it");
        return;
    };
    let answered = match &args.answer {
        Some(answer) => format!(" with the answer {answer:?}"),
        None => String::new(),
    };
    let place = match args.task {
        Some(_) => "this task",
        None => "this account",
    };
    let advice = match args.task.is_none() && !variable.starts_with("components.") {
        true => "an account-wide name is components.PRODUCT.NAME, and an own name needs --task"
            .to_owned(),
        false => {
            let show = client.command("show GUID");
            format!("`{show}` shows the names and answers of a guide")
        }
    };
    print_wrapped(&format!(
        "nothing in {place} sets or reads {variable}{answered}: {advice}"
    ));
}

/// Prints a command for each full name of the variable. Other guides read it by that name, and so
/// do conditions with a `path`: an observation sets both its own name and the full one.
async fn print_full_names(client: &Client, task: &str, variable: &str) {
    let Ok(stored) = guides::read(client, task).await else {
        return;
    };
    let sets = |step: &&Step| {
        let mut configs = step.feedback_config.iter();
        step.r#type() == StepType::Observation && configs.any(|config| config.name == variable)
    };
    let products = stored
        .document
        .steps
        .iter()
        .filter(sets)
        .map(Step::product_id);
    for product in products.collect::<BTreeSet<i64>>() {
        let full = format!("components.{product}.{variable}");
        let command = client.command(&format!("references --variable {full}"));
        print_wrapped(&format!(
            "conditions may read it by its full name, too: `{command}` lists them"
        ));
    }
}

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

/// Prints a line to standard error, wrapped at the width of the terminal.
fn print_wrapped(line: &str) {
    let wrapped = with_hanging_indent_on(&Term::stderr(), "", &sanitize(line));
    out::print_error(wrapped.trim_end());
}

const COLUMNS: [TableColumn; 6] = [
    TableColumn::Text("KIND"),
    TableColumn::Text("TASK"),
    TableColumn::Text("STEP OR TASK"),
    TableColumn::Text("CONDITION"),
    TableColumn::Text("PATH"),
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
    [kind, name, id, condition, place.path, place.title].map(|text| sanitize(&text))
}
