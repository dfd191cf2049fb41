//! A PostgreSQL user without permission to change tables, created as in docs/deploy/README.md, and
//! a user without permissions that a server needs.

use std::{fs, path::Path};

use crate::{
    command::{Command, command},
    kit::{
        postgres::{execute, shared_cluster},
        server::{Settings, TestServer},
    },
    prelude::*,
};

/// A migrated database, and the user of its servers.
struct SplitRoles {
    owner_url: String,
    user: String,
    user_url: String,
}

impl SplitRoles {
    /// Runs the statements of the page for a database of this name, then migrates it.
    fn make(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy/README.md");
        let page = fs::read_to_string(path).expect("the page");
        let (_, statements) = page.split_once("```sql\n").expect("statements");
        let (statements, _) = statements.split_once("```").expect("their end");
        let cluster = shared_cluster();
        let owner_url = cluster.make_database(name);
        let user = format!("{name}_server");
        let statements = statements
            .replace("guides", name)
            .replace("expertise_server", &user)
            .replace("`expertise`", "")
            .replace("expertise", "postgres");
        execute(&owner_url, &statements);
        command(&["migrate"])
            .env("EXPERTISE_DATABASE_URL", &owner_url)
            .run()
            .succeeded();
        Self {
            user_url: owner_url.replace("postgres@", &format!("{user}@")),
            owner_url,
            user,
        }
    }

    /// Takes permissions away: `DELETE ON tasks`.
    fn revoke(&self, what: &str) {
        execute(
            &self.owner_url,
            &format!("REVOKE {what} FROM {}", self.user),
        );
    }

    fn grant(&self, what: &str) {
        execute(&self.owner_url, &format!("GRANT {what} TO {}", self.user));
    }

    fn serve(&self, args: &[&str]) -> Command {
        let args = [&["--listen=127.0.0.1:0"], args].concat();
        command(&args).env("EXPERTISE_DATABASE_URL", &self.user_url)
    }

    /// A server does not start, and its line says so, with and without migrations.
    fn assert_refused_with(&self, part: &str) {
        for migrate in ["--migrate=false", "--migrate=true"] {
            let line = self.serve(&[migrate]).run().failure(1);
            assert!(line.contains(part), "{migrate}, {part}: {line}");
        }
    }
}

#[tokio::test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
async fn the_user_of_the_page_serves_and_a_permission_that_it_loses_is_logged() {
    let roles = SplitRoles::make("split_roles");
    let settings = Settings::new(&roles.user_url).set("EXPERTISE_MIGRATE", "false");
    let server = TestServer::start(settings).await;
    let client = server.client();
    let pump = client.given_task(task("Pump")).await;
    client.given_step(information_step(&pump, "Look")).await;
    client.force_delete_task(&pump.guid).await.accepted();

    roles.revoke("INSERT ON tasks");
    let failure = client.create_task(task("Pump")).await.refused();
    assert_eq!(failure.code, Code::Internal);
    let log = server.log();
    assert!(
        log.contains("the database user lacks a permission on a table"),
        "{log}"
    );
    assert!(!log.contains("permission denied"), "{log}");
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn a_missing_permission_is_named_with_its_table_at_the_start() {
    let roles = SplitRoles::make("lacking_roles");
    roles.revoke("ALL ON server_keys");
    roles.assert_refused_with("lacks permissions: grant it SELECT on server_keys\n");
    roles.grant("SELECT ON server_keys");
    roles.revoke("UPDATE, DELETE ON tasks");
    roles.revoke("ALL ON roles");
    roles.assert_refused_with(
        "the user of EXPERTISE_DATABASE_URL lacks permissions: grant it SELECT, INSERT, UPDATE, \
         DELETE on roles; UPDATE, DELETE on tasks\n",
    );
    roles.grant("SELECT ON roles");
    roles.revoke("INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public");
    roles.assert_refused_with("INSERT, UPDATE, DELETE on accounts, ");
    roles.revoke("USAGE ON SEQUENCE changes_seq");
    roles.assert_refused_with("USAGE on changes_seq");
}

#[test]
#[cfg_attr(no_postgres_programs, ignore = "no PostgreSQL programs here")]
fn tables_that_may_not_be_read_are_not_taken_for_missing_ones() {
    let roles = SplitRoles::make("blind_roles");
    roles.revoke("ALL ON seaql_migrations");
    roles.assert_refused_with("lacks permissions: grant it SELECT on seaql_migrations\n");
    roles.grant("SELECT ON seaql_migrations");
    roles.revoke("ALL ON ALL TABLES IN SCHEMA public");
    roles.assert_refused_with("grant it SELECT on seaql_migrations, server_keys\n");
    execute(&roles.owner_url, "REVOKE ALL ON SCHEMA public FROM PUBLIC");
    roles.revoke("ALL ON SCHEMA public");
    roles.assert_refused_with("can use no schema of its search_path: create one, or grant USAGE");
}
