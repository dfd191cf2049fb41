//! The requirements for the claims of a token. Only the holder of a token with a valid signature
//! learns which claim is wrong.

use std::{
    fmt::Display,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_seconds;
use serde::Deserialize;
use serde_json::Value;

use super::{Caller, Rejection, Scope, Subject, jwt::refuse_claims};
use crate::domain::ids::AccountId;

/// The tolerated clock difference, in seconds.
const LEEWAY: f64 = 30.0;

/// The claims that are checked. They may have any type, so that an error can name the claim. `null`
/// counts as missing. A repeated claim is refused.
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

impl Claims {
    /// The caller, if the token is from the issuer, for the audience, and currently valid.
    pub fn caller(
        &self,
        issuer: &str,
        audience: &str,
        now: SystemTime,
    ) -> Result<Caller, Rejection> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.check_time(now.as_secs_f64())?;
        let expected = format!("{issuer:?}");
        if string("iss", &self.iss, &expected)? != issuer {
            return Err(wrong("iss", "is another issuer", expected));
        }
        self.check_audience(audience)?;
        let expected = "1 to 256 bytes without control characters";
        let subject = Subject::parse(string("sub", &self.sub, expected)?)
            .ok_or_else(|| wrong("sub", "is not allowed", expected))?;
        let expected = "1 to 64 characters of A-Z a-z 0-9 . _ : -";
        let account = AccountId::parse(string("account_id", &self.account_id, expected)?)
            .ok_or_else(|| wrong("account_id", "is not allowed", expected))?;
        let scope = match &self.scope {
            None => "",
            scope => string("scope", scope, "names of scopes, separated by spaces")?,
        };
        Ok(Caller {
            account,
            subject: subject.to_string(),
            scopes: Scope::parse_list(scope),
        })
    }

    /// Checks `exp` and `nbf`, which may have fractions of a second.
    fn check_time(&self, now: f64) -> Result<(), Rejection> {
        const TIME: &str = "a number of seconds since 1970";
        let exp = match &self.exp {
            None => return Err(wrong("exp", "is missing", TIME)),
            Some(exp) => exp.as_f64().filter(|exp| *exp >= 0.0),
        };
        let exp = exp.ok_or_else(|| wrong("exp", "is not a time", TIME))?;
        if exp + LEEWAY < now {
            let message = format!("the token expired at {} (`exp`)", time(exp));
            return Err(refusal("exp", "has passed", &message));
        }
        let Some(nbf) = &self.nbf else {
            return Ok(());
        };
        match nbf.as_f64() {
            None => Err(wrong("nbf", "is not a number", TIME)),
            Some(nbf) if nbf > now + LEEWAY => {
                let message = format!("the token is not valid before {} (`nbf`)", time(nbf));
                Err(refusal("nbf", "is in the future", &message))
            }
            Some(_) => Ok(()),
        }
    }

    /// Checks that `aud` is the audience or a list that contains it.
    fn check_audience(&self, audience: &str) -> Result<(), Rejection> {
        let problem = match &self.aud {
            Some(Value::String(aud)) if aud == audience => return Ok(()),
            Some(Value::Array(list)) if !list.iter().all(Value::is_string) => NO_AUDIENCE,
            Some(Value::Array(list)) if list.iter().any(|aud| aud == audience) => return Ok(()),
            Some(Value::String(_) | Value::Array(_)) => "is another audience",
            Some(_) => NO_AUDIENCE,
            None => "is missing",
        };
        let expected = format!("{audience:?}, or a list that contains it");
        Err(wrong("aud", problem, expected))
    }
}

const NO_AUDIENCE: &str = "is not a string or a list of strings";

fn refusal(claim: &str, problem: &str, message: &str) -> Rejection {
    refuse_claims(&format!("its claim {claim} {problem}"), message)
}

fn wrong(claim: &str, problem: &str, expected: impl Display) -> Rejection {
    let message = format!("`{claim}` {problem}: it must be {expected}");
    refusal(claim, problem, &message)
}

fn string<'a>(name: &str, claim: &'a Option<Value>, expected: &str) -> Result<&'a str, Rejection> {
    match claim {
        None => Err(wrong(name, "is missing", expected)),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(wrong(name, "is not a string", expected)),
    }
}

/// A time for a message. A time that cannot be formatted is shown as seconds.
fn time(seconds: f64) -> String {
    /// The end of the year 9999.
    const LAST: f64 = 253_402_300_799.0;
    match (0.0..=LAST).contains(&seconds) {
        true => format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs_f64(seconds)).to_string(),
        false => format!("{seconds} s"),
    }
}
