//! docs/reference.md matches the API and the responses of a server, and its links have targets.

#![allow(clippy::expect_used)]

use std::collections::BTreeSet;

use prost_reflect::{Kind, ServiceDescriptor};

use super::page::{
    self,
    contract::{Contract, http},
};

const COMMITTED: &str = include_str!("../../docs/reference.md");

#[tokio::test]
async fn the_reference_is_current() {
    let current = page::write().await.expect("a page");
    let mut lines = COMMITTED.lines().zip(current.lines());
    let differing = lines.find(|(committed, current)| committed != current);
    assert!(
        COMMITTED == current,
        "docs/reference.md is out of date, regenerate it: \
         cargo run --example reference > docs/reference.md\n{differing:#?}"
    );
}

#[test]
fn every_link_of_the_reference_has_a_target() {
    let headings = COMMITTED.lines().filter_map(|line| {
        let heading = line.trim_start_matches('#');
        let is_heading = heading.len() < line.len();
        is_heading.then(|| heading.trim().to_lowercase().replace(' ', "-"))
    });
    let anchors = COMMITTED.split("<a id=\"").skip(1);
    let anchors = anchors.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    let places: Vec<_> = headings.chain(anchors).collect();
    let links = COMMITTED.split("](#").skip(1);
    let links: Vec<_> = links.filter_map(|rest| rest.split_once(')')).collect();
    assert!(links.len() > 100, "{} links", links.len());
    for (link, _) in links {
        assert!(places.iter().any(|place| place == link), "{link}");
    }
}

#[test]
fn the_reasons_of_an_rpc_include_those_that_its_description_names() {
    let mut described = 0;
    for section in COMMITTED.split("\n### ") {
        let Some((description, rest)) = section.split_once("\n**Fails with** ") else {
            continue;
        };
        let listed = rest.lines().next().expect("a list");
        // A reason in the example of a value is not a reason of the call.
        for (link, _) in description
            .split("](#")
            .skip(1)
            .filter_map(|it| it.split_once(')'))
        {
            if link.contains('_') {
                described += 1;
                let name = section.lines().next().expect("a heading");
                assert!(listed.contains(&format!("(#{link})")), "{name}: {link}");
            }
        }
    }
    assert!(described > 40, "{described}");
}

/// A proxy can serve each as REST: variables of the path are scalar fields of the request, and so is
/// no body.
#[test]
fn every_rpc_has_an_http_path_of_its_own() {
    let contract = Contract::read().expect("the API");
    let mut paths = BTreeSet::new();
    for rpc in contract
        .services
        .iter()
        .flat_map(ServiceDescriptor::methods)
    {
        let name = rpc.full_name();
        let (verb, path, body) = http(&rpc).expect(name);
        let is_message = |path: &str| {
            let mut kind = Kind::Message(rpc.input());
            for part in path.split('.') {
                let message = kind.as_message().expect(path);
                kind = message.get_field_by_name(part).expect(path).kind();
            }
            kind.as_message().is_some()
        };
        let variables = path.split(['{', '}']).skip(1).step_by(2);
        assert!(!variables.clone().any(is_message), "{name}");
        let has_body = !matches!(verb.as_str(), "get" | "delete");
        assert_eq!(!body.is_empty(), has_body, "{name}");
        assert!(
            matches!(body.as_str(), "" | "*") || is_message(&body),
            "{name}"
        );
        let fixed: Vec<_> = path.split(['{', '}']).step_by(2).collect();
        assert!(paths.insert((verb, fixed.concat())), "{name}");
    }
}
