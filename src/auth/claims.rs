//! What the claims of a token must be. Only the holder of a token with a valid signature learns
//! which one is wrong.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use humantime::format_rfc3339_seconds;
use serde::Deserialize;
use serde_json::Value;

use super::{Caller, Scope, Subject};
use crate::domain::ids::AccountId;

/// How far clocks may differ.
const LEEWAY: Duration = Duration::from_secs(30);
const TIME: &str = "a number of seconds since 1970";

/// The claims that count, of any type, so that a wrong one can be named. `null` counts as missing. A
/// claim that is there twice is refused.
#[derive(Deserialize)]
pub(super) struct Claims {
    exp: Option<Value>,
    nbf: Option<Value>,
    iss: Option<Value>,
    aud: Option<Value>,
    sub: Option<Value>,
    account_id: Option<Value>,
    scope: Option<Value>,
}

/// A claim that is wrong.
pub(super) struct ClaimError {
    /// The cause for the log, without a value of the token.
    pub cause: &'static str,
    /// What is wrong and what is expected, for the caller.
    pub message: String,
}

fn wrong(cause: &'static str, message: impl Into<String>) -> ClaimError {
    let message = message.into();
    ClaimError { cause, message }
}

impl Claims {
    /// The caller, if the token is from the issuer, for the audience, and valid at this time.
    pub fn caller(
        &self,
        issuer: &str,
        audience: &str,
        now: SystemTime,
    ) -> Result<Caller, ClaimError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.check_time(now)?;
        let iss = string(&self.iss, "iss", &format!("{issuer:?}"))
            .map_err(|message| wrong("its claim iss is missing or not a text", message))?;
        if iss != issuer {
            let message = format!("`iss` is another issuer: it must be {issuer:?}");
            return Err(wrong("its claim iss is another issuer", message));
        }
        self.check_audience(audience)?;
        let expected = "1 to 256 bytes without control characters";
        let sub = string(&self.sub, "sub", expected)
            .map_err(|message| wrong("its claim sub is missing or not a text", message))?;
        let subject = Subject::parse(sub).ok_or_else(|| {
            wrong(
                "its claim sub is empty, too long, or holds control characters",
                format!("`sub` is not allowed: it must be {expected}"),
            )
        })?;
        let expected = "1 to 64 characters of A-Z a-z 0-9 . _ : -";
        let account = string(&self.account_id, "account_id", expected)
            .map_err(|message| wrong("its claim account_id is missing or not a text", message))?;
        let account = AccountId::parse(account).ok_or_else(|| {
            wrong(
                "its claim account_id is not 1 to 64 of A-Z a-z 0-9 . _ : -",
                format!("`account_id` is not allowed: it must be {expected}"),
            )
        })?;
        let scope = match &self.scope {
            None => "",
            scope => string(scope, "scope", "names of scopes with spaces between them")
                .map_err(|message| wrong("its claim scope is not a text", message))?,
        };
        Ok(Caller {
            account,
            subject: subject.to_string(),
            scopes: Scope::parse_list(scope),
        })
    }

    /// Checks `exp` and `nbf`. The parts of a second may be given.
    fn check_time(&self, now: Duration) -> Result<(), ClaimError> {
        let exp = match (&self.exp, self.exp.as_ref().and_then(Value::as_f64)) {
            (_, Some(exp)) if exp >= 0.0 => exp,
            (exp, _) => {
                let what = if exp.is_none() {
                    "missing"
                } else {
                    "not a time"
                };
                let message = format!("`exp` is {what}: it must be {TIME}");
                return Err(wrong("its claim exp is missing or not a number", message));
            }
        };
        if exp + LEEWAY.as_secs_f64() < now.as_secs_f64() {
            let message = format!("the token expired at {} (`exp`)", time(exp));
            return Err(wrong("it has expired, by its claim exp", message));
        }
        let Some(nbf) = &self.nbf else {
            return Ok(());
        };
        let nbf = nbf.as_f64().ok_or_else(|| {
            let message = format!("`nbf` is not a number: it must be {TIME}");
            wrong("its claim nbf is not a number", message)
        })?;
        if nbf > (now + LEEWAY).as_secs_f64() {
            let message = format!("the token is not valid before {} (`nbf`)", time(nbf));
            return Err(wrong("it is not valid yet, by its claim nbf", message));
        }
        Ok(())
    }

    /// Checks that `aud` is the audience, or a list with it.
    fn check_audience(&self, audience: &str) -> Result<(), ClaimError> {
        let expected = format!("it must be {audience:?}, or a list with it");
        let is_found = match &self.aud {
            Some(Value::String(aud)) => aud == audience,
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                list.iter().any(|aud| aud == audience)
            }
            aud => {
                let what = match aud {
                    None => "missing",
                    Some(_) => "not a string or a list of strings",
                };
                return Err(wrong(
                    "its claim aud is missing, or not a text or a list of texts",
                    format!("`aud` is {what}: {expected}"),
                ));
            }
        };
        match is_found {
            true => Ok(()),
            false => Err(wrong(
                "its claim aud is another audience",
                format!("`aud` is another audience: {expected}"),
            )),
        }
    }
}

/// A claim that is a string, or what is wrong with it.
fn string<'a>(claim: &'a Option<Value>, name: &str, expected: &str) -> Result<&'a str, String> {
    match claim {
        None => Err(format!("`{name}` is missing: it must be {expected}")),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("`{name}` is not a string: it must be {expected}")),
    }
}

/// A time for a message; one that cannot be written is shown as seconds.
fn time(seconds: f64) -> String {
    /// The end of the year 9999.
    const LAST: f64 = 253_402_300_799.0;
    match (0.0..=LAST).contains(&seconds) {
        true => format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs_f64(seconds)).to_string(),
        false => format!("{seconds} s"),
    }
}
