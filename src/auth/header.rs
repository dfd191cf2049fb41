//! Trusted metadata, which a proxy in front of the service sets.

use http::HeaderMap;

use super::{Caller, Rejection, Scope, Subject};
use crate::domain::ids::AccountId;

/// Reads the caller from trusted metadata. A caller has exactly the scopes that `x-scopes` names,
/// or every scope without `x-scopes`. A misspelled `x-scopes` is refused.
pub(super) fn authenticate(headers: &HeaderMap) -> Result<Caller, Rejection> {
    let account = match values(headers, "x-account-id")[..] {
        [] => {
            let message = "x-account-id must name the account: send it as metadata, such as \
                           `x-account-id: demo`";
            return Err(Rejection::Missing(message.into()));
        }
        [account] => account.and_then(AccountId::parse).ok_or_else(|| {
            invalid("x-account-id must be 1 to 64 characters of A-Z a-z 0-9 . _ : -")
        })?,
        _ => return Err(invalid("x-account-id must be sent once")),
    };
    let subject = match values(headers, "x-subject")[..] {
        [] => "",
        [Some(subject)] if subject.len() <= Subject::MAX_BYTES => subject,
        _ => {
            return Err(invalid(
                "x-subject must be sent at most once, with at most 256 printable ASCII characters",
            ));
        }
    };
    Ok(Caller {
        account,
        subject: subject.to_owned(),
        scopes: scopes(headers)?,
    })
}

fn scopes(headers: &HeaderMap) -> Result<Vec<Scope>, Rejection> {
    match values(headers, "x-scopes")[..] {
        // A typo must not give a limited caller every scope.
        [] if headers
            .keys()
            .any(|name| is_misspelled_scopes(name.as_str())) =>
        {
            Err(invalid(
                "x-scopes is missing, but there is a similar key, such as x-scope: rename it to \
             x-scopes",
            ))
        }
        [] => Ok(Scope::ALL.to_vec()),
        [Some(scopes)] => Ok(Scope::parse_list(scopes)),
        [None] => Err(invalid("x-scopes must be printable ASCII")),
        // A second list could add scopes to the first.
        _ => Err(invalid("x-scopes must be sent at most once")),
    }
}

/// Names that differ in more than one character belong to other headers.
fn is_misspelled_scopes(name: &str) -> bool {
    const SCOPES: &str = "x-scopes";
    name.len().abs_diff(SCOPES.len()) <= 1 && strsim::levenshtein(name, SCOPES) == 1
}

fn invalid(message: &'static str) -> Rejection {
    Rejection::Invalid(message.into())
}

/// The values of a header; `None` for a value that is not printable ASCII.
fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<Option<&'a str>> {
    let values = headers.get_all(name).iter();
    values.map(|value| value.to_str().ok()).collect()
}
