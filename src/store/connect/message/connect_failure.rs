//! Why there is no connection to PostgreSQL, and what to do.

use std::{borrow::Cow, io};

use rustls::CertificateError;
use sea_orm::{DbErr, RuntimeErr};
use sqlx::{error::DatabaseError, postgres::PgConnectOptions};

use self::ConnectFailure::{Permanent, Temporary};
use crate::{config::PostgresUrl, store::connect::OpenError};

/// SQLSTATE too_many_connections.
pub const TOO_MANY_CONNECTIONS: &str = "53300";
/// SQLSTATE invalid_catalog_name.
const NO_DATABASE: &str = "3D000";
/// SQLSTATE invalid_password.
const WRONG_PASSWORD: &str = "28P01";

/// The error of a connection to PostgreSQL, without user and password.
pub fn postgres_error(
    url: &PostgresUrl,
    options: &PgConnectOptions,
    err: &sqlx::Error,
) -> OpenError {
    let address = url.address();
    let failure = match url.ignored_password_file() {
        _ if is_wrong_password(err) && url.has_encoded_password() => Permanent(
            format!(
                "{REJECTED_LOGIN}; in the password of a URL, % begins an encoded character and \
                 stands itself as %25"
            )
            .into(),
        ),
        Some(file) if is_wrong_password(err) => Permanent(
            format!(
                "{REJECTED_LOGIN}; the password file {} is ignored, as other users may access \
                 it: set its mode to 600",
                file.display()
            )
            .into(),
        ),
        _ => connect_failure(options, err),
    };
    match failure {
        Temporary(why) => OpenError::Unreachable {
            address,
            why: why.into_owned(),
        },
        Permanent(why) => OpenError::Connect {
            address,
            why: why.into_owned(),
        },
    }
}

/// Why there is no connection to PostgreSQL, and what to do.
pub fn connect_message(options: &PgConnectOptions, err: &sqlx::Error) -> ConnectMessage {
    match connect_failure(options, err) {
        Temporary(why) | Permanent(why) => why,
    }
}

/// Why PostgreSQL or PgBouncer refuses connections, if it says so by a known SQLSTATE.
pub fn refusal(err: &DbErr) -> Option<ConnectMessage> {
    let DbErr::Conn(RuntimeErr::SqlxError(err)) = err else {
        return None;
    };
    match state_error(err.as_database_error()?)? {
        Temporary(why) | Permanent(why) => Some(why),
    }
}

fn connect_failure(options: &PgConnectOptions, err: &sqlx::Error) -> ConnectFailure {
    match err {
        sqlx::Error::Io(err) => match tls_error(err) {
            Some(err) => permanent(tls_message(err)),
            None => network_error(options, err),
        },
        sqlx::Error::Tls(err) if err.to_string() == NOT_OFFERED => permanent(NO_TLS),
        sqlx::Error::Tls(_) => permanent(TLS_FAILED),
        sqlx::Error::Configuration(_) => {
            permanent("sslcert and sslkey cannot be used: check both files")
        }
        sqlx::Error::Protocol(message) if is_closed_at_once(message) => temporary(CLOSED),
        sqlx::Error::PoolTimedOut => temporary(NO_ANSWER),
        sqlx::Error::Database(err) if is_unnamed_database(options, err.as_ref()) => permanent(
            "the URL names no database, and there is none with the name of the user: end the URL \
             with /DATABASE",
        ),
        sqlx::Error::Database(err) => state_error(err.as_ref()).unwrap_or_else(|| {
            let state = err.code().unwrap_or_default();
            Permanent(format!("it refuses the connection with SQLSTATE {state}").into())
        }),
        _ => permanent("the server is not PostgreSQL: check host and port"),
    }
}

/// What is wrong, and what to do.
pub type ConnectMessage = Cow<'static, str>;

/// Why there is no connection.
enum ConnectFailure {
    /// It may pass by itself.
    Temporary(ConnectMessage),
    /// It stays until a setting is changed.
    Permanent(ConnectMessage),
}

fn temporary(why: &'static str) -> ConnectFailure {
    Temporary(why.into())
}

fn permanent(why: &'static str) -> ConnectFailure {
    Permanent(why.into())
}

/// PostgreSQL did not answer in time.
pub const NO_ANSWER: &str =
    "it did not answer in time: check that it runs and has free connections";

const REJECTED_LOGIN: &str = "it rejects the login: check user and password, and its pg_hba.conf";

const TLS_FAILED: &str = "the TLS handshake failed: check sslmode and sslrootcert in the URL";

const NO_TLS: &str = "the server offers no TLS: set it up there, or change sslmode in the URL";
/// The driver's text when the server offers no TLS.
const NOT_OFFERED: &str = "server does not support TLS";

const CLOSED: &str = "it closes the connection: check that PostgreSQL runs, including any server behind a proxy or load balancer";

/// Whether the server closed the connection before it sent a byte, as a proxy does whose
/// PostgreSQL is down. The driver takes the missing answer for a zero.
fn is_closed_at_once(message: &str) -> bool {
    message.contains("SSLRequest: 0x00 ")
}

/// Whether the URL names no database, and the default one does not exist.
fn is_unnamed_database(options: &PgConnectOptions, err: &dyn DatabaseError) -> bool {
    options.get_database().is_none() && err.code().as_deref() == Some(NO_DATABASE)
}

