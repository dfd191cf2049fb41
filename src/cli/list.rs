//! `expertise list`.

use super::{
    CliError, document, guides,
    layout::{TableColumn, table},
    out::{self, print_array},
    wording,
};
use crate::{
    client::Client,
    config::{Format, ListFilters},
    proto::v1::{ListTasksRequest, Task},
};

pub(super) async fn list(
    client: &Client,
    filters: &ListFilters,
    format: Format,
) -> Result<(), CliError> {
    let message = ListTasksRequest {
        product_id: filters.product_id,
        published: filters.published,
        role: filters.role.map(i32::from),
        r#type: filters.task_type.map(i32::from),
        ..ListTasksRequest::default()
    };
    let is_filtered = message != ListTasksRequest::default();
    let tasks = guides::list(client, message).await?;
    if format == Format::Json {
        let tasks = tasks.iter().map(|task| document::json("Task", task));
        return print_array(tasks.collect::<Result<Vec<_>, _>>()?);
    }
    if tasks.is_empty() {
        out::print_error(&match (is_filtered, client.account()) {
            (true, _) => "no such tasks in this account".to_owned(),
            (false, Some(account)) => format!("account {account} has no tasks"),
            (false, None) => "this account has no tasks".to_owned(),
        });
        return Ok(());
    }
    out::print(&table(COLUMNS, tasks.iter().map(row).collect()))
}

const COLUMNS: [TableColumn; 6] = [
    TableColumn::Whole("GUID"),
    TableColumn::Number("PRODUCT"),
    TableColumn::Number("STEPS"),
    TableColumn::Text("STATE"),
    TableColumn::Text("TYPE"),
    TableColumn::Text("NAME"),
];

fn row(task: &Task) -> [String; 6] {
    [
        task.guid.clone(),
        task.product_id().to_string(),
        task.steps.len().to_string(),
        out::published_state(task.published()),
        wording::name(task.r#type().as_str_name(), "TASK_TYPE_"),
        out::sanitize(&task.name),
    ]
}
