//! `expertise list`.

use clap::Args;

use super::{
    CliError, Format, guides,
    out::{self, print_list},
    wording,
};
use crate::{
    client::Client,
    config::value,
    proto::v1::{AccessLevel, ListTasksRequest, Task, TaskType},
};

/// Which tasks are listed. An absent filter matches all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ListFilters {
    /// Only tasks of this product
    #[arg(long, value_name = "NUMBER", value_parser = value::number(1..=i64::MAX))]
    pub product_id: Option<i64>,
    /// Only tasks with this `published` value: 0 is hidden, 1 is published
    #[arg(long, value_name = "NUMBER", value_parser = value::number(0..=i32::MAX))]
    pub published: Option<i32>,
    /// Only tasks that this access level may see
    #[arg(long, ignore_case = true)]
    pub role: Option<AccessLevel>,
    /// Only tasks of this type
    #[arg(long = "type", ignore_case = true)]
    pub task_type: Option<TaskType>,
}

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
    if tasks.is_empty() && format == Format::Text {
        out::print_error(&match (is_filtered, client.account()) {
            (true, _) => "no such tasks in this account".to_owned(),
            (false, Some(account)) => format!("account {account} has no tasks"),
            (false, None) => "this account has no tasks".to_owned(),
        });
    }
    let columns = ["GUID", "PRODUCT", "STEPS", "STATE", "TYPE", "NAME"];
    print_list(format, "Task", &tasks, columns, row)
}

fn row(task: &Task) -> [String; 6] {
    [
        task.guid.clone(),
        task.product_id().to_string(),
        task.steps.len().to_string(),
        wording::published(task.published),
        wording::name(task.r#type().as_str_name(), "TASK_TYPE_"),
        task.name.clone(),
    ]
}
