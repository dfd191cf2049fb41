//! The notation of guide cases, which `tests/README.md` describes: one line per step, question
//! and line of an answer. Documents, fields and conditions become the JSON of their messages.

use std::{collections::BTreeMap, iter::Peekable};

use serde_json::{Map, Value, json};

use super::dependencies::{cut, group, literal, quoted, split};
use crate::kit::sample::PRODUCT;

/// A guide and what to do with it.
pub struct Case {
    pub line: usize,
    pub name: String,
    /// The document of the guide.
    pub guide: Value,
    pub actions: Vec<Action>,
}

/// A call, with the lines of its expected answer.
pub struct Action {
    pub line: usize,
    pub verb: String,
    pub words: Vec<String>,
    pub fields: Map<String, Value>,
    /// Fields of the task in the document of an import.
    pub task: Value,
    pub steps: Vec<Value>,
    pub expected: Vec<String>,
}

impl Action {
    /// The task or step that it is about; empty for the guide.
    pub fn subject(&self) -> String {
        let words = self.words.iter().map(String::as_str);
        let words: Vec<&str> = words.filter(|word| !FLAGS.contains(word)).collect();
        words.join(" ")
    }

    pub fn is_write(&self) -> bool {
        WRITES.contains(&self.verb.as_str())
    }

    /// Whether it is a call with an answer, and not a task of an account.
    fn is_answered(&self) -> bool {
        !matches!(&*self.verb, "other" | "stranger")
    }

    pub fn asks_for(&self, flag: &str) -> bool {
        self.words.iter().any(|word| word == flag)
    }
}

/// The problem with a line.
#[derive(Debug)]
pub struct Wrong {
    pub line: usize,
    pub what: String,
}

struct Line<'a> {
    number: usize,
    text: &'a str,
    /// The lines that are indented more.
    below: Vec<Line<'a>>,
}

/// The steps that `guide NAME` lines name.
type Guides<'a> = BTreeMap<&'a str, Vec<Value>>;

const VERBS: [&str; 6] = [
    "other",
    "stranger",
    "validate",
    "preview",
    "findings",
    "references",
];

const WRITES: [&str; 7] = [
    "import", "create", "edit", "delete", "keep", "restore", "compare",
];

const FLAGS: [&str; 4] = ["stored", "document", "hints", "exported"];

/// How the names of resources begin that writes create: `new1`.
pub const NEW: &str = "new";

/// A document with these steps.
pub fn guide(text: &str) -> Result<Value, Wrong> {
    let steps = steps(&tree(&mut lines(text).peekable(), 0), &Guides::new())?;
    Ok(json!({"task": named(json!({}), "Guide"), "steps": steps}))
}

pub fn cases(text: &str) -> Result<Vec<Case>, Wrong> {
    let (mut guides, mut cases) = (Guides::new(), Vec::new());
    for line in tree(&mut lines(text).peekable(), 0) {
        match line.text.split_once(' ') {
            Some(("guide", name)) => {
                let steps = steps(&line.below, &guides)?;
                guides.insert(name, steps);
            }
            Some(("case", name)) => cases.push(case(name, &line, &guides)?),
            _ => return Err(line.wrong("expected `guide NAME` or `case NAME`")),
        }
    }
    let expects_nothing = |case: &&Case| {
        let answered: Vec<&Action> = case.actions.iter().filter(|it| it.is_answered()).collect();
        answered.iter().all(|it| it.expected.is_empty())
            || answered.last().is_some_and(|last| last.expected.is_empty())
    };
    match cases.iter().find(expects_nothing) {
        Some(Case { line, name, .. }) => Err(Wrong {
            line: *line,
            what: format!("expected a line `-> …` at its end: {name}"),
        }),
        None if cases.is_empty() => Err(Wrong {
            line: 1,
            what: "expected a case".to_owned(),
        }),
        None => Ok(cases),
    }
}

/// The number, indentation and text of each line that is not empty or a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let text = line.trim();
        (index + 1, line.len() - line.trim_start().len(), text)
    });
    lines.filter(|(.., text)| !text.is_empty() && !text.starts_with('#'))
}

/// The lines that are indented at least this much, each with those below it.
fn tree<'a>(
    lines: &mut Peekable<impl Iterator<Item = (usize, usize, &'a str)>>,
    indent: usize,
) -> Vec<Line<'a>> {
    let mut found = Vec::new();
    while let Some((number, own, text)) = lines.next_if(|(_, own, _)| *own >= indent) {
        let below = tree(lines, own + 1);
        found.push(Line {
            number,
            text,
            below,
        });
    }
    found
}

impl Line<'_> {
    fn wrong(&self, what: impl Into<String>) -> Wrong {
        let (line, what) = (self.number, format!("{}: {}", what.into(), self.text));
        Wrong { line, what }
    }
}

