//! Why there is no connection to PostgreSQL, and what to do.

use std::{borrow::Cow, io};

use rustls::CertificateError as Certificate;
use sqlx::{error::DatabaseError, postgres::PgConnectOptions};

use super::OpenError;
use crate::{config::PostgresUrl, store::error::explanation};

/// SQLSTATE too_many_connections.
const TOO_MANY_CONNECTIONS: &str = "53300";
/// Phrases in errors of PgBouncer that mean that a later attempt may succeed.
const TEMPORARY_REFUSALS: [&str; 4] = ["timeout", "server", "too many", "no more connections"];
/// SQLSTATE invalid_catalog_name.
const NO_DATABASE: &str = "3D000";
/// SQLSTATE invalid_password.
const WRONG_PASSWORD: &str = "28P01";
/// SQLSTATE protocol_violation, which PgBouncer uses for every refusal.
const PGBOUNCER: &str = "08P01";

pub const NO_ANSWER: &str =
    "it did not respond in time: check that it runs and has free connections";
const TLS_FAILED: &str = "the TLS handshake failed: check sslmode and sslrootcert in the URL";
const CLOSED: &str = "it closes the connection: check that PostgreSQL runs, including any server \
    behind a proxy or load balancer";

pub struct Failure {
    /// The problem and the remedy.
    pub why: Cow<'static, str>,
    /// Whether the failure may be temporary. Otherwise it lasts until a setting is changed.
    may_pass: bool,
}

fn temporary(why: &'static str) -> Failure {
    Failure {
        why: why.into(),
        may_pass: true,
    }
}

fn permanent(why: impl Into<Cow<'static, str>>) -> Failure {
    Failure {
        why: why.into(),
        may_pass: false,
    }
}

/// Describes a failed connection to PostgreSQL, without the user and password.
pub fn connect_error(
    url: &PostgresUrl,
    options: &PgConnectOptions,
    err: &sqlx::Error,
) -> OpenError {
    let address = format!("EXPERTISE_DATABASE_URL names {}", url.address());
    let Failure { why, may_pass } = connect_failure(options, err);
    if may_pass {
        let message = format!("{address}, which cannot be reached: {why}");
        return OpenError::Unreachable(message.into());
    }
    let state = err.as_database_error().and_then(DatabaseError::code);
    let hint = match url.ignored_password_file() {
        _ if state.as_deref() != Some(WRONG_PASSWORD) => String::new(),
        _ if url.has_encoded_password() => "; in the password of a URL, % begins an encoded \
             character and stands itself as %25"
            .to_owned(),
        Some(file) => format!(
            "; the password file {} is ignored because other users may access it: set its mode to \
             600",
            file.display()
        ),
        None => String::new(),
    };
    OpenError::unusable(format!("{address}, which cannot be used: {why}{hint}"))
}

pub fn connect_failure(options: &PgConnectOptions, err: &sqlx::Error) -> Failure {
    match err {
        sqlx::Error::Io(err) => match err.get_ref().and_then(|err| err.downcast_ref()) {
            // The driver reports TLS errors as network errors.
            Some(err) => permanent(tls_message(err)),
            None => network_failure(options, err),
        },
        // Only the driver's text distinguishes this from other TLS errors.
        sqlx::Error::Tls(err) if err.to_string() == "server does not support TLS" => {
            permanent("the server offers no TLS: set it up there, or change sslmode in the URL")
        }
        sqlx::Error::Tls(_) => permanent(TLS_FAILED),
        sqlx::Error::Configuration(_) => {
            permanent("sslcert and sslkey cannot be used: check both files")
        }
        // The server closed the connection before it sent a byte. A proxy does this when its
        // PostgreSQL is down. The driver reads the missing response as a zero byte.
        sqlx::Error::Protocol(message) if message.contains("SSLRequest: 0x00 ") => {
            temporary(CLOSED)
        }
        sqlx::Error::PoolTimedOut => temporary(NO_ANSWER),
        sqlx::Error::Database(err) => {
            let state = err.code().unwrap_or_default();
            if state == NO_DATABASE && options.get_database().is_none() {
                return permanent(
                    "the URL names no database, and there is none with the name of the user: end \
                     the URL with /DATABASE",
                );
            }
            refusal(err.as_ref()).unwrap_or_else(|| {
                permanent(format!("it refuses the connection with SQLSTATE {state}"))
            })
        }
        _ => permanent("the server is not PostgreSQL: check host and port"),
    }
}

