//! Clients that cancel their calls, servers and databases that crash, and servers that are told to
//! end, each at random moments while [`Writers`](crate::writers::Writers) write.

mod cancellation;
mod crash;
mod shutdown;

const CLIENTS: usize = 16;
