//! `expertise list`.

use super::{
    CliError, document,
    layout::{TableColumn, table},
    out::{self, JsonArray},
    tasks, wording,
};
use crate::{
    client::Client,
    config::{Format, ListFilters},
    proto::v1::{ListTasksRequest, Task},
};

/// Lists tasks page by page, to the last one.
pub(super) async fn list(
    client: &Client,
    filters: &ListFilters,
    format: Format,
) -> Result<(), CliError> {
    let ListFilters {
        product_id,
        published,
        role,
        task_type,
    } = filters;
    let is_filtered =
        product_id.is_some() || published.is_some() || role.is_some() || task_type.is_some();
    let filters = ListTasksRequest {
        product_id: *product_id,
        published: *published,
        role: role.map(i32::from),
        r#type: task_type.map(i32::from),
        ..ListTasksRequest::default()
    };
    let mut rows = Vec::new();
    let mut array = JsonArray::new();
    tasks::for_each_page(client, filters, |page| {
        page.iter().try_for_each(|task| match format {
            Format::Text => {
                rows.push(row(task));
                Ok(())
            }
            Format::Json => array.push(&document::json("Task", task)?),
        })
    })
    .await?;
    match format {
        Format::Json => array.end(),
        Format::Text if rows.is_empty() => {
            out::print_error(&match (is_filtered, client.account()) {
                (true, _) => "no such tasks in this account".to_owned(),
                (false, Some(account)) => format!("account {account} has no tasks"),
                (false, None) => "this account has no tasks".to_owned(),
            });
            Ok(())
        }
        Format::Text => out::print(&table(COLUMNS, rows)),
    }
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
