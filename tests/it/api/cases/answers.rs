//! Answers as the lines that cases expect.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::account::{GUIDE, list, text};
use crate::kit::failure::Failure;

/// How many levels there are.
const LEVELS: usize = 7;

/// What ids and paths of an answer stand for.
pub struct Names<'a> {
    pub ids: &'a BTreeMap<String, String>,
    /// The document that was asked about, if it was not a stored guide.
    pub document: Option<&'a Value>,
}

impl Names<'_> {
    /// The name of an id.
    pub fn of(&self, id: &str) -> String {
        match self.known(id) {
            Some(GUIDE) => "task".to_owned(),
            Some(name) => name.to_owned(),
            None => id.to_owned(),
        }
    }

    fn known(&self, id: &str) -> Option<&str> {
        let found = self.ids.iter().find(|(_, known)| *known == id);
        found.map(|(name, _)| name.as_str())
    }

    /// A text with the names of its ids.
    pub fn within(&self, text: &str) -> String {
        let ids = self.ids.iter();
        ids.fold(text.to_owned(), |text, (name, id)| text.replace(id, name))
    }

    /// The name of a place's task or step, and the path in it.
    fn place(&self, place: &Value) -> String {
        let path = text(place, "path");
        let (name, path) = match (path.strip_prefix("document."), self.document) {
            (Some(path), Some(document)) => within(document, path, ""),
            _ => {
                let step = Some(text(place, "step")).filter(|step| !step.is_empty());
                (self.of(step.unwrap_or(text(place, "task"))), path)
            }
        };
        format!("{name} {}", short(path)).trim_end().to_owned()
    }

    /// The steps that lead to the next observation, of which those without ids are `#1` or
    /// `#1.values[0]`.
    fn way(&self, way: &[Value]) -> String {
        let mut document = self.document;
        let mut prefix = String::new();
        let names = way.iter().filter_map(Value::as_str).map(|step| {
            let Some(place) = step.strip_prefix('#') else {
                return self.of(step);
            };
            let (index, value) = place.split_once(".values[").unwrap_or((place, ""));
            let steps = document.map(|document| &document["steps"]);
            let step = steps.and_then(|steps| steps.get(index.parse::<usize>().ok()?));
            let values = step.map(|step| &step["feedback_config"][0]["values"]);
            let value = value.trim_end_matches(']').parse::<usize>().ok();
            let Some(value) = values.and_then(|values| values.get(value?)) else {
                return format!("{prefix}{index}");
            };
            document = value.get("task_json");
            prefix = format!("{prefix}{index}.{}/", text(value, "key"));
            format!("{prefix}wiring")
        });
        names.collect::<Vec<_>>().join(" > ")
    }
}

/// What a path within a document names, and the rest of the path.
fn within<'p>(document: &Value, path: &'p str, prefix: &str) -> (String, &'p str) {
    let indexed = path
        .strip_prefix("steps[")
        .and_then(|path| path.split_once(']'));
    let Some((index, rest)) = indexed else {
        let task = if prefix.is_empty() {
            "task"
        } else {
            prefix.trim_end_matches('/')
        };
        let rest = path.strip_prefix("task").unwrap_or(path);
        return (task.to_owned(), rest.trim_start_matches('.'));
    };
    let inner = rest.strip_prefix(".feedback_config[0].values[");
    let inner = inner.and_then(|rest| rest.split_once("].task_json."));
    if let Some((value, rest)) = inner {
        let index_of = |text: &str| text.parse::<usize>().expect("an index");
        let value =
            &document["steps"][index_of(index)]["feedback_config"][0]["values"][index_of(value)];
        let prefix = format!("{prefix}{index}.{}/", text(value, "key"));
        return within(&value["task_json"], rest, &prefix);
    }
    (format!("{prefix}{index}"), rest.trim_start_matches('.'))
}

