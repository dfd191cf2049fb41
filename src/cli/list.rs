//! `expertise list`.

use super::{
    CliError, document,
    layout::{Column, table},
    out::{self, JsonArray},
};
use crate::{
    client::Client,
    config::{Format, ListFilters},
    proto::v1::{ListTasksRequest, Task},
};

/// The largest page that the contract allows.
const PAGE_SIZE: i32 = 500;

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
    let mut page_token = String::new();
    let mut rows = Vec::new();
    let mut array = JsonArray::new();
    loop {
        let message = ListTasksRequest {
            product_id: *product_id,
            published: *published,
            role: role.map(i32::from),
            r#type: task_type.map(i32::from),
            page_size: PAGE_SIZE,
            page_token,
        };
        let page = client
            .call(message, |mut tasks, request| async move {
                tasks.list_tasks(request).await
            })
            .await?;
        for task in &page.tasks {
            match format {
                Format::Text => rows.push(row(task)),
                Format::Json => array.push(&document::json("Task", task)?)?,
            }
        }
        if page.next_page_token.is_empty() {
            break;
        }
        page_token = page.next_page_token;
    }
    match format {
        Format::Json => array.end(),
        Format::Text if rows.is_empty() => {
            out::print_error("no such tasks in this account");
            Ok(())
        }
        Format::Text => out::print(&table(COLUMNS, rows)),
    }
}

const COLUMNS: [Column; 5] = [
    Column::Whole("GUID"),
    Column::Number("PRODUCT"),
    Column::Number("STEPS"),
    Column::Text("STATE"),
    Column::Text("NAME"),
];

fn row(task: &Task) -> [String; 5] {
    [
        task.guid.clone(),
        task.product_id().to_string(),
        task.steps.len().to_string(),
        out::published_state(task.published()),
        out::sanitize(&task.name),
    ]
}
