//! The commands of the binary against servers in processes of their own: output, exit
//! codes and errors.

mod accounts;
mod apply;
mod changes;
mod command_line_page;
mod copy;
mod database_permissions;
mod databases;
mod graph;
mod health;
mod interrupted_imports;
mod lint;
mod postgres_servers;
mod prompts;
mod retries;
mod scripted_service;
mod server_errors;
mod terminal;
mod terminals;
mod tls;
mod transcript;
mod transcripts;
mod translate;
mod version;
