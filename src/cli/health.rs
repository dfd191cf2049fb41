//! `expertise health`.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tonic::Status;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{CliError, out};
use crate::{
    client::{self, Refusal},
    config::{HealthConfig, Output},
};

/// How long the answer may take: whoever asks this asks again in a moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a server for its health; anything but SERVING is a failure.
pub async fn health(config: &HealthConfig) -> Result<(), CliError> {
    let HealthConfig {
        server,
        trust,
        output,
    } = config;
    let asked = async {
        let channel = client::connect(server, trust).await?;
        let request = HealthCheckRequest::default();
        let answer = HealthClient::new(channel).check(request).await;
        let answer = answer.map_err(|status: Status| Refusal::of(&status, server, false, false))?;
        Ok::<_, CliError>(answer.into_inner().status())
    };
    let status = timeout(PATIENCE, asked).await.unwrap_or_else(|_| {
        let late = format!("{server} does not answer within {PATIENCE:?}");
        Err(CliError::Unwell(late))
    })?;
    if *output == Output::Json {
        out::write(&format!(
            "{}\n",
            json!({"server": server, "status": status.as_str_name()})
        ))?;
    }
    match (status, output) {
        (ServingStatus::Serving, Output::Text) => out::write(&format!("{server} is SERVING\n")),
        (ServingStatus::Serving, Output::Json) => Ok(()),
        (ServingStatus::NotServing | ServingStatus::Unknown | ServingStatus::ServiceUnknown, _) => {
            Err(CliError::Unwell(format!(
                "{server} is {}: its database does not answer, or it is about to end; its log says \
             which",
                status.as_str_name()
            )))
        }
    }
}
