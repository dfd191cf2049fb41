//! Values for rows and responses.

use std::time::{SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;
use tonic::Status;
use uuid::Uuid;

/// The account of every row; the floor does not check credentials.
pub const ACCOUNT: &str = "bench";

/// Microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.expect("a clock that is right").as_micros();
    i64::try_from(since).expect("a clock that is right")
}

/// A time in a message.
pub fn timestamp(micros: i64) -> Timestamp {
    Timestamp {
        seconds: micros / 1_000_000,
        nanos: i32::try_from(micros % 1_000_000 * 1_000).expect("less than a second"),
    }
}

/// A random etag, as long as those of the service.
pub fn etag() -> String {
    let mut etag = Uuid::new_v4().simple().to_string();
    etag.truncate(16);
    etag
}

/// The id that a request must contain.
pub fn parse_id(guid: &str) -> Uuid {
    Uuid::try_parse(guid).expect("an id")
}

/// The response of rpcs that are not measured.
pub fn unimplemented<T>() -> Result<T, Status> {
    Err(Status::unimplemented("the floor does not do that"))
}
