//! `expertise list`.

use super::{
    CliError, document,
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
    let mut list = ListOutput::new(format);
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
            list.push(task)?;
        }
        if page.next_page_token.is_empty() {
            return list.end();
        }
        page_token = page.next_page_token;
    }
}

/// The output of the list.
enum ListOutput {
    Text { written: usize },
    Json(JsonArray),
}

impl ListOutput {
    fn new(format: Format) -> Self {
        match format {
            Format::Text => Self::Text { written: 0 },
            Format::Json => Self::Json(JsonArray::new()),
        }
    }

    fn push(&mut self, task: &Task) -> Result<(), CliError> {
        match self {
            Self::Text { written } => {
                if *written == 0 {
                    out::print(&line("GUID", "PRODUCT", "STEPS", "STATE", "NAME"))?;
                }
                *written += 1;
                out::print(&row(task))
            }
            Self::Json(array) => array.push(&document::task(task)?),
        }
    }

    fn end(self) -> Result<(), CliError> {
        match self {
            Self::Text { written: 0 } => {
                out::print_error("no such tasks in this account");
                Ok(())
            }
            Self::Text { .. } => Ok(()),
            Self::Json(array) => array.end(),
        }
    }
}

fn row(task: &Task) -> String {
    line(
        &task.guid,
        &task.product_id().to_string(),
        &task.steps.len().to_string(),
        &out::published_state(task.published()),
        &out::sanitize(&task.name),
    )
}

fn line(guid: &str, product: &str, steps: &str, state: &str, name: &str) -> String {
    format!("{guid:36}  {product:>10}  {steps:>5}  {state:9}  {name}\n")
}
