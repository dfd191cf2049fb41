//! The pages for operators name metrics and settings that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::Value;

use crate::{
    kit::server::{TestServer, with_metrics},
    ops::{
        authentication::{certificates::Authority, tokens::SECRET},
        exposition::Family,
    },
};

const PAGE: &str = "docs/operations.md";
const DASHBOARD: &str = "docs/grafana/expertise.json";
const ALERTS: &str = "docs/alerts.yaml";

fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every metric of a server that has all of them.
async fn exposed() -> BTreeMap<String, Family> {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = with_metrics("sqlite::memory:")
        .jwt("EXPERTISE_JWT_SECRET", SECRET)
        .tls(&Authority::new().files(directory.path()))
        .set("EXPERTISE_OTLP_ENDPOINT", "http://127.0.0.1:9")
        .set("EXPERTISE_SHUTDOWN_GRACE", "100ms");
    let server = TestServer::start(settings).await;
    let families = server.metrics().await.families();
    server.shut_down().await;
    families
}

#[tokio::test]
async fn the_table_of_metrics_is_what_is_exposed() {
    let exposed = exposed().await;
    let page = read(PAGE);
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let [name, kind, labels, ..] = cells.as_slice() else {
            return None;
        };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        if !is_metric(name) {
            return None;
        }
        let labels = labels.split(", ").filter(|label| !label.is_empty());
        let family = Family {
            kind: (*kind).to_owned(),
            labels: labels
                .map(|label| label.trim_matches('`').to_owned())
                .collect(),
        };
        Some((name.to_owned(), family))
    });
    let rows: BTreeMap<_, _> = rows.collect();
    let only_in = |one: &BTreeMap<String, Family>, other: &BTreeMap<String, Family>| -> Vec<_> {
        let differing = one
            .iter()
            .filter(|(name, family)| other.get(*name) != Some(family));
        differing.map(|pair| format!("{pair:?}")).collect()
    };
    let (in_page, in_server) = (only_in(&rows, &exposed), only_in(&exposed, &rows));
    assert!(
        in_page.is_empty() && in_server.is_empty(),
        "only in {PAGE}: {in_page:#?}\nonly exposed: {in_server:#?}"
    );
}

#[tokio::test]
async fn the_dashboard_queries_exposed_metrics() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(|target| {
            let query = target["expr"].as_str();
            query.expect("a query").to_owned()
        })
    });
    let queries: Vec<_> = queries.collect();
    assert!(queries.len() >= panels.len() / 2, "{queries:?}");
    assert_all_exposed(&queries).await;
    let exposed = exposed().await;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array()) {
        for target in target {
            let query = target["expr"].as_str().expect("a query");
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            assert_has_labels(query, legend, &exposed);
        }
    }
}

/// Asserts that what a query returns has each label of its legend or summary.
fn assert_has_labels(query: &str, legend: &str, exposed: &BTreeMap<String, Family>) {
    let kept: BTreeSet<String> = query
        .split("by (")
        .skip(1)
        .flat_map(|part| part.split(')').next().unwrap_or_default().split(','))
        .map(|label| label.trim().to_owned())
        .collect();
    let metrics = words(query).filter_map(|word| exposed.get(word));
    let of_metrics: BTreeSet<&String> = metrics.flat_map(|family| &family.labels).collect();
    for label in legend.split("{{").skip(1) {
        let (label, _) = label.split_once("}}").expect(legend);
        let label = label.trim().trim_start_matches("$labels.").to_owned();
        let has = match query.contains("by (") {
            true => kept.contains(&label),
            false => label == "instance" || of_metrics.contains(&label),
        };
        assert!(has, "no label {label}: {query}");
    }
}

#[tokio::test]
async fn alerts_query_exposed_metrics() {
    let text = read(ALERTS);
    let rules: Alerts = serde_saphyr::from_str(&text).expect("rules");
    let rules: Vec<_> = rules
        .groups
        .into_iter()
        .flat_map(|group| group.rules)
        .collect();
    assert!(!rules.is_empty());
    let exposed = exposed().await;
    for rule in &rules {
        let summary = rule.annotations.get("summary").expect(&rule.alert);
        assert_has_labels(&rule.expr, summary, &exposed);
        let wait = humantime::parse_duration(&rule.wait);
        assert!(wait.is_ok(), "{}: {}", rule.alert, rule.wait);
    }
    let queries: Vec<_> = rules.into_iter().map(|rule| rule.expr).collect();
    assert_all_exposed(&queries).await;
}

#[derive(serde::Deserialize)]
struct Alerts {
    groups: Vec<Group>,
}

#[derive(serde::Deserialize)]
#[allow(dead_code)]
struct Group {
    name: String,
    rules: Vec<Rule>,
}

#[derive(serde::Deserialize)]
#[allow(dead_code)]
struct Rule {
    alert: String,
    expr: String,
    #[serde(rename = "for")]
    wait: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// Asserts that each metric and label of the queries is exposed.
async fn assert_all_exposed(queries: &[String]) {
    let exposed = exposed().await;
    let all_labels: BTreeSet<_> = exposed.values().flat_map(|family| &family.labels).collect();
    for query in queries {
        let names = words(query).filter(|word| is_metric(word));
        // Prometheus makes `up` of each scrape.
        let mut asked = words(query).filter(|word| *word == "up").count();
        for name in names {
            asked += 1;
            let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|part| {
                let family = exposed.get(name.strip_suffix(part)?)?;
                (family.kind == "histogram").then_some(family)
            });
            let family = histogram.or_else(|| exposed.get(name).filter(|f| f.kind != "histogram"));
            assert!(family.is_some(), "{name} is not exposed: {query}");
        }
        assert!(asked > 0, "nothing of ours is asked for: {query}");
        for label in labels_of(query) {
            let known = ["le", "instance", "job"].contains(&label.as_str());
            assert!(
                known || all_labels.contains(&label),
                "no label {label}: {query}"
            );
        }
    }
}

/// Whether it is named like a metric of the server.
fn is_metric(word: &str) -> bool {
    let prefixes = ["expertise_", "grpc_server_", "process_"];
    prefixes.iter().any(|prefix| word.starts_with(prefix))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The labels of matchers in braces and of `by (…)`.
fn labels_of(query: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for part in query.split('{').skip(1) {
        let inside = part.split('}').next().unwrap_or_default();
        let matchers = inside.split(',').filter(|matcher| !matcher.is_empty());
        labels.extend(
            matchers
                .filter_map(|matcher| words(matcher.trim()).next())
                .map(str::to_owned),
        );
    }
    for part in query.split("by (").skip(1) {
        let inside = part.split(')').next().unwrap_or_default();
        labels.extend(inside.split(',').map(|label| label.trim().to_owned()));
    }
    labels
}