/// `?0.1=2` for the target 2 of the condition 1 in the group 0 of the dependencies, `values[1]` for
/// a value of the question, and `de.title` for a translation.
fn short(path: &str) -> String {
    let shortened = match path.strip_prefix("dependencies") {
        Some(path) => [
            ("].group.nodes[", "."),
            (".nodes[", ""),
            ("].condition", ""),
            (".targets[", "="),
            ("]", ""),
        ]
        .iter()
        .fold(path.to_owned(), |path, (long, short)| {
            path.replace(long, short)
        })
        .replacen("", "?", 1),
        None => path
            .replace("feedback_config[0].", "")
            .replace("translations[\"", ""),
    };
    shortened.replace("\"]", "")
}

/// A value on a line: a text as it is, unless it could be something else.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_word = text
                .chars()
                .all(|c| c.is_alphanumeric() || "_-./ ".contains(c));
            let text = text.replace("components.7.", ".");
            if is_word && !text.is_empty() && serde_json::from_str::<Value>(&text).is_err() {
                text
            } else {
                value.to_string()
            }
        }
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN).to_string(),
        Value::Array(values) => format!("[{}]", joined(values, ", ", plain)),
        other => other.to_string(),
    }
}

fn joined(values: &[Value], separator: &str, line: impl Fn(&Value) -> String) -> String {
    values.iter().map(line).collect::<Vec<_>>().join(separator)
}

/// One line per finding, or `none`, followed by the suppressed and undecided ones.
pub fn findings(names: &Names<'_>, rules: &Value, response: &Value, hints: bool) -> Vec<String> {
    let found = list(&response["findings"]);
    let ids: BTreeSet<&str> = found.iter().map(|finding| text(finding, "id")).collect();
    assert_eq!(ids.len(), found.len(), "an id is there twice: {found:#?}");
    let mut lines: Vec<String> = found
        .iter()
        .map(|found| finding(names, rules, found, hints))
        .collect();
    lines = or_none(lines);
    let counts = &response["counts"];
    for (severity, count) in [
        ("ERROR", "errors"),
        ("WARNING", "warnings"),
        ("INFO", "infos"),
    ] {
        let listed = found
            .iter()
            .filter(|finding| text(finding, "severity").ends_with(severity));
        let counted = counts[count].as_u64().unwrap_or_default();
        assert!(
            counts.is_null() || listed.count() as u64 == counted,
            "{count} of {response:#}"
        );
    }
    for count in ["suppressed", "undecided"] {
        lines.extend(counts.get(count).map(|number| format!("{number} {count}")));
    }
    lines
}

fn finding(names: &Names<'_>, rules: &Value, finding: &Value, hints: bool) -> String {
    for name in ["message", "hint"] {
        assert_ne!(text(finding, name), "", "no {name}: {finding:#}");
    }
    assert_eq!(text(finding, "id").len(), 32, "{finding:#}");
    let rule = list(&rules["rules"])
        .iter()
        .find(|rule| rule["id"] == finding["rule"]);
    let rule = rule.expect("a rule");
    let mut line = format!("{} {}", names.place(finding), text(finding, "rule"));
    if rule["severity"] != finding["severity"] {
        line += &format!(" {}", text(finding, "severity"));
    }
    let level = |level: &Value| {
        level
            .as_str()
            .map(|level| json!(level.replace("ACCESS_LEVEL_", "")))
    };
    let levels: Vec<Value> = list(&finding["levels"]).iter().filter_map(level).collect();
    for (name, fact) in finding["facts"].as_object().into_iter().flatten() {
        match name.as_str() {
            "levels" if *fact == json!(levels) => {}
            _ => line += &format!(" {name}={}", plain(fact)),
        }
    }
    let language = text(finding, "language");
    if finding["facts"]["language"] != language && !language.is_empty() {
        line += &format!(" in={language}");
    }
    if levels.len() == LEVELS {
        line += " for=everyone";
    } else if !levels.is_empty() {
        line += &format!(" for={}", joined(&levels, ",", plain));
    }
    for answer in list(&finding["example"]) {
        line += &format!(
            " {{{} = {}}}",
            text(answer, "name").replace("components.7.", "."),
            plain(&answer["value"])
        );
    }
    for place in list(&finding["related"]) {
        line += &format!(" <{} \"{}\">", names.place(place), text(place, "title"));
    }
    if hints {
        line += &format!(" hint: {}", text(finding, "hint"));
    }
    line
}

