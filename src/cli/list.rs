//! `expertise list`.

use super::{
    CliError, document,
    out::{self, Array},
};
use crate::{
    client::{Client, MESSAGE_MAX},
    config::{ListFilters, Output},
    proto::v1::{ListTasksRequest, Task, task_service_client::TaskServiceClient},
};

/// Tasks to a page: the most that the contract allows.
const PAGE_SIZE: i32 = 500;

/// Lists tasks page by page, to the last one.
pub(super) async fn list(
    client: &Client,
    filters: &ListFilters,
    output: Output,
) -> Result<(), CliError> {
    let ListFilters {
        product_id,
        published,
        role,
        task_type,
    } = filters;
    let tasks =
        TaskServiceClient::new(client.channel.clone()).max_decoding_message_size(MESSAGE_MAX);
    let mut page_token = String::new();
    let mut listing = Listing::begin(output);
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
            .call(message, |request| {
                let mut tasks = tasks.clone();
                async move { tasks.list_tasks(request).await }
            })
            .await?;
        for task in &page.tasks {
            listing.push(task)?;
        }
        if page.next_page_token.is_empty() {
            return listing.end();
        }
        page_token = page.next_page_token;
    }
}

/// What has been listed so far.
enum Listing {
    Text { written: usize },
    Json(Array),
}

impl Listing {
    fn begin(output: Output) -> Self {
        match output {
            Output::Text => Self::Text { written: 0 },
            Output::Json => Self::Json(Array::begin()),
        }
    }

    fn push(&mut self, task: &Task) -> Result<(), CliError> {
        match self {
            Self::Text { written } => {
                if *written == 0 {
                    out::write(&line("GUID", "PRODUCT", "STEPS", "STATE", "NAME"))?;
                }
                *written += 1;
                out::write(&row(task))
            }
            Self::Json(array) => array.push(&document::task(task)?),
        }
    }

    fn end(self) -> Result<(), CliError> {
        match self {
            Self::Text { written: 0 } => {
                out::complain("no such tasks in this account");
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
        &out::state(task.published()),
        &out::plain(&task.name),
    )
}

fn line(guid: &str, product: &str, steps: &str, state: &str, name: &str) -> String {
    format!("{guid:36}  {product:>10}  {steps:>5}  {state:9}  {name}\n")
}
