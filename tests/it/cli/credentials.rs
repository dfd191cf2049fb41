//! Callers without credentials, with the wrong ones, and with too few.

use std::sync::OnceLock;

use crate::kit::{
    command::{Command, Says, command},
    server::{TestServer, in_memory},
    tokens::Signer,
};

const SECRET: &str = "a secret of thirty-two bytes, or more";

/// The address of the one server of this run that asks for tokens.
fn server() -> &'static str {
    static SERVER: OnceLock<(TestServer, String)> = OnceLock::new();
    let (_, url) = SERVER.get_or_init(|| {
        let settings = in_memory().jwt("EXPERTISE_JWT_SECRET", SECRET);
        let server = TestServer::start_blocking(&settings.set("EXPERTISE_JWT_ISSUER", "issuer"));
        let url = server.url();
        (server, url)
    });
    url
}

fn token(scope: &str, issuer: &str) -> String {
    let output = command(&["token", "--account=42", "--scope", scope])
        .env("EXPERTISE_JWT_SECRET", SECRET)
        .env("EXPERTISE_JWT_ISSUER", issuer)
        .env("EXPERTISE_JWT_AUDIENCE", "expertise")
        .run()
        .succeeded();
    output.stdout.trim().to_owned()
}

/// An expired token of this server's issuer.
fn expired() -> String {
    Signer::secret(SECRET.as_bytes()).token(&serde_json::json!({
        "account_id": "42", "sub": "ann", "iss": "issuer", "aud": "expertise",
        "exp": 1_000_000_000, "scope": "read",
    }))
}

fn list(server: &str) -> Command {
    command(&["list"]).env("EXPERTISE_SERVER", server)
}

#[test]
fn a_token_permits_what_its_scope_names() {
    let reader = token("read", "issuer");
    list(server())
        .env("EXPERTISE_TOKEN", &reader)
        .run()
        .succeeded();
    let output = command(&["import", "a.json", "b.json"])
        .file("a.json", "{\"task\": {\"name\": \"A\", \"product_id\": 7}}")
        .file("b.json", "{\"task\": {\"name\": \"B\", \"product_id\": 7}}")
        .env("EXPERTISE_SERVER", server())
        .env("EXPERTISE_TOKEN", &reader)
        .run();
    assert_eq!(output.code, Some(1));
    output.stderr.says(&[
        "failed a.json: the credentials lack the scope `write`: use a token that has it (SCOPE_MISSING)\n",
        "1 file was not tried, as the server refuses the calls of this caller\n",
    ]);
}

#[test]
fn a_refused_token_fails_with_a_one_line_error_without_the_token() {
    let expired = expired();
    let foreign = token("read", "somebody else");
    for (token, expected) in [
        (expired.as_str(), &["the token expired at"][..]),
        (foreign.as_str(), &["`iss` is another issuer"]),
        ("no.token.atall", &["has not expired", "issuer", "audience"]),
    ] {
        let line = list(server())
            .env("EXPERTISE_TOKEN", token)
            .run()
            .fails_with(1, &[expected, &["(CREDENTIALS_INVALID)"]].concat());
        assert!(!line.contains(token), "{line}");
    }
}

#[test]
fn an_account_for_a_jwt_mode_server_fails_with_a_one_line_error() {
    list(server())
        .env("EXPERTISE_ACCOUNT", "42")
        .run()
        .fails_with(1, &["set EXPERTISE_TOKEN instead of an account"]);
}

#[test]
fn a_token_for_a_header_mode_server_fails_with_a_one_line_error() {
    let process = TestServer::start_blocking(&in_memory());
    let server = process.url();
    let line = list(&server)
        .env("EXPERTISE_TOKEN", "some.to.ken")
        .run()
        .fails_with(1, &["set --account instead of a token"]);
    assert!(!line.contains("some.to.ken"), "{line}");
}

#[test]
fn the_author_of_a_change_is_who_is_named_with_the_account() {
    let server = TestServer::start_blocking(&in_memory());
    let run = |args: &[&str]| {
        let command = command(args).env("EXPERTISE_SERVER", &server.url());
        command.env("EXPERTISE_ACCOUNT", "42")
    };
    let guide = "{\"task\": {\"name\": \"A\", \"product_id\": 7}}";
    let import = |args: &[&str]| run(&[&["import", "-"], args].concat()).stdin(guide);
    import(&["--subject", "Ann Lee"]).run().succeeded();
    import(&[])
        .env("EXPERTISE_SUBJECT", "bob")
        .run()
        .succeeded();
    import(&[]).run().succeeded();
    let changes = run(&["changes", "--format=json"]).run().succeeded().stdout;
    let created = changes
        .lines()
        .filter(|it| it.contains("CHANGE_KIND_TASK_CREATED"));
    let authors = created.map(|line| {
        let change: serde_json::Value = serde_json::from_str(line).expect("JSON");
        change["subject"].as_str().unwrap_or_default().to_owned()
    });
    assert_eq!(authors.collect::<Vec<_>>(), ["Ann Lee", "bob", ""]);
    // A command that is printed has the same author.
    let output = run(&["changes", "--subject", "Ann Lee"]).run().succeeded();
    output.stderr.says(&[" --subject 'Ann Lee'"]);
    for (name, value) in [("EXPERTISE_SUBJECT", "Jörg"), ("EXPERTISE_TOKEN", "a.b.c")] {
        let list = run(&["list", "--subject=ann"]).env(name, value);
        let list = if name == "EXPERTISE_TOKEN" {
            list.without("EXPERTISE_ACCOUNT")
        } else {
            list
        };
        let output = list.run();
        let is_flag = name == "EXPERTISE_SUBJECT";
        assert_eq!(output.code, Some(if is_flag { 0 } else { 2 }), "{output:?}");
    }
    let refused = run(&["list", "--subject=Jörg"]).run();
    refused.fails_with(2, &["printable ASCII"]);
}
