//! The commands of the binary against servers in processes of their own: output, exit
//! codes and errors.

mod credentials;
mod databases;
mod export;
mod health;
mod import;
mod lint;
mod list;
mod manual;
mod preview;
mod references;
mod retries;
mod show;
mod tls;
mod version;