/// A line for each step, and what follows from the answers.
pub fn preview(names: &Names<'_>, preview: &Value) -> Vec<String> {
    let mut lines = previewed("task", &preview["task"], &preview["task"]["name"]);
    // A visible task is not worth a line.
    lines.retain(|line| line != "task + Guide");
    for step in list(&preview["steps"]) {
        let indent = "  ".repeat(list(&step["via"]).len());
        let step = previewed("", step, &step["title"]);
        lines.extend(
            step.into_iter()
                .map(|line| format!("{indent}{}", line.trim_end())),
        );
    }
    let next = list(&preview["nextObservation"]);
    if !next.is_empty() {
        lines.push(format!("next {}", names.way(next)));
    }
    for open in list(&preview["openVariables"]) {
        let keys = joined(list(&open["keys"]), ", ", plain);
        let line = format!("open {} in {}: {keys}", plain(&open["name"]), open["steps"]);
        lines.push(line.trim_end_matches(": ").to_owned());
    }
    for (name, list_name) in [("unused", "unusedAnswers"), ("unasked", "hiddenAnswers")] {
        let answers = list(&preview[list_name]);
        if !answers.is_empty() {
            lines.push(format!("{name} {}", joined(answers, ", ", plain)));
        }
    }
    or_none(lines)
}

/// A task or step: `+`, `-` or `?` for visible, hidden and undetermined, its texts and traces.
fn previewed(what: &str, shown: &Value, title: &Value) -> Vec<String> {
    let sign = match text(shown, "visibility") {
        "VISIBILITY_VISIBLE" => "+",
        "VISIBILITY_HIDDEN" => "-",
        _ => "?",
    };
    let mut line = format!("{what} {sign} {}", with_language(title))
        .trim_start()
        .to_owned();
    let question = &shown["question"];
    if let Some(answer) = question.get("answer") {
        line += &format!(" = {}", plain(answer));
    }
    // Most questions have the title of their step.
    if question.is_object() && question["name"] != title["text"] {
        line += &format!(" asks {}", text(question, "name"));
    }
    for reason in list(&shown["reasons"]) {
        let reason = reason.as_str().unwrap_or_default();
        line += &format!(" {}", reason.replace("VISIBILITY_REASON_", ""));
    }
    let mut lines = vec![line];
    if shown.get("body").is_some() {
        lines.push(format!("  body: {}", with_language(&shown["body"])));
    }
    if shown.get("instructionsLanguage").is_some() {
        lines.push(format!(
            "  instructions [{}]",
            text(shown, "instructionsLanguage")
        ));
    }
    let answers = list(&question["answers"]).iter();
    // Texts of answers are only of interest in another language.
    for answer in
        answers.filter(|answer| *with_language(&answer["value"]) != *text(&answer["value"], "text"))
    {
        lines.push(format!(
            "  {}: {}",
            text(answer, "key"),
            with_language(&answer["value"])
        ));
    }
    for (name, trace_name) in [("trace", "trace"), ("of its task", "subtaskTrace")] {
        if let Some(found) = shown.get(trace_name) {
            lines.push(format!("  {name}: {}", trace(found)));
        }
    }
    lines
}

/// A text and the note about its language.
fn with_language(shown: &Value) -> String {
    let mut marks = vec![text(shown, "language")];
    for mark in ["fallback", "outdated"] {
        marks.extend(shown.get(mark).map(|_| mark));
    }
    marks.retain(|mark| !mark.is_empty());
    if marks.is_empty() {
        return text(shown, "text").to_owned();
    }
    format!("{} [{}]", text(shown, "text"), marks.join(" "))
}

