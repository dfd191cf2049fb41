//! The command line as people meet it: the built binary against a server in a
//! process of its own, what goes well and what a newcomer does wrong.

mod credentials;
mod databases;
mod export;
mod health;
mod import;
mod list;
mod manual;
mod retries;
mod show;
mod tls;
mod version;