fn tls_message(err: &rustls::Error) -> &'static str {
    let err = match err {
        rustls::Error::InvalidCertificate(err) => err,
        rustls::Error::AlertReceived(_) => {
            return "it refuses TLS with this client: check sslcert and sslkey in the URL";
        }
        _ => return TLS_FAILED,
    };
    match err {
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
            "its certificate is for another name: use a host name of the certificate in the URL, \
             or sslmode=verify-ca, which does not compare it"
        }
        // The last two mean that a trusted CA has the same name but another key.
        Certificate::UnknownIssuer
        | Certificate::BadSignature
        | Certificate::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is from an untrusted CA: set sslrootcert in the URL to the CA's \
             certificate"
        }
        Certificate::Expired
        | Certificate::ExpiredContext { .. }
        | Certificate::NotValidYet
        | Certificate::NotValidYetContext { .. } => {
            "its certificate has expired or is not valid yet: renew it, and check the clock"
        }
        // rustls has no variants for these errors of webpki; only their text identifies them.
        Certificate::Other(err) if err.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is a CA certificate (CA:TRUE): give it one with CA:FALSE"
        }
        Certificate::Other(err) if err.to_string().contains("UnsupportedCertVersion") => {
            "its certificate is of an old X.509 version, like the ones that Citus generates: give \
             it one of version 3, or set sslmode=disable in the URL within a trusted network"
        }
        _ => "its certificate cannot be accepted: check it, and sslrootcert in the URL",
    }
}

fn network_failure(options: &PgConnectOptions, err: &io::Error) -> Failure {
    use io::ErrorKind as Kind;
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    match err.kind() {
        Kind::ConnectionRefused => {
            temporary("the connection is refused: start PostgreSQL, or check host and port")
        }
        Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::UnexpectedEof => temporary(CLOSED),
        Kind::NotFound if is_socket => {
            temporary("the socket does not exist: start PostgreSQL, or check the socket's path")
        }
        Kind::NotFound | Kind::PermissionDenied => permanent(
            "a file that the URL names cannot be read: check sslrootcert, sslcert and sslkey",
        ),
        _ if err.to_string().contains("lookup address") => {
            temporary("the host name has no address: check the host")
        }
        _ => temporary("it cannot be reached: check that it runs, and its host and port"),
    }
}

/// Why PostgreSQL or PgBouncer refuses a connection, if its SQLSTATE is known.
pub fn refusal(err: &dyn DatabaseError) -> Option<Failure> {
    let state = err.code()?;
    let says = |part| err.message().contains(part);
    Some(match &*state {
        TOO_MANY_CONNECTIONS if says("for role") => temporary(
            "its user has no free connection: raise the limit with ALTER ROLE … CONNECTION LIMIT",
        ),
        TOO_MANY_CONNECTIONS if says("for database") => temporary(
            "the database has no free connection: raise the limit with ALTER DATABASE … CONNECTION \
             LIMIT",
        ),
        TOO_MANY_CONNECTIONS => temporary("it has no free connection: raise its max_connections"),
        // 28000 is invalid_authorization_specification.
        WRONG_PASSWORD | "28000" => {
            permanent("it rejects the login: check user and password, and its pg_hba.conf")
        }
        NO_DATABASE => {
            permanent("the database does not exist: create it with createdb, or use another")
        }
        // insufficient_privilege
        "42501" => permanent("this user may not connect to it: grant CONNECT to the user"),
        // admin_shutdown, crash_shutdown, cannot_connect_now
        "57P01" | "57P02" | "57P03" => temporary("it is starting or stopping"),
        // undefined_object, invalid_parameter_value: only settings of the session can cause these.
        "42704" | "22023" => permanent(
            "it refuses a setting of the session: check options in the URL, and PGOPTIONS",
        ),
        // duplicate_prepared_statement, invalid_sql_statement_name
        "42P05" | "26000" => permanent(explanation(&state)?),
        PGBOUNCER if TEMPORARY_REFUSALS.into_iter().any(says) => temporary(
            "PgBouncer has no free connection: check that PostgreSQL runs and accepts the \
                 login of PgBouncer, and raise max_client_conn",
        ),
        PGBOUNCER => permanent(
            "PgBouncer refuses the login: check user, password and database, also in its auth_file \
             and [databases]; if it rejects a startup parameter, use ALTER ROLE … SET instead of \
             options and PGOPTIONS",
        ),
        _ => return None,
    })
}
