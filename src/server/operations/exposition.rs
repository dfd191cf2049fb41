//! The formats of `/metrics`: OpenMetrics for those who accept it, and else the text
//! format of Prometheus, which every collector reads.

use http::{HeaderMap, header::ACCEPT};

const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_VERSION: &str = "1.0.0";
/// The media ranges that match the text format.
const PLAIN_TEXT: [&str; 3] = ["text/plain", "text/*", "*/*"];

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpositionFormat {
    OpenMetrics,
    PlainText,
}

impl ExpositionFormat {
    /// The format that the headers of a request prefer. Between equals it is OpenMetrics,
    /// and it is text when neither is accepted.
    pub fn accepted(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(ACCEPT).iter();
        let accepted = accepted.filter_map(|value| value.to_str().ok());
        let ranges: Vec<_> = accepted
            .flat_map(|value| value.split(','))
            .map(MediaRange::parse)
            .collect();
        let quality = |matches: fn(&MediaRange) -> bool| {
            let qualities = ranges.iter().filter(|range| matches(range));
            qualities.map(|range| range.quality).fold(0.0_f32, f32::max)
        };
        let open_metrics = quality(MediaRange::is_open_metrics);
        let plain_text = quality(|range| PLAIN_TEXT.contains(&range.name.as_str()));
        if open_metrics > 0.0 && open_metrics >= plain_text {
            Self::OpenMetrics
        } else {
            Self::PlainText
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::PlainText => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts a text in OpenMetrics to this format.
    pub fn convert(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::PlainText => plain_text(&open_metrics),
        }
    }
}

/// One of the media types that a client accepts.
struct MediaRange {
    name: String,
    version: Option<String>,
    quality: f32,
}

impl MediaRange {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self {
            name: parts.next().unwrap_or_default().to_ascii_lowercase(),
            version: None,
            quality: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.to_ascii_lowercase().as_str() {
                "q" => range.quality = value.parse().unwrap_or(0.0),
                "version" => range.version = Some(value.trim_matches('"').to_owned()),
                _ => {}
            }
        }
        range
    }

    fn is_open_metrics(&self) -> bool {
        let version = self.version.as_deref();
        self.name == OPEN_METRICS && version.is_none_or(|it| it == OPEN_METRICS_VERSION)
    }
}

/// The same metrics in text format 0.0.4: it names each metric as its samples are named,
/// and has neither units nor infos.
fn plain_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(of_metric) = line.strip_prefix("# HELP ") {
            help = of_metric.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some((name, kind)) = type_line(line) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            for part in [
                "# HELP ", name, suffix, " ", help, "\n", "# TYPE ", name, suffix, " ", kind, "\n",
            ] {
                text.push_str(part);
            }
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The name and the type of a metric.
fn type_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]

    use super::*;

    fn accepted(value: &str) -> ExpositionFormat {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().expect("a value"));
        ExpositionFormat::accepted(&headers)
    }

    #[test]
    fn the_preferred_format_is_chosen() {
        for (value, format) in [
            ("", ExpositionFormat::PlainText),
            ("*/*", ExpositionFormat::PlainText),
            ("text/html", ExpositionFormat::PlainText),
            (
                "application/openmetrics-text",
                ExpositionFormat::OpenMetrics,
            ),
            (
                "text/plain;q=0.9, application/openmetrics-text; version=\"1.0.0\"",
                ExpositionFormat::OpenMetrics,
            ),
            // Prometheus 2.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;\
                 version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ExpositionFormat::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=0.0.1,text/plain;q=0.5",
                ExpositionFormat::PlainText,
            ),
            (
                "application/openmetrics-text;q=0.2,text/plain",
                ExpositionFormat::PlainText,
            ),
            (
                "application/openmetrics-text;q=0",
                ExpositionFormat::PlainText,
            ),
        ] {
            assert_eq!(accepted(value), format, "{value}");
        }
        assert_eq!(
            ExpositionFormat::accepted(&HeaderMap::new()),
            ExpositionFormat::PlainText
        );
    }

    #[test]
    fn plain_text_names_metrics_like_their_samples() {
        let open_metrics = "# HELP a_build The version.\n# TYPE a_build info\n\
             a_build_info{version=\"1\"} 1\n\
             # HELP a_calls Calls.\n# TYPE a_calls counter\na_calls_total 2\n\
             # HELP a_wait_seconds Waits.\n# TYPE a_wait_seconds histogram\n\
             # UNIT a_wait_seconds seconds\na_wait_seconds_sum 0.5\n# EOF\n";
        let expected = "# HELP a_build_info The version.\n# TYPE a_build_info gauge\n\
             a_build_info{version=\"1\"} 1\n\
             # HELP a_calls_total Calls.\n# TYPE a_calls_total counter\na_calls_total 2\n\
             # HELP a_wait_seconds Waits.\n# TYPE a_wait_seconds histogram\n\
             a_wait_seconds_sum 0.5\n";
        assert_eq!(plain_text(open_metrics), expected);
    }
}
