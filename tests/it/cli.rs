//! The commands of the binary against servers in processes of their own: output, exit
//! codes and errors.

mod accounts;
mod apply;
mod changes;
mod copy;
mod credentials;
mod database_permissions;
mod databases;
mod delete;
mod diff;
mod drift;
mod edit;
mod export;
mod graph;
mod health;
mod history;
mod import;
mod interrupted_imports;
mod lint;
mod list;
mod manual;
mod new;
mod postgres_servers;
mod preview;
mod prompts;
mod references;
mod retries;
mod server_errors;
mod show;
mod task_names;
mod tls;
mod translation_list;
mod unreliable_service;
mod version;