/// A condition with what it saw and why it holds or not; the nodes of a group in parentheses.
fn trace(node: &Value) -> String {
    let result = text(node, "result").replace("TRUTH_", "");
    if let Some(group) = node.get("group") {
        let operator = text(group, "operator").replace("LOGICAL_OPERATOR_", "");
        return format!(
            "{result} {operator}({})",
            joined(list(&group["nodes"]), "; ", trace)
        );
    }
    let condition = &node["condition"];
    let target = |target: &Value| match target {
        Value::String(text) => text.clone(),
        other => format!("#{}", plain(other)),
    };
    let saw = condition
        .get("value")
        .map(|value| format!(" saw {}", plain(value)));
    let [name, operator, path, reason] =
        ["name", "operator", "path", "reason"].map(|name| text(condition, name));
    format!(
        "{result} {} {} {operator} {} {}{}",
        short(path),
        name.replace("components.7.", "."),
        joined(list(&condition["targets"]), ", ", target),
        reason.replace("TRACE_REASON_", ""),
        saw.unwrap_or_default(),
    )
}

pub fn references(names: &Names<'_>, response: &Value) -> Vec<String> {
    let found = list(&response["references"]).iter().map(|found| {
        let kind = text(found, "kind").replace("REFERENCE_KIND_", "");
        let place = &found["place"];
        let targets = joined(list(&found["targets"]), ", ", |target| match target {
            Value::String(text) => text.clone(),
            other => format!("#{}", plain(other)),
        });
        let condition = format!("{} {targets}", text(found, "operator"));
        let line = format!(
            "{kind} {} \"{}\" {condition}",
            names.place(place),
            text(place, "title")
        );
        line.trim_end().to_owned()
    });
    or_none(found.collect())
}

fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return vec!["none".to_owned()];
    }
    lines
}

/// What a write says that it did, except for the resource itself.
pub fn outcome(names: &Names<'_>, response: &Value) -> Option<String> {
    let mut line = String::new();
    for (name, value) in response.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            ("ignored_paths" | "guide_etag" | "steps", _) => {}
            ("replaced_ids", Value::Object(ids)) => {
                for (old, new) in ids {
                    // A dry run makes none.
                    let new = names.known(new.as_str().unwrap_or_default());
                    line += &format!(" {}->{}", names.of(old), new.unwrap_or("?"));
                }
            }
            (_, Value::Object(_)) => {}
            _ => line += &field(names, name, value),
        }
    }
    (!line.is_empty()).then(|| line.trim_start().to_owned())
}

/// The differences of two revisions.
pub fn differences(names: &Names<'_>, response: &Value) -> Vec<String> {
    let steps = list(&response["steps"]).iter().map(|step| {
        let kind = text(step, "kind").replace("DIFFERENCE_KIND_", "");
        let paths = joined(list(&step["paths"]), ", ", plain);
        let moved = if step["moved"] == true { " moved" } else { "" };
        let name = names.of(text(step, "step"));
        let task = match names.of(text(step, "task")) {
            guide if guide == "task" => String::new(),
            task => format!(" of {task}"),
        };
        let what = text(step, "type").replace("STEP_TYPE_", "");
        let title = text(step, "title");
        format!("{kind} {name}{task} {what} \"{title}\"{moved} {paths}")
            .trim_end()
            .to_owned()
    });
    steps.collect()
}

/// ` NAME=VALUE` of a task or step; `none` if it has no value.
pub fn field(names: &Names<'_>, name: &str, value: &Value) -> String {
    match (name, value) {
        (_, Value::Null) => format!(" {name}=none"),
        ("translations", Value::Object(rows)) => {
            let mut line = String::new();
            for (tag, row) in rows {
                for (name, value) in row.as_object().into_iter().flatten() {
                    line += &field(names, &format!("{tag}.{name}"), value);
                }
            }
            line
        }
        ("dependencies", group) => format!(" ? {}", conditions(group)),
        (_, Value::Array(questions)) if name.ends_with("feedback_config") => {
            let name = name.replace("feedback_config", "question");
            format!(
                " {name}=[{}]",
                joined(questions, "; ", |it| question(names, it))
            )
        }
        _ => format!(" {name}={}", shown(names, value)),
    }
}

