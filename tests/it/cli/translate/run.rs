//! Runs of the translation, and items of work.

use expertise::proto::v1::{TranslationSource, TranslationWork};

use crate::{
    command::{Command, command},
    kit::sample::{self, With},
};

/// The result of a run.
pub struct RunOutcome {
    /// The last line, if the run did not do all of its work.
    pub end: Result<(), String>,
    /// The line with the numbers of items.
    pub summary: String,
    /// The lines of items that failed.
    pub failures: Vec<String>,
}

impl RunOutcome {
    /// How many items have this result, such as `written` or `failed`.
    pub fn count(&self, result: &str) -> u64 {
        let counts = self.summary.split(", ");
        let mut counts = counts.filter_map(|count| count.rsplit_once(' '));
        let (_, count) = counts.find(|(name, _)| *name == result).expect(result);
        count.parse().expect("a number")
    }

    /// The reason of the first item that failed.
    pub fn reason(&self) -> &str {
        let failure = self.failures.first().expect("a failure");
        failure.split_once(": ").expect("a reason").1
    }
}

/// A run for account 42 into German, with retries that do not pause.
pub fn translate(service: &str, engine: &str) -> Command {
    command(&["translate", "--log=off"])
        .env("EXPERTISE_SERVER", service)
        .env("EXPERTISE_ENGINE_URL", engine)
        .env("EXPERTISE_ACCOUNT", "42")
        .env("EXPERTISE_LANGUAGES", "de")
        .env("EXPERTISE_RETRIES", "2")
        .env("EXPERTISE_BACKOFF", "0s")
}

pub async fn run(run: Command) -> RunOutcome {
    let output = run.run_in_background().await;
    let lines = output.stderr.lines();
    let is_progress = |line: &&str| line.starts_with("so far: ") || line.contains(" is repeated, ");
    let lines = lines.filter(|line| !is_progress(line));
    let (failures, errors): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("failed "));
    let end = match errors.as_slice() {
        [] => Ok(()),
        [line] => Err((*line).to_owned()),
        lines => panic!("an error is one line: {lines:?}"),
    };
    let is_complete = end.is_ok() && failures.is_empty();
    assert_eq!(output.code == Some(0), is_complete, "{output:?}");
    RunOutcome {
        end,
        summary: output.stdout.trim_end().to_owned(),
        failures: failures.into_iter().map(str::to_owned).collect(),
    }
}

/// A step with a title and a body to translate into German.
pub fn step(guid: &str, title: &str) -> TranslationWork {
    item(
        guid,
        TranslationSource {
            title: Some(title.to_owned()),
            body: Some(format!(
                "<p class=\"a > b\">Press&nbsp;<b>{title}</b> &amp; wait.<!-- no --></p>"
            )),
            ..TranslationSource::default()
        },
    )
}

/// A step that asks something.
pub fn question(guid: &str, answer: &str) -> TranslationWork {
    let value = sample::answer("yes", answer);
    let config = sample::question("is it on", &[]).with(|it| it.values = vec![value]);
    item(
        guid,
        TranslationSource::default()
            .with(|it| it.title = Some("a question".to_owned()))
            .with(|it| it.feedback_config = vec![config]),
    )
}

fn item(guid: &str, source: TranslationSource) -> TranslationWork {
    TranslationWork {
        guid: guid.to_owned(),
        language: "de".to_owned(),
        source: Some(source),
        source_digest: format!("digest of {guid}"),
        ..TranslationWork::default()
    }
}
