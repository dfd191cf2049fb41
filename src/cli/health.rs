//! `expertise health`.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{CliError, Format, out};
use crate::{
    client::{self, CallError, CalledServer},
    config::HealthConfig,
};

/// Short, because health checks are repeated.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the health of a server. Any status but SERVING is a failure.
pub async fn health(config: &HealthConfig, format: Format) -> Result<(), CliError> {
    let server = &config.server();
    let check = async {
        let channel = client::connect(server, &config.trust).await?;
        let request = HealthCheckRequest::default();
        let answer = HealthClient::new(channel).check(request).await;
        match answer {
            Ok(answer) => Ok(answer.into_inner().status()),
            Err(status) => {
                let server = CalledServer {
                    address: server,
                    names_account: false,
                    answered: false,
                };
                Err(CliError::from(CallError::new(&status, &server)))
            }
        }
    };
    let status = timeout(HEALTH_TIMEOUT, check).await.unwrap_or_else(|_| {
        let message = format!("{server} did not respond within {HEALTH_TIMEOUT:?}");
        Err(CliError::Failed(message))
    })?;
    if format == Format::Json {
        out::print(&format!(
            "{}\n",
            json!({"server": server, "status": status.as_str_name()})
        ))?;
    }
    match (status, format) {
        (ServingStatus::Serving, Format::Text) => out::print(&format!("{server} is SERVING\n")),
        (ServingStatus::Serving, Format::Json) => Ok(()),
        (ServingStatus::NotServing | ServingStatus::Unknown | ServingStatus::ServiceUnknown, _) => {
            Err(CliError::Failed(format!(
                "{server} is {}: its database does not respond, or it is starting or shutting \
                 down; its log says which",
                status.as_str_name()
            )))
        }
    }
}