/// A group of conditions, each as `PATH/NAME OPERATOR TARGETS`.
fn conditions(group: &Value) -> String {
    let node = |node: &Value| match node.get("group") {
        Some(group) => format!("({})", conditions(group)),
        None => {
            let condition = &node["condition"];
            let [path, name, operator] =
                ["path", "variable", "operator"].map(|name| text(condition, name));
            let targets = joined(list(&condition["targets"]), ", ", Value::to_string);
            format!("{path}/{name} {operator} {targets}")
        }
    };
    let operator = match text(group, "operator") {
        "LOGICAL_OPERATOR_OR" => " | ",
        _ => " & ",
    };
    joined(list(&group["nodes"]), operator, node)
}

/// A value with the names of its ids, and without the prefixes of enums.
fn shown(names: &Names<'_>, value: &Value) -> String {
    const PREFIXES: [&str; 5] = [
        "ACCESS_LEVEL_",
        "IMPORT_OUTCOME_",
        "PLACEMENT_",
        "STEP_TYPE_",
        "TASK_TYPE_",
    ];
    match value {
        Value::String(id) if names.known(id).is_some() => names.of(id),
        Value::String(text) => {
            let short = PREFIXES.iter().find_map(|it| text.strip_prefix(it));
            let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            short.map_or_else(
                || {
                    if is_number {
                        text.clone()
                    } else {
                        plain(value)
                    }
                },
                str::to_owned,
            )
        }
        Value::Array(values) => format!("[{}]", joined(values, ", ", |value| shown(names, value))),
        other => plain(other),
    }
}

/// The name of a question, and its answers with the tasks that they manage.
fn question(names: &Names<'_>, question: &Value) -> String {
    let answer = |value: &Value| {
        let link = match text(value, "link") {
            "" => String::new(),
            link => format!(" -> {}", names.of(link)),
        };
        format!("{}={}{link}", text(value, "key"), text(value, "value"))
    };
    let answers = joined(list(&question["values"]), ", ", answer);
    let link = if question["linked"] == true {
        "link "
    } else {
        ""
    };
    let kind = text(question, "type").replacen("enum", "", 1);
    format!("{kind}{link}{}: {answers}", text(question, "name"))
}

pub fn ignored(response: &Value) -> Vec<String> {
    let paths = list(&response["ignored_paths"]);
    if paths.is_empty() {
        Vec::new()
    } else {
        vec![format!("ignored {}", joined(paths, ", ", plain))]
    }
}

/// What is wrong, and what the error names: the tasks or steps in the way, and where the request
/// names one that is not there.
pub fn refused(names: &Names<'_>, failure: &Failure) -> Vec<String> {
    failure.describes_its_violations();
    let preconditions = failure.preconditions().into_iter();
    let mut lines: Vec<String> = preconditions
        .map(|(reason, subject)| format!("refused {reason} {}", names.of(subject)))
        .collect();
    if let Some(total) = failure.metadata().remove("violations_total") {
        lines.push(format!("of {total}"));
    }
    if let Some(by) = failure.metadata().remove("managed_by") {
        lines
            .iter_mut()
            .for_each(|line| *line += &format!(" by {}", names.of(&by)));
    }
    let resource = failure.details.resource_info();
    let resource = resource.map_or(String::new(), |it| {
        format!(" {}", names.of(&it.resource_name))
    });
    let violations = failure.violations().into_iter();
    lines.extend(violations.map(|(path, reason)| format!("refused {path} {reason}{resource}")));
    if lines.is_empty() {
        let field = failure.metadata().remove("field");
        let field = field.map_or(String::new(), |field| format!(" at {field}"));
        lines.push(format!("refused {}{resource}{field}", failure.reason()));
    }
    lines
}