/// Whether the password is wrong or missing.
fn is_wrong_password(err: &sqlx::Error) -> bool {
    let err = err.as_database_error();
    err.is_some_and(|err| err.code().as_deref() == Some(WRONG_PASSWORD))
}

/// The error of TLS, which the driver reports as one of the network.
fn tls_error(err: &io::Error) -> Option<&rustls::Error> {
    err.get_ref()?.downcast_ref()
}

fn tls_message(err: &rustls::Error) -> &'static str {
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext,
        NotValidYet, NotValidYetContext, Other, UnknownIssuer,
        UnsupportedSignatureAlgorithmForPublicKeyContext,
    };
    let rustls::Error::InvalidCertificate(err) = err else {
        return match err {
            rustls::Error::AlertReceived(_) => {
                "it refuses TLS with this client: check sslcert and sslkey in the URL"
            }
            _ => TLS_FAILED,
        };
    };
    match err {
        NotValidForName | NotValidForNameContext { .. } => {
            "its certificate is for another name: use a host name of the certificate in the URL, \
             or sslmode=verify-ca, which does not compare it"
        }
        // The last two are about a trusted authority that has the same name and another key.
        UnknownIssuer | BadSignature | UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is from an authority that is not trusted: set sslrootcert in the URL \
             to the file of that authority's certificate"
        }
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "its certificate is expired or not valid yet: renew it, and check the clock"
        }
        // rustls has no variant for this error of webpki; only its text names it.
        Other(err) if err.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (CA:TRUE): give it one with CA:FALSE"
        }
        // Likewise.
        Other(err) if err.to_string().contains("UnsupportedCertVersion") => {
            "its certificate, like one that Citus makes, is of a version of X.509 that cannot be \
             checked: give it one of version 3, or set sslmode=disable in the URL within a trusted \
             network"
        }
        _ => "its certificate cannot be accepted: check it, and sslrootcert in the URL",
    }
}

fn network_error(options: &PgConnectOptions, err: &io::Error) -> ConnectFailure {
    let is_socket = options.get_socket().is_some() || options.get_host().starts_with('/');
    match err.kind() {
        io::ErrorKind::ConnectionRefused => {
            temporary("the connection is refused: start PostgreSQL, or check host and port")
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => temporary(CLOSED),
        io::ErrorKind::NotFound if is_socket => {
            temporary("the socket does not exist: start PostgreSQL, or check the socket's path")
        }
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => permanent(
            "a file that the URL names cannot be read: check sslrootcert, sslcert and sslkey",
        ),
        _ if err.to_string().contains("lookup address") => {
            temporary("the host name has no address: check the host")
        }
        _ => temporary("it cannot be reached: check that it runs, and its host and port"),
    }
}

/// A failure of PostgreSQL or PgBouncer by its SQLSTATE, if that is known.
fn state_error(err: &dyn DatabaseError) -> Option<ConnectFailure> {
    let state = err.code()?;
    Some(match &*state {
        TOO_MANY_CONNECTIONS => temporary(connection_limit(err.message())),
        // 28000 is invalid_authorization_specification.
        WRONG_PASSWORD | "28000" => permanent(REJECTED_LOGIN),
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
        state if is_shared_connection(state) => permanent(SHARED_CONNECTION),
        // protocol_violation
        "08P01" => return pgbouncer_error(err.message()),
        _ => return None,
    })
}

/// A refusal of PgBouncer, which has one SQLSTATE for all.
fn pgbouncer_error(message: &str) -> Option<ConnectFailure> {
    let is_about = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    Some(if is_about(&["startup parameter"]) {
        permanent(
            "PgBouncer refuses settings of the session: leave out options and PGOPTIONS, and use \
             ALTER ROLE … SET",
        )
    } else if is_about(&["no more connections allowed", "too many"]) {
        temporary("PgBouncer has no free connection: raise its max_client_conn")
    } else if is_about(&["server login failed"]) {
        temporary(
            "PostgreSQL rejects the login of PgBouncer: check the user and password that PgBouncer \
             has for it",
        )
    } else if is_about(&["no such database"]) {
        permanent("PgBouncer does not know the database: add it to [databases] of its settings")
    } else if is_about(&[
        "no such user",
        "authentication failed",
        "auth failed",
        "password",
    ]) {
        permanent("PgBouncer rejects the login: check user and password, and its auth_file")
    } else if is_about(&["server"]) {
        temporary("PgBouncer cannot reach PostgreSQL: check that PostgreSQL runs")
    } else {
        return None;
    })
}

/// Which limit of connections is reached, by the server's message in English.
fn connection_limit(message: &str) -> &'static str {
    if message.contains("for role") {
        "its user has no free connection: raise the limit with ALTER ROLE … CONNECTION LIMIT"
    } else if message.contains("for database") {
        "the database has no free connection: raise the limit with ALTER DATABASE … CONNECTION LIMIT"
    } else {
        "it has no free connection: raise its max_connections"
    }
}

/// What is wrong when another client's prepared statements are on the connection.
pub const SHARED_CONNECTION: &str = "another client uses the same connection, as with PgBouncer and \
    pool_mode=transaction: use PgBouncer 1.21 or later with max_prepared_statements above 0, or \
    pool_mode=session";

/// Whether the SQLSTATE says that a prepared statement already exists or is missing.
pub fn is_shared_connection(state: &str) -> bool {
    // duplicate_prepared_statement, invalid_sql_statement_name
    matches!(state, "42P05" | "26000")
}