fn case(name: &str, line: &Line<'_>, guides: &Guides<'_>) -> Result<Case, Wrong> {
    let mut task = json!({});
    let mut steps = Vec::new();
    let mut actions: Vec<Action> = Vec::new();
    for line in &line.below {
        let (verb, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
        if verb == "->" {
            if actions.last().is_none_or(|last| last.verb == "other") {
                actions.push(action("validate", "", line, guides)?);
            }
            let asked = actions.last_mut().filter(|asked| asked.is_answered());
            let asked = asked.ok_or_else(|| line.wrong("nothing answers a `stranger`"))?;
            asked.expected.push(rest.to_owned());
        } else if VERBS.contains(&verb) || WRITES.contains(&verb) {
            actions.push(action(verb, rest, line, guides)?);
        } else if verb == "task" {
            task = content(parts(rest).map_err(|what| line.wrong(what))?.fields);
        } else {
            change(&mut steps, line, guides)?;
        }
    }
    let guide = json!({"task": named(task, "Guide"), "steps": steps});
    Ok(Case {
        line: line.number,
        name: name.to_owned(),
        guide,
        actions,
    })
}

fn action(verb: &str, rest: &str, line: &Line<'_>, guides: &Guides<'_>) -> Result<Action, Wrong> {
    let Parts {
        mut words,
        mut fields,
        answers,
    } = parts(rest).map_err(|what| line.wrong(what))?;
    let (mut task, mut steps) = (json!({}), Vec::new());
    match verb {
        "create" if words[0] != "task" => steps.push(step(rest, line, guides)?),
        "edit" if answers.is_some() => {
            let mut step = step(&format!("@{rest}"), line, guides)?;
            words = vec![step["@"].as_str().unwrap_or_default().to_owned()];
            fields.insert("feedback_config".to_owned(), step["feedback_config"].take());
        }
        _ => {
            for line in &line.below {
                match line.text.strip_prefix("task ") {
                    Some(rest) if verb == "import" => {
                        task = content(parts(rest).map_err(|what| line.wrong(what))?.fields);
                    }
                    _ => change(&mut steps, line, guides)?,
                }
            }
        }
    }
    Ok(Action {
        line: line.number,
        verb: verb.to_owned(),
        words,
        fields,
        task,
        steps,
        expected: Vec::new(),
    })
}

/// A task with this name in the product of the samples.
pub fn named(mut task: Value, name: &str) -> Value {
    task["name"] = json!(name);
    if task.get("product_id").is_none() {
        task["product_id"] = json!(PRODUCT);
    }
    task
}

fn steps(lines: &[Line<'_>], guides: &Guides<'_>) -> Result<Vec<Value>, Wrong> {
    let mut steps = Vec::new();
    for line in lines {
        change(&mut steps, line, guides)?;
    }
    Ok(steps)
}

/// Appends a step or the steps of a guide, or changes a step: `+2 STEP` inserts a step before step
/// 2, `=2 STEP` replaces step 2, and `-2` removes it.
fn change(steps: &mut Vec<Value>, line: &Line<'_>, guides: &Guides<'_>) -> Result<(), Wrong> {
    let (change, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
    let step = |text| step(text, line, guides);
    let index = change.get(1..).and_then(|index| index.parse().ok());
    match (change.chars().next(), index) {
        (Some('+'), Some(index)) if index <= steps.len() => steps.insert(index, step(rest)?),
        (Some('='), Some(index)) if index < steps.len() => steps[index] = step(rest)?,
        (Some('-'), Some(index)) if index < steps.len() => drop(steps.remove(index)),
        _ => match guides.get(line.text) {
            Some(guide) => steps.extend(guide.clone()),
            None => steps.push(step(line.text)?),
        },
    }
    Ok(())
}

fn step(text: &str, line: &Line<'_>, guides: &Guides<'_>) -> Result<Value, Wrong> {
    let Parts {
        words,
        fields,
        answers,
    } = parts(text).map_err(|what| line.wrong(what))?;
    if let Some(name) = text.strip_prefix('@') {
        return known_step(name, line, guides);
    }
    let title = words.get(1..).unwrap_or_default().join(" ");
    let kind = match words.first().map(String::as_str) {
        Some("info") => "INFORMATION",
        Some("ask" | "link") => "OBSERVATION",
        Some("solution") => "SOLUTION",
        Some("idp") => "IDP",
        Some("end") => "END",
        Some("sub") => "SUBTASK",
        _ => return Err(line.wrong("expected a step or an action")),
    };
    if !line.below.is_empty() && words[0] != "link" {
        return Err(line.wrong("only a link has lines below it"));
    }
    let mut step = content(fields);
    let mut set = |name: &str, value: Value| {
        if step.get(name).is_none() {
            step[name] = value;
        }
    };
    set("product_id", json!(PRODUCT));
    set("type", json!(format!("STEP_TYPE_{kind}")));
    match kind {
        "SUBTASK" => {
            set("subtask_id", json!(format!("@{title}")));
            set("subtask_pid", json!(PRODUCT));
            return Ok(step);
        }
        "OBSERVATION" => {}
        _ => set("body", json!("text")),
    }
    set("title", json!(title));
    if let Some(answers) = answers {
        let mut question = question(&title, &answers);
        if words[0] == "link" {
            question["linked"] = json!(true);
            manage(&mut question, line, guides)?;
        }
        set("feedback_config", json!([question]));
    }
    Ok(step)
}

/// `NAME FIELDS` of a step that there is, or `NAME ask QUESTION: ANSWERS` with another question.
fn known_step(text: &str, line: &Line<'_>, guides: &Guides<'_>) -> Result<Value, Wrong> {
    let Parts {
        mut words,
        fields,
        answers,
    } = parts(text).map_err(|what| line.wrong(what))?;
    let asks = words
        .iter()
        .position(|word| word == "ask" || word == "link");
    let asked = words.split_off(asks.unwrap_or(words.len()));
    let mut step = content(fields);
    step["@"] = json!(words.join(" "));
    if let Some(answers) = answers {
        let mut question = question(&asked[1..].join(" "), &answers);
        if asked[0] == "link" {
            question["linked"] = json!(true);
            manage(&mut question, line, guides)?;
        }
        step["feedback_config"] = json!([question]);
    }
    Ok(step)
}

/// Adds the tasks of answers: `KEY FIELDS` lines below the question, with their steps below them.
fn manage(question: &mut Value, line: &Line<'_>, guides: &Guides<'_>) -> Result<(), Wrong> {
    for line in &line.below {
        let Parts { words, fields, .. } = parts(line.text).map_err(|what| line.wrong(what))?;
        let values = question["values"].as_array_mut().into_iter().flatten();
        let value = values
            .into_iter()
            .find(|value| value["key"] == quoted(&words.join(" ")));
        let value = value.ok_or_else(|| line.wrong("expected a key of the question"))?;
        value["task_json"] = json!({"task": content(fields), "steps": steps(&line.below, guides)?});
    }
    Ok(())
}

/// `WORDS NAME=VALUE… : ANSWERS ? CONDITION` in its parts.
struct Parts {
    words: Vec<String>,
    /// With the condition as `dependencies`.
    fields: Map<String, Value>,
    answers: Option<String>,
}

fn parts(text: &str) -> Result<Parts, String> {
    let text = format!(" {text} ");
    let (head, condition) = cut(&text, " ? ").unwrap_or((&text, ""));
    let (head, answers) =
        cut(head, ": ").map_or((head, None), |(head, answers)| (head, Some(answers)));
    let (mut words, mut fields) = (Vec::new(), Map::new());
    for token in split(head, " ")
        .into_iter()
        .filter(|token| !token.is_empty())
    {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        match token.split_once('=') {
            Some((name, value)) if name.chars().all(is_name) => {
                fields.insert(name.to_owned(), literal(value));
            }
            _ => words.push(token.to_owned()),
        }
    }
    if !condition.is_empty() {
        fields.insert("dependencies".to_owned(), group(condition.trim())?);
    }
    Ok(Parts {
        words,
        fields,
        answers: answers.map(|answers| answers.trim().to_owned()),
    })
}

/// Fields as a resource: `de.title` is the title of the German translation, and `de.answers` are
/// the answers of its question.
pub fn content(fields: Map<String, Value>) -> Value {
    let mut content = json!({});
    for (name, value) in fields {
        match (name.rsplit_once('.'), &value) {
            (Some((tag, "answers")), Value::String(answers)) => {
                content["translations"][tag]["feedback_config"] = json!([question("it", answers)]);
            }
            (Some((tag, field)), _) => content["translations"][tag][field] = value,
            (None, Value::String(answers)) if name == "answers" => {
                content["feedback_config"] = json!([question("it", answers)]);
            }
            (None, _) => content[name] = value,
        }
    }
    content
}

/// A question with answers such as `on, off=It is off`.
pub fn question(name: &str, answers: &str) -> Value {
    let values = split(answers, ",").into_iter().map(|answer| {
        let plain = |text: &str| quoted(text.trim());
        let (key, text) = cut(answer, "=").unwrap_or((answer, answer));
        json!({"key": plain(key), "value": plain(text)})
    });
    json!({"name": name, "type": "enum", "values": values.collect::<Vec<_>>()})
}
