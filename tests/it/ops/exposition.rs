//! Metrics in the exposition format.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::{
    deadline::until,
    server::{TestServer, http_get},
};

/// The content of `/metrics`.
#[derive(Debug, Default)]
pub struct Exposition {
    samples: BTreeMap<String, f64>,
    families: BTreeMap<String, Family>,
}

/// A metric by the name that queries use; a histogram without the suffixes of its
/// parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    pub kind: String,
    pub labels: BTreeSet<String>,
}

impl Exposition {
    pub fn parse(text: &str) -> Self {
        let mut exposition = Self::default();
        let mut last = String::new();
        assert!(text.ends_with("# EOF\n"), "{text}");
        for line in text.lines() {
            if let Some(declaration) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declaration.split_once(' ').expect("a type");
                last = match kind {
                    "counter" => format!("{name}_total"),
                    "info" => format!("{name}_info"),
                    _ => name.to_owned(),
                };
                let family = exposition.families.entry(last.clone()).or_default();
                family.kind = kind.to_owned();
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let value = value.parse().expect("a number");
                let family = exposition.families.get_mut(&last).expect("a type");
                family
                    .labels
                    .extend(labels(series).map(|(name, _)| name.to_owned()));
                exposition.samples.insert(series.to_owned(), value);
            }
        }
        exposition
    }

    /// The metrics by name, without the labels of histogram buckets.
    pub fn families(&self) -> BTreeMap<String, Family> {
        let mut families = self.families.clone();
        for family in families.values_mut() {
            family.labels.remove("le");
        }
        families
    }

    /// The sum of the series of this name that have all these labels.
    pub fn sum(&self, name: &str, wanted: &[(&str, &str)]) -> f64 {
        self.series(name, wanted).iter().sum()
    }

    /// The value of each series of this name that has all these labels.
    pub fn series(&self, name: &str, wanted: &[(&str, &str)]) -> Vec<f64> {
        let found = self.samples.iter().filter(|(series, _)| {
            let own = series.split('{').next() == Some(name);
            own && wanted
                .iter()
                .all(|pair| labels(series).any(|label| label == *pair))
        });
        found.map(|(_, value)| *value).collect()
    }

    /// The values of a label, wherever it is.
    pub fn values(&self, label: &str) -> BTreeSet<String> {
        let all = self.samples.keys().flat_map(|series| labels(series));
        let of_label = all.filter(|(name, _)| *name == label);
        of_label.map(|(_, value)| value.to_owned()).collect()
    }

    /// The number of series.
    pub fn len(&self) -> usize {
        self.samples.len()
    }
}

impl TestServer {
    pub async fn metrics(&self) -> Exposition {
        let (code, text) = http_get(self.metrics_address(), "/metrics").await;
        assert_eq!(code, 200, "{text}");
        Exposition::parse(&text)
    }

    /// Waits until the metrics fulfil the condition.
    pub async fn wait_for_metrics(
        &self,
        what: &str,
        condition: impl Fn(&Exposition) -> bool,
    ) -> Exposition {
        until(what, async || Some(self.metrics().await).filter(&condition)).await
    }
}

/// The labels of a series. None of their values holds a comma or a quote.
fn labels(series: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = series.split_once('{').map_or("", |(_, rest)| rest);
    let pairs = inside.trim_end_matches('}').split(',');
    pairs.filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name, value.trim_matches('"')))
    })
}
