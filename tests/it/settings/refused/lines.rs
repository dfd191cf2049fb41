//! Every wrong setting and argument with the line that refuses it, in one snapshot.

use super::refusal;

/// What is given: variables, without `EXPERTISE_` in front, and arguments. Quotes are those of a
/// shell.
const GIVEN: &str = r"
LISTEN=localhost
LISTEN=50051
LISTEN=
LISTEN=0.0.0.0:50051
--listen=[::]:1
LISTEN=127.0.0.1:9464 METRICS_LISTEN=0.0.0.0:9464
LISTEN=127.0.0.1:9464 METRICS_LISTEN=127.0.0.1:9464
LISTEN=127.0.0.1:9464 METRICS_LISTEN=[::]:9464
AUTH=header LISTEN=[::]:9464 METRICS_LISTEN=[::1]:9464
MIGRATE=yes
REFLECTION=1
REQUEST_TIMEOUT=30
REQUEST_TIMEOUT=0s
'SHUTDOWN_GRACE=for\never'
MAX_MESSAGE_BYTES=72M
MAX_MESSAGE_BYTES=1073741824
MAX_INFLIGHT_BYTES=1048576
LOG=inof
LOG=expertise=loud
LOG=
LOG=info,
LOG_FORMAT=xml
--config=/nowhere/at.all

LISTNE=[::]:1
DATABSE_URL=sqlite:a.db
DATABASE_UR=sqlite:a.db
JWTSECRET=hush
TLS_CERTFILE=a.pem
TLS_CERT=a.pem
MAX_INFLIGHT_BYTE=1
LGO=debug
COLOUR=hush-hush

DATABASE_URL=mysql://ann:hush@db/e
DATABASE_URL=
DATABASE_URL=postgres:db/e
DATABASE_URL=sqlite:e.db?mode=rw
DATABASE_URL=postgres://ann:hush@db:99999/e
DATABASE_URL=postgres://one,two/e
DATABASE_URL=postgres://db/e?sslmod=require
DATABASE_URL=postgres://db/e?sslmode=on
DATABASE_URL=postgres://db/e PGSSLMODE=on
DATABASE_URL=postgres://db/e PGPORT=x
DATABASE_URL=postgres://db/e PGSSLKEY=client.key
DATABASE_URL=postgres://db/e?sslcert=client.pem
DATABASE_URL=postgres://db/e?sslmode=verify-full&sslrootcert=/no/such.pem
DATABASE_URL=postgres://db/e?sslmode=verify-ca&sslrootcert=/dev/null
DATABASE_URL=postgres://db/e?pgbouncer=true
DATABASE_URL=postgres://ann:hu#sh@db/e
DATABASE_MAX_CONNECTIONS=0

AUTH=none
AUTH=jwt JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_AUDIENCE=expertise
AUTH=jwt JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_ISSUER=us
AUTH=jwt JWT_SECRET= JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_SECRET=hush-these-are-only-31-bytes-ye JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_PUBLIC_KEY_FILE=key.pem JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_FILE=keys.json JWT_JWKS_URL=https://issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_SECRET_FILE= JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_PUBLIC_KEY_FILE= JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_FILE= JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_URL=issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_URL=ftp://issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_URL=https:// JWT_ISSUER=us JWT_AUDIENCE=expertise
AUTH=jwt JWT_JWKS_URL=https://ann:hush@issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
JWT_SECRET=hush-these-are-32-bytes-or-more-hush
LISTEN=0.0.0.0:50051 JWT_JWKS_URL=https://issuer.test/keys
AUTH=header JWT_AUDIENCE=expertise
TLS_CERT_FILE=cert.pem
TLS_KEY_FILE=key.pem
TLS_CLIENT_CA_FILE=ca.pem
TLS_CERT_FILE=cert.pem TLS_CLIENT_CA_FILE=ca.pem
TLS_CERT_FILE=
TLS_KEY_FILE=
TLS_CLIENT_CA_FILE=

