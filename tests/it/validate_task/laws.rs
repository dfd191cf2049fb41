//! What is said of walkthroughs is what going through all of them shows.

use std::collections::BTreeSet;

use super::{model::Shown, *};
use crate::random_guides::{Guide, GuideTask, Kind, guides_with_strays};

/// How often an observation is of another product than its name.
const STRAY: f64 = 0.1;

fn steps_of_rule(findings: &[Finding], rule: &str) -> BTreeSet<String> {
    let findings = findings.iter().filter(|one| one.rule == rule);
    findings.map(|one| one.step.clone()).collect()
}

#[apply(property_on_both_databases)]
#[cases(24, guides_with_strays(STRAY))]
async fn findings_are_what_all_walkthroughs_show(client: Client, guide: Guide) {
    let shown = guide.go_through();
    if shown.gave_up {
        return;
    }
    let tasks = guide.stored(&client).await;
    let response = client.validated(validation_of(&tasks[0].guid)).await;
    assert_eq!(response.counts.unwrap().undecided, 0);
    let ids: BTreeSet<&str> = response.findings.iter().map(|one| &*one.id).collect();
    assert_eq!(ids.len(), response.findings.len());
    let again = client.validated(validation_of(&tasks[0].guid)).await;
    assert_eq!(again.findings, response.findings);
    let found = response.findings;

    let published = guide.tasks[0].steps.iter().enumerate();
    let published: Vec<usize> = published
        .filter(|(_, step)| step.published)
        .map(|(index, _)| index)
        .collect();
    let chosen = |holds: &dyn Fn(usize) -> bool| -> BTreeSet<String> {
        let steps = published.iter().copied().filter(|step| holds(*step));
        steps.map(|step| tasks[0].steps[step].clone()).collect()
    };
    let unreachable = chosen(&|step| shown.begins && !shown.sees.contains(&(0, step)));
    assert_eq!(steps_of_rule(&found, "step/unreachable"), unreachable);
    let mut always = chosen(&|step| {
        let dependencies = &guide.tasks[0].steps[step].dependencies;
        let fails = shown.fails.contains(&(0, step));
        dependencies.is_some() && shown.comes.contains(&(0, step)) && !fails
    });
    let fails = shown.root_fails || shown.task_fails.contains(&0);
    if guide.tasks[0].dependencies.is_some() && !fails {
        always.insert(String::new());
    }
    assert_eq!(steps_of_rule(&found, "condition/always-holds"), always);
    let never = !steps_of_rule(&found, "task/never-visible").is_empty();
    assert_eq!(never, !shown.begins);
    check_endings(&guide, &shown, &found);
    check_together(&tasks[0], &shown, &found);
    check_conflicts(&guide, &tasks, &found);
}

fn check_endings(guide: &Guide, shown: &Shown, found: &[Finding]) {
    let endings = found.iter().filter(|one| one.rule == "path/no-outcome");
    let mut levels = BTreeSet::new();
    for ending in endings {
        let answers: Vec<(String, String)> = ending
            .example
            .iter()
            .map(|answer| {
                let key = json(answer.value.as_ref().expect("a value"));
                (answer.name.clone(), key.as_str().expect("a key").to_owned())
            })
            .collect();
        for level in &ending.levels {
            assert_eq!(
                guide.outcome_of(*level, &answers),
                Some(false),
                "{ending:#?}"
            );
        }
        levels.extend(ending.levels.clone());
    }
    assert_eq!(levels, shown.without_outcome);
}

fn check_together(task: &Task, shown: &Shown, found: &[Finding]) {
    let place = |guid: &String| {
        let index = task.steps.iter().position(|step| step == guid);
        (0, index.expect("a step of the task"))
    };
    for finding in found
        .iter()
        .filter(|one| one.rule == "observation/duplicate-name")
    {
        let here = place(&finding.step);
        let together = finding.related.iter().any(|other| {
            let there = place(&other.step);
            shown.together.contains(&(there, here)) || shown.together.contains(&(here, there))
        });
        assert_eq!(fact(finding, "together"), together);
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
        .filter(|step| !matches!(step.kind, Kind::Subtask(_)));
    let steps: Vec<Step> = steps.map(|step| step.message(&[])).collect();
    // The tasks of two answers, with conditions of their own.
    let inner = |task: &GuideTask| {
        let steps = task
            .steps
            .iter()
            .filter(|step| !matches!(step.kind, Kind::Subtask(_)));
        let task = Task {
            dependencies: task.dependencies.clone(),
            ..Task::default()
        };
        document_with(task, steps.map(|step| step.message(&[])).collect())
    };
    let values = guide.tasks.iter().skip(1).enumerate();
    let values = values.map(|(index, task)| {
        let key = index.to_string();
        answer_with(&key, &format!("Answer {key}"), inner(task))
    });
    let linked = observation_asking(linked_question(values.collect()));
    let task = Task {
        dependencies: model.dependencies.clone(),
        ..task("Guide").with_roles(model.roles.clone())
    };
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
#[cases(12, guides_with_strays(STRAY))]
async fn a_document_has_the_findings_of_its_import(client: Client, guide: Guide) {
    let document = as_document(&guide);
    let request = validation_of_document(document.clone());
    let before = client.validated(request).await;
    let made = client.imported(document).await;
    let after = client.validated(validation_of(&made.guid)).await;
    assert_eq!(before.counts, after.counts);
    assert_eq!(comparable(&before.findings), comparable(&after.findings));
    let rules = client.rules().await.accepted().rules;
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

#[apply(property_on_both_databases)]
#[cases(12, guides_with_strays(STRAY))]
async fn suppression_and_off_remove_exactly_the_matching_findings(client: Client, guide: Guide) {
    let made = client.imported(as_document(&guide)).await;
    let request = validation_of(&made.guid);
    let all = client.validated(request.clone()).await;
    let Some(first) = all.findings.first() else {
        return;
    };
    let suppression = |change: &dyn Fn(&mut Suppression)| {
        let mut one = Suppression::default();
        change(&mut one);
        one
    };
    let (rule, step, path) = (first.rule.clone(), first.step.clone(), first.path.clone());
    let by_rule = suppression(&|one| one.rule.clone_from(&rule));
    let by_path = suppression(&|one| {
        one.path = if path.is_empty() {
            "none".to_owned()
        } else {
            path.clone()
        };
    });
    let by_rule_and_step = suppression(&|one| {
        one.rule.clone_from(&rule);
        one.task.clone_from(&first.task);
        one.step.clone_from(&step);
    });
    for (suppressed, matches) in [
        (
            by_rule,
            &(|one: &Finding| one.rule == rule) as &dyn Fn(&Finding) -> bool,
        ),
        (by_path, &|one| one.path == path && !path.is_empty()),
        (by_rule_and_step, &|one| {
            one.rule == rule && one.task == first.task && (step.is_empty() || one.step == step)
        }),
    ] {
        let options = ValidationOptions {
            suppress: vec![suppressed],
            ..ValidationOptions::default()
        };
        let left = client
            .validated(with_options(request.clone(), options))
            .await;
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
    let left = client.validated(with_options(request, options)).await;
    let expected: Vec<_> = all.findings.iter().filter(|one| one.rule != rule).collect();
    assert_eq!(left.findings.iter().collect::<Vec<_>>(), expected);
    assert_eq!(left.counts.unwrap().suppressed, 0);
}
