//! Trusted metadata, which a proxy in front of the service sets.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Caller, Rejection, Scope, Subject};
use crate::domain::ids::AccountId;

const ACCOUNT_HEADER: &str = "x-account-id";
const SUBJECT_HEADER: &str = "x-subject";
const SCOPES_HEADER: &str = "x-scopes";
/// How many characters a misspelling of `x-scopes` differs by at most. A larger distance would
/// refuse other headers.
const MISSPELLING_DISTANCE: usize = 1;

/// Reads the caller from trusted metadata. With `x-scopes` a caller has exactly the scopes that
/// it names, without it every scope. A misspelt `x-scopes` is refused.
pub(super) fn authenticate(headers: &HeaderMap) -> Result<Caller, Rejection> {
    let account = single(headers, ACCOUNT_HEADER)
        .map_err(|()| invalid("x-account-id must be sent once"))?
        .ok_or_else(|| {
            let message = "x-account-id must name the account: send it as metadata, such as \
                           `x-account-id: demo`";
            Rejection::Missing(message.into())
        })?;
    let account = text(account)
        .and_then(AccountId::parse)
        .ok_or_else(|| invalid("x-account-id must be 1 to 64 characters of A-Z a-z 0-9 . _ : -"))?;
    let subject = match single(headers, SUBJECT_HEADER) {
        Ok(None) => Some(""),
        Ok(Some(value)) => text(value).filter(|subject| subject.len() <= Subject::MAX_BYTES),
        Err(()) => None,
    };
    let subject = subject.ok_or_else(|| {
        invalid("x-subject must be sent once at most, as 256 printable ASCII characters at most")
    })?;
    Ok(Caller {
        account,
        subject: subject.to_owned(),
        scopes: scopes(headers)?,
    })
}

fn scopes(headers: &HeaderMap) -> Result<Vec<Scope>, Rejection> {
    // Two lists are refused, as the second could add scopes to the first.
    let scopes = single(headers, SCOPES_HEADER)
        .map_err(|()| invalid("x-scopes must be sent once at most"))?;
    let Some(scopes) = scopes else {
        // A caller whose scopes were meant to be limited must not have all of them.
        return match headers.keys().any(is_misspelt_scopes) {
            true => Err(invalid(
                "the metadata have no x-scopes, but a name that differs from it in one character, \
                 such as x-scope: send x-scopes",
            )),
            false => Ok(Scope::ALL.to_vec()),
        };
    };
    text(scopes)
        .map(Scope::parse_list)
        .ok_or_else(|| invalid("x-scopes must be printable ASCII"))
}

fn invalid(message: &'static str) -> Rejection {
    Rejection::Invalid(message.into())
}

fn is_misspelt_scopes(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.len().abs_diff(SCOPES_HEADER.len()) <= MISSPELLING_DISTANCE
        && strsim::levenshtein(name, SCOPES_HEADER) <= MISSPELLING_DISTANCE
}

/// The value of a header; fails if it is sent more than once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(()),
    }
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}