token --account=42 --scope=read AUTH=header JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read --private-key-file=key.pem JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read --private-key-file=key.pem JWT_SECRET_FILE=secret JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read JWT_JWKS_URL=https://issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_JWKS_URL=https://issuer.test/keys JWT_ISSUER=us JWT_AUDIENCE=expertise
token --account=42 --scope=read JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_AUDIENCE=expertise
token --account=42 --scope=read JWT_SECRET=hush-these-are-32-bytes-or-more-hush JWT_ISSUER=us
token '--account=4 2' --scope=read
token --account=42 --scope=raed
token --account=42 --scope=
token --account=42 '--scope=read	write'
token --account=42 --scope=read --expires=1
token --account=42 --scope=read --expires=0s
token --account=42 --scope=read --subject=

list
list --account=demo CA_FILE=/dev/null
list --account=demo CA_FILE=/dev/null SERVER=http://127.0.0.1:1
list --account=demo TOKEN=to.ken
list '--account=a b'
list --account=demo TOKNE=hush
show '' --account=demo
show ' ' --account=demo
show 01a20006-4f3b-7d2f-8a4c-b9bf03c0c9d --account=demo
import a.json --account=demo --absent-steps=drop
import a.json --account=demo --request-id=1
import a.json --account=demo --format=xml
import a.json --account=demo --retries=many
import a.json --account=demo --server=localhost
lint --online a.json
lint a.json --rule=step/unreachable
lint a.json --rule=step/unknown=off
lint a.json --rule=step/unreachble=off
lint a.json --rule=step/unreachable=loud
lint a.json --min-severity=fatal
lint a.json --language=e
lint a.json --language=german
preview a.json --account=demo --answer=reacts
preview a.json --account=demo --level=user9
preview a.json --account=demo --subtask-depth=9

translate --languages=de
translate --account=42
translate --account=42 LANGUAGES=
translate --account=42 LANGUAGES=de,,es
translate --account=42 LANGUAGES=de,spanish
translate --account=42 LANGUAGES=de,en
translate --account=42 LANGUAGES=de SERVER=127.0.0.1:50051
translate --account=42 LANGUAGES=de SERVER=http://
translate --account=42 LANGUAGES=de SERVER=http://ann:hush@h
translate LANGUAGES=de 'ACCOUNT=a b'
translate --account=42 LANGUAGES=de TASK=
translate --account=42 LANGUAGES=de SOURCE_LANGUAGE=e
translate --account=42 LANGUAGES=de SOURCE_LANGUAGE=english
translate --account=42 LANGUAGES=de ENGINE=deepl
translate --account=42 LANGUAGES=de ENGINE=apertium ENGINE_API_KEY=hush
translate --account=42 LANGUAGES=de ENGINE_URL=http://h/?key=x
translate --account=42 LANGUAGES=de 'ENGINE_API_KEY=hu sh'
translate --account=42 LANGUAGES=de ENGINE_API_KEY=
translate LANGUAGES=de 'TOKEN=hu sh'
translate LANGUAGES=de TOKEN=
translate --account=42 LANGUAGES=de PARALLEL=0
translate --account=42 LANGUAGES=de TIMEOUT=0s
translate --account=42 LANGUAGES=de RETRIES=-1
translate --account=42 LANGUAGES=de BACKOFF=1
";

#[test]
fn each_wrong_setting_is_refused_in_one_line_without_secrets() {
    let mut shown = String::new();
    for given in GIVEN.lines() {
        shown.push_str(given);
        shown.push('\n');
        if given.is_empty() {
            continue;
        }
        let words = words(given);
        let (environment, args): (Vec<_>, Vec<_>) =
            words.iter().partition(|word| is_variable(word));
        let environment: Vec<(String, &str)> = environment
            .into_iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (full_name(name), value))
            .collect();
        let environment: Vec<(&str, &str)> = environment
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        let args: Vec<&str> = args.into_iter().map(String::as_str).collect();
        let line = refusal(&args, &environment);
        let hidden = ["hush-", "hu#sh", "hu sh", ":hush", "to.ken"];
        let hidden = hidden.iter().all(|secret| !line.contains(secret));
        assert!(hidden && !line.contains('\n'), "{given}: {line}");
        shown.push_str(&format!("    {line}\n"));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("refused_settings", shown));
}

/// The words of a line. Quotes hold spaces, and `\n` is a new line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.replace("\\n", "\n")),
        }
    }
    words
}

fn is_variable(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
}

fn full_name(name: &str) -> String {
    match name.starts_with("PG") {
        true => name.to_owned(),
        false => format!("EXPERTISE_{name}"),
    }
}
