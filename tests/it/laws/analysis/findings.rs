//! What holds for the findings of every guide.

use std::collections::BTreeSet;

use proptest::strategy::Strategy;
use prost_types::value::Kind;

use super::{
    previews::{CompletePreview, check_complete_preview, complete_previews},
    walkthroughs::Walkthroughs,
};
use crate::{
    laws::random_guides::{Guide, GuideTask, Kind as StepKind, guides, guides_with_strays},
    prelude::*,
};

/// How often an observation is of another product than its name.
const STRAY: f64 = 0.1;

/// Guides with what trying every walkthrough finds.
fn guides_with_few_walkthroughs() -> impl Strategy<Value = (Guide, Walkthroughs)> {
    guides().prop_filter_map("many walkthroughs", |guide| {
        let found = guide.walkthroughs()?;
        Some((guide, found))
    })
}

#[apply(property_on_one_database)]
#[cases(30, (guides_with_few_walkthroughs(), complete_previews()))]
async fn both_evaluators_agree_with_trying_everything(
    client: Client,
    ((guide, walkthroughs), preview): ((Guide, Walkthroughs), CompletePreview),
) {
    let tasks = guide.stored(&client).await;
    let response = client.validated(validation_of(&tasks[0].guid)).await;
    assert_eq!(response.counts.unwrap().undecided, 0);
    check_walkthroughs(&guide, &tasks, &walkthroughs, &response.findings);
    check_complete_preview(&client, &tasks[0].guid, preview).await;
}

/// The findings about walkthroughs match an enumeration of all walkthroughs.
fn check_walkthroughs(
    guide: &Guide,
    tasks: &[Task],
    walkthroughs: &Walkthroughs,
    found: &[Finding],
) {
    let (root, ids) = (&guide.tasks[0], &tasks[0].steps);
    // The steps of findings; `None` is the task itself.
    let steps = |rule: &str| -> BTreeSet<Option<usize>> {
        let found = found.iter().filter(|finding| finding.rule == rule);
        found
            .map(|finding| ids.iter().position(|step| *step == finding.step))
            .collect()
    };
    let (mut unreachable, mut always) = (BTreeSet::new(), BTreeSet::new());
    always.extend((root.dependencies.is_some() && !walkthroughs.root_fails).then_some(None));
    for (index, step) in root.steps.iter().enumerate() {
        let stop = (0, index);
        if walkthroughs.begins && step.published {
            let holds = walkthroughs.comes.contains(&stop) && !walkthroughs.fails.contains(&stop);
            unreachable.extend((!walkthroughs.sees.contains(&stop)).then_some(Some(index)));
            always.extend((holds && step.dependencies.is_some()).then_some(Some(index)));
        }
    }
    let endings = found.iter().filter(|one| one.rule == "path/no-outcome");
    let levels: BTreeSet<i32> = endings.flat_map(|one| one.levels.clone()).collect();
    assert_eq!(steps("step/unreachable"), unreachable);
    assert_eq!(steps("condition/always-holds"), always);
    assert_eq!(steps("task/never-visible").is_empty(), walkthroughs.begins);
    assert_eq!(levels, walkthroughs.levels_without_outcome);
}

#[apply(property_on_one_database)]
#[cases(8, guides_with_strays(STRAY))]
async fn examples_and_contradictions_are_true(client: Client, guide: Guide) {
    let tasks = guide.stored(&client).await;
    let response = client.validated(validation_of(&tasks[0].guid)).await;
    assert_eq!(response.counts.unwrap().undecided, 0);
    let ids: BTreeSet<&str> = response.findings.iter().map(|one| &*one.id).collect();
    assert_eq!(ids.len(), response.findings.len());
    let again = client.validated(validation_of(&tasks[0].guid)).await;
    assert_eq!(again.findings, response.findings);
    if let Some(walkthroughs) = guide.walkthroughs() {
        check_walkthroughs(&guide, &tasks, &walkthroughs, &response.findings);
    }
    check_endings(&guide, &response.findings);
    check_conflicts(&guide, &tasks, &response.findings);
}

/// The answers of an example lead to no outcome.
fn check_endings(guide: &Guide, found: &[Finding]) {
    for ending in found.iter().filter(|one| one.rule == "path/no-outcome") {
        let answers = ending.example.iter().map(|answer| {
            let key = answer.value.as_ref().and_then(|value| value.kind.as_ref());
            let Some(Kind::StringValue(key)) = key else {
                panic!("no key: {answer:?}");
            };
            (answer.name.clone(), key.clone())
        });
        let answers: Vec<(String, String)> = answers.collect();
        for level in &ending.levels {
            let outcome = guide.outcome_of(*level, &answers);
            assert_eq!(outcome, Some(false), "{ending:#?}");
        }
    }
}

/// Each set of conditions contradicts, and none of its proper subsets does.
fn check_conflicts(guide: &Guide, tasks: &[Task], found: &[Finding]) {
    for finding in found.iter().filter(|one| one.rule == "step/unreachable") {
        let conditions: Vec<_> = finding
            .related
            .iter()
            .map(|place| {
                let task = tasks.iter().position(|task| task.guid == place.task);
                let task = task.expect("a task of the guide");
                let step = tasks[task]
                    .steps
                    .iter()
                    .position(|step| *step == place.step);
                guide.condition(task, step, &place.path)
            })
            .collect();
        if conditions.is_empty() {
            continue;
        }
        assert!(!guide.can_hold_together(&conditions), "{finding:#?}");
        for left_out in 0..conditions.len() {
            let mut others = conditions.clone();
            others.remove(left_out);
            assert!(guide.can_hold_together(&others), "{finding:#?}");
        }
    }
}

