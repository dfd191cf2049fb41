//! `expertise references`.

use std::collections::BTreeMap;

use clap::{ArgGroup, Args};

use super::{
    CliError, Format, PAGE_SIZE, guides,
    out::{print_list, print_note, sanitize},
    wording,
};
use crate::{
    client::Client,
    config::{TaskRef, value},
    proto::v1::{ListReferencesRequest, ListTasksRequest, Reference},
};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("referenced").required(true).multiple(true).args(["task", "variable"]))]
pub struct ReferencesArgs {
    /// List references to this task, by guid or unique name; with --variable, only search this task
    #[arg(long)]
    pub task: Option<TaskRef>,
    /// List what sets and reads this variable, such as components.1204.charge_light
    #[arg(long, value_name = "NAME", value_parser = value::text)]
    pub variable: Option<String>,
    /// Only list what has this answer, or compares with it
    #[arg(long, value_name = "KEY", requires = "variable", value_parser = value::text)]
    pub answer: Option<String>,
}

pub(super) async fn references(
    client: &Client,
    args: &ReferencesArgs,
    format: Format,
) -> Result<(), CliError> {
    let task = match &args.task {
        Some(task) => guides::find(client, task).await?.to_string(),
        None => String::new(),
    };
    let message = ListReferencesRequest {
        task,
        variable: args.variable.clone().unwrap_or_default(),
        answer: args.answer.clone().unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let listed = client.list(message, |page| page.references).await?;
    let mut names = BTreeMap::new();
    if format == Format::Text {
        if listed.is_empty() {
            print_note(&sanitize(&nothing_found(client, args)));
        }
        // A reference only has the id of its task.
        let tasks = guides::list(client, ListTasksRequest::default()).await?;
        names.extend(tasks.into_iter().map(|task| (task.guid, task.name)));
    }
    let columns = ["KIND", "TASK", "STEP OR TASK", "CONDITION", "PATH", "TITLE"];
    print_list(format, "Reference", &listed, columns, |it| row(it, &names))
}

/// Says what was not found, and where to find names and answers.
fn nothing_found(client: &Client, args: &ReferencesArgs) -> String {
    let Some(variable) = &args.variable else {
        return "no step refers to this task, and no answer manages it".to_owned();
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
    format!("nothing in {place} sets or reads {variable}{answered}: {advice}")
}

fn row(reference: &Reference, names: &BTreeMap<String, String>) -> [String; 6] {
    let place = reference.place.clone().unwrap_or_default();
    let name = names.get(&place.task).cloned().unwrap_or_default();
    let id = match place.step.as_str() {
        "" => place.task,
        _ => place.step,
    };
    let condition = match reference.operator.as_str() {
        "" => String::new(),
        operator => wording::comparison(operator, &reference.targets),
    };
    let kind = wording::name(reference.kind().as_str_name(), "REFERENCE_KIND_");
    [kind, name, id, condition, place.path, place.title]
}