/// The guide's own steps as a document, without subtasks.
fn as_document(guide: &Guide) -> TaskDocument {
    let model = &guide.tasks[0];
    let steps = model
        .steps
        .iter()
        .filter(|step| !matches!(step.kind, StepKind::Subtask(_)));
    let steps: Vec<Step> = steps.map(|step| step.message(&[])).collect();
    // The tasks of two answers, with their own conditions.
    let inner = |task: &GuideTask| {
        let steps = task
            .steps
            .iter()
            .filter(|step| !matches!(step.kind, StepKind::Subtask(_)));
        let task = Task::default().with(|it| it.dependencies = task.dependencies.clone());
        document_with(task, steps.map(|step| step.message(&[])).collect())
    };
    let values = guide.tasks.iter().skip(1).enumerate();
    let values = values.map(|(index, task)| {
        let key = index.to_string();
        answer_with(&key, &format!("Answer {key}"), inner(task))
    });
    let linked = observation_asking(linked_question(values.collect()));
    let task = task("Guide")
        .with_roles(model.roles.clone())
        .with(|it| it.dependencies = model.dependencies.clone());
    document_with(task, [steps, vec![linked]].concat())
}

/// Findings without ids and paths.
fn comparable(findings: &[Finding]) -> Vec<Finding> {
    let mut findings = findings.to_vec();
    for finding in &mut findings {
        let places = finding.related.iter_mut();
        places.for_each(|place| (place.task, place.step, place.path) = Default::default());
        finding.related.sort_by(|a, b| a.title.cmp(&b.title));
        let Finding {
            id,
            task,
            step,
            path,
            ..
        } = finding;
        for text in [id, task, step, path] {
            text.clear();
        }
    }
    findings.sort_by_key(|finding| format!("{finding:?}"));
    findings
}

#[apply(property_on_both_databases)]
#[cases(8, guides_with_strays(STRAY))]
async fn a_document_has_the_findings_of_its_import(client: Client, guide: Guide) {
    let document = as_document(&guide);
    let request = validation_of_document(document.clone());
    let before = client.validated(request).await;
    let made = client.imported(document).await;
    let after = client.validated(validation_of(&made.guid)).await;
    assert_eq!(before.counts, after.counts);
    assert_eq!(comparable(&before.findings), comparable(&after.findings));
    let rules = client.call(ListRulesRequest {}).await.accepted().rules;
    for finding in &before.findings {
        // The severity of this one depends on its levels.
        if finding.rule != "subtask/levels" {
            let rule = rules.iter().find(|rule| rule.id == finding.rule);
            assert_eq!(rule.map(|rule| rule.severity), Some(finding.severity));
        }
    }
    let ids: BTreeSet<&str> = before.findings.iter().map(|one| &*one.id).collect();
    assert_eq!(ids.len(), before.findings.len());
    let paths = before.findings.iter().map(|one| one.path.as_str());
    assert_eq!(
        paths.filter(|path| !path.starts_with("document.")).count(),
        0
    );
}

#[apply(property_on_one_database)]
#[cases(8, guides_with_strays(STRAY))]
async fn suppression_and_off_remove_exactly_the_matching_findings(client: Client, guide: Guide) {
    let made = client.imported(as_document(&guide)).await;
    let request = validation_of(&made.guid);
    let all = client.validated(request.clone()).await;
    let Some(first) = all.findings.first() else {
        return;
    };
    let with = |options| request.clone().with(|it| it.options = Some(options));
    let (rule, step) = (first.rule.clone(), first.step.clone());
    let path = match first.path.as_str() {
        "" => "none".to_owned(),
        path => path.to_owned(),
    };
    let by_rule = Suppression::default().with(|it| it.rule = rule.clone());
    let by_path = Suppression::default().with(|it| it.path = path.clone());
    let by_rule_and_step = by_rule
        .clone()
        .with(|it| it.task = first.task.clone())
        .with(|it| it.step = step.clone());
    let of_step = |one: &Finding| {
        one.rule == rule && one.task == first.task && (step.is_empty() || one.step == step)
    };
    for (suppressed, matches) in [
        (
            by_rule,
            &(|one: &Finding| one.rule == rule) as &dyn Fn(&Finding) -> bool,
        ),
        (by_path, &|one| one.path == path),
        (by_rule_and_step, &of_step),
    ] {
        let options = ValidationOptions::default().with(|it| it.suppress = vec![suppressed]);
        let left = client.validated(with(options)).await;
        let expected: Vec<_> = all.findings.iter().filter(|one| !matches(one)).collect();
        let removed = all.findings.len() - expected.len();
        assert_eq!(left.findings.iter().collect::<Vec<_>>(), expected);
        assert_eq!(left.counts.unwrap().suppressed as usize, removed);
    }
    let options = ValidationOptions {
        rules: vec![RuleSetting {
            rule: rule.clone(),
            severity: Severity::Off.into(),
        }],
        ..ValidationOptions::default()
    };
    let left = client.validated(with(options)).await;
    let expected: Vec<_> = all.findings.iter().filter(|one| one.rule != rule).collect();
    assert_eq!(left.findings.iter().collect::<Vec<_>>(), expected);
    assert_eq!(left.counts.unwrap().suppressed, 0);
}
