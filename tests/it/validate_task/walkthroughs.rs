//! Rules that speak of walkthroughs, by small guides.

use super::*;

#[apply(on_both_databases)]
async fn conditions_of_the_step_that_enters_a_managed_task_are_part_of_a_contradiction(
    client: Client,
) {
    let needs = |key| vec![reads("light", "=", &[key])];
    let inside = vec![
        needing(shown(StepType::Information, "Inside"), needs("off")),
        shown(StepType::Solution, "Solved"),
    ];
    let linked = linked_question(vec![answer_with("a", "A", document("", inside))]);
    let steps = vec![
        asks("light", &["on", "off"]),
        observation_asking(linked),
        shown(StepType::End, "Done"),
    ];
    let made = client.imported(document("Guide", steps)).await;
    let steps = client.steps_with_bodies(&made.guid).await;
    let entering = &steps[2];
    let inside = &client.steps_with_bodies(&entering.subtask_id).await[0];
    let update = step_of(&entering.guid).depending_on(all_of(needs("on")));
    client.updated_step(update, &["dependencies"]).await;
    let found = client.validated(validation_of(&made.guid)).await.findings;
    let finding = found.iter().find(|one| one.rule == "step/unreachable");
    let finding = finding.expect("a finding");
    assert_eq!(finding.step, inside.guid);
    let related: Vec<_> = finding
        .related
        .iter()
        .map(|place| place.step.as_str())
        .collect();
    assert_eq!(related, [inside.guid.as_str(), entering.guid.as_str()]);
}

/// The last answer that the step needs is only asked for after another answer than the step needs.
#[apply(on_both_databases)]
async fn conditions_of_the_observations_on_the_way_are_part_of_a_contradiction(client: Client) {
    let needs = |name, key| vec![reads(name, "=", &[key])];
    let never = [needs("shade", "dark"), needs("light", "off")].concat();
    let steps = |again: Vec<Step>| {
        let first = vec![
            asks("light", &["on", "off"]),
            needing(asks("color", &["red", "green"]), needs("light", "on")),
            needing(asks("shade", &["dark", "pale"]), needs("color", "red")),
        ];
        let last = vec![
            needing(shown(StepType::Solution, "Never"), never.clone()),
            shown(StepType::End, "Done"),
        ];
        [first, again, last].concat()
    };
    let found = findings(&client, steps(Vec::new())).await;
    let unreachable = of_rule(&found, "step/unreachable");
    let [finding] = unreachable.as_slice() else {
        panic!("not one: {found:#?}");
    };
    assert_eq!(finding.path, "document.steps[3]");
    let related: Vec<_> = finding.related.iter().map(|place| &*place.path).collect();
    assert_eq!(
        related,
        [
            "document.steps[3].dependencies.nodes[1].condition",
            "document.steps[1].dependencies.nodes[0].condition"
        ]
    );
    // What is asked again may have another answer.
    let again = findings(&client, steps(vec![asks("light", &["on", "off"])])).await;
    assert_eq!(of_rule(&again, "step/unreachable"), Vec::<&Finding>::new());
}

/// Within the task, `components.7.light` is also the name of an observation.
#[apply(on_one_database)]
async fn what_sets_the_account_wide_name_sets_an_own_name_that_equals_it(client: Client) {
    let mut steps = clean();
    steps.insert(3, asks("components.7.light", &["on", "off"]));
    let found = findings(&client, steps).await;
    assert_eq!(places(&found), []);
}

fn with_draft_question() -> Vec<Step> {
    let mut steps = clean();
    steps[0].published = Some(0);
    steps
}

#[apply(on_one_database)]
async fn what_only_an_unpublished_observation_sets_may_have_any_of_its_answers(client: Client) {
    assert_eq!(findings(&client, with_draft_question()).await, []);
}

#[apply(on_one_database)]
async fn included_drafts_are_gone_through(client: Client) {
    let options = ValidationOptions {
        include_unpublished: true,
        ..ValidationOptions::default()
    };
    let request = validation_of_document(document("Guide", with_draft_question()));
    let found = client.validated(with_options(request, options)).await;
    assert_eq!(found.findings, []);
}

#[apply(on_one_database)]
async fn a_guide_that_is_a_draft_is_gone_through_as_if_it_were_published(client: Client) {
    let guide = document_with(task("Guide").with_published(0), clean());
    let found = client.validated(validation_of_document(guide)).await;
    assert_eq!(places(&found.findings), []);
}

#[apply(on_one_database)]
async fn dependencies_of_a_managed_task_are_read_where_its_step_is(client: Client) {
    let needs_light = all_of(vec![reads("light", "=", &["on"])]);
    let inner = |dependencies| {
        document_with(
            Task {
                dependencies,
                ..task("Managed")
            },
            vec![shown(StepType::Solution, "Inside")],
        )
    };
    let linked = observation_asking(linked_question(vec![
        answer_with("a", "A", inner(Some(needs_light))),
        answer_with("b", "B", inner(None)),
    ]));
    let mut rest = clean();
    let first = rest.remove(0);
    for (steps, expected) in [
        (
            [vec![first.clone(), linked.clone()], rest.clone()].concat(),
            0,
        ),
        ([vec![linked, first], rest].concat(), 1),
    ] {
        let found = findings(&client, steps).await;
        let later = found
            .iter()
            .filter(|one| one.rule == "condition/answered-later");
        assert_eq!(later.count(), expected, "{found:#?}");
    }
}

/// The step can be seen: the value "5e00" equals the number 5, but is not the text "5".
#[apply(on_one_database)]
async fn a_number_may_be_spelled_in_another_way(client: Client) {
    for (five, spelled) in [(5_f64, "5"), (50.0, "50"), (0.05, "0.05")] {
        let nodes = vec![
            reads_values("v", ">", vec![number(five.next_down())]),
            reads_values("v", "<", vec![number(five.next_up())]),
            reads("v", "!=", &[spelled]),
        ];
        let mut steps = clean();
        steps.insert(3, needing(shown(StepType::Information, "Five"), nodes));
        let options = ValidationOptions {
            known_variables: vec![format!("components.{PRODUCT}.v")],
            ..ValidationOptions::default()
        };
        let request = validation_of_document(document("Guide", steps));
        let found = client.validated(with_options(request, options)).await;
        assert_eq!(places(&found.findings), [], "{spelled}");
    }
}

#[apply(on_one_database)]
async fn dependencies_of_a_managed_task_that_always_hold_are_reported(client: Client) {
    let inner = |key: &str| {
        let mut keys = vec!["on"];
        keys.push(key);
        document_with(
            task("Managed").with_dependencies(all_of(vec![reads("light", "=", &keys)])),
            vec![shown(StepType::Solution, "Inside")],
        )
    };
    let linked = linked_question(vec![
        answer_with("a", "A", inner("on")),
        answer_with("b", "B", inner("off")),
    ]);
    let mut steps = clean();
    steps.insert(1, observation_asking(linked));
    let path = "document.steps[1].feedback_config[0].values[1].task_json.task.dependencies";
    let found = findings(&client, steps).await;
    let always = of_rule(&found, "condition/always-holds");
    let paths: Vec<_> = always.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, [path]);
}

#[apply(on_one_database)]
async fn dependencies_of_a_task_that_cannot_hold_hide_it(client: Client) {
    let never = all_of(vec![
        reads("light", "=", &["on"]),
        reads("light", "=", &["off"]),
    ]);
    let guide = document_with(task("Guide").with_dependencies(never), clean());
    let found = client
        .validated(validation_of_document(guide))
        .await
        .findings;
    let later = "document.task.dependencies.nodes[0].condition";
    let later_too = "document.task.dependencies.nodes[1].condition";
    assert_eq!(
        places(&found),
        [
            ("condition/answered-later", later),
            ("condition/answered-later", later_too),
            ("task/never-visible", "document.task.dependencies"),
        ]
    );
}

#[apply(on_one_database)]
async fn the_hint_names_the_first_end_that_every_walkthrough_comes_to(client: Client) {
    let end = |title| shown(StepType::End, title);
    let never = ["on", "off"]
        .map(|key| reads("light", "=", &[key]))
        .to_vec();
    let mut steps = clean();
    steps.splice(
        1..1,
        [
            needing(end("Perhaps"), vec![reads("light", "=", &["on"])]),
            end("Draft").with_published(0),
            needing(shown(StepType::Information, "Never"), never),
            end("First"),
            end("Second"),
        ],
    );
    let found = findings(&client, steps).await;
    let unreachable = of_rule(&found, "step/unreachable").into_iter();
    let mut hints = unreachable.map(|one| one.hint.as_str());
    let of_never = hints.next().expect("a finding");
    assert!(!of_never.contains("the END"), "{of_never}");
    // The second end, two solutions and the last end.
    let later: Vec<_> = hints.collect();
    assert_eq!(later.len(), 4);
    assert!(
        later.iter().all(|hint| hint.contains("\"First\"")),
        "{later:?}"
    );
}

#[apply(on_both_databases)]
async fn levels_with_the_same_answers_share_a_walkthrough_without_an_outcome(client: Client) {
    let inner = document_with(
        task("Inner").with_roles(vec![1]),
        vec![shown(StepType::Information, "For technicians")],
    );
    let inner = client.imported(inner).await;
    for roles in [vec![0, 1], vec![0, 1, 2]] {
        let outer = document_with(
            task("Outer").with_roles(roles.clone()),
            vec![subtask(&Task::default(), &inner)],
        );
        let found = client.validated(validation_of_document(outer)).await;
        let without = found.findings.iter();
        let without = without.filter(|one| one.rule == "path/no-outcome");
        let levels: Vec<_> = without.map(|one| one.levels.clone()).collect();
        assert_eq!(levels, [roles]);
    }
}

/// Going through every combination of answers would take 3^20 walkthroughs.
#[apply(on_one_database)]
async fn twenty_observations_that_only_the_last_step_reads_are_decided(client: Client) {
    let names: Vec<String> = (0..20).map(|index| format!("v{index}")).collect();
    let mut steps: Vec<Step> = names
        .iter()
        .map(|name| asks(name, &["a", "b", "c"]))
        .collect();
    let all = |key: &str| names.iter().map(|name| reads(name, "=", &[key])).collect();
    steps.push(needing(shown(StepType::Solution, "All a"), all("a")));
    let any_b: Vec<_> = names.iter().map(|name| reads(name, "=", &["b"])).collect();
    let any_c: Vec<_> = names.iter().map(|name| reads(name, "=", &["c"])).collect();
    for nodes in [any_b, any_c] {
        let mut solution = shown(StepType::Solution, "Some");
        solution.dependencies = Some(any_of(nodes));
        steps.push(solution);
    }
    let request = validation_of_document(document("Guide", steps));
    let response = client.validated(request).await;
    assert_eq!(response.findings, []);
    assert_eq!(response.counts.unwrap().undecided, 0);
}

/// Whether a step can be seen is as hard as any question about boolean formulas.
#[apply(on_one_database)]
async fn a_thousand_conditions_over_a_hundred_variables_end_within_the_budget(client: Client) {
    let name = |index: usize| format!("v{index}");
    let mut steps: Vec<Step> = (0..100)
        .map(|index| asks(&name(index), &["a", "b"]))
        .collect();
    let mut state = 7_usize;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let clauses = (0..333).map(|_| {
        let literals = (0..3).map(|_| {
            let key = if next(2) == 0 { "a" } else { "b" };
            reads(&name(next(100)), "=", &[key])
        });
        nested(any_of(literals.collect()))
    });
    let nodes: Vec<_> = clauses.collect();
    steps.push(needing(shown(StepType::Solution, "Hard"), nodes));
    steps.push(shown(StepType::End, "Done"));
    let request = validation_of_document(document("Guide", steps));
    let first = client.validated(request.clone()).await;
    let second = client.validated(request).await;
    assert_eq!(first, second);
    let counts = first.counts.unwrap();
    assert!(counts.undecided <= 2, "{counts:?}");
}

/// 400 conditions of 1,000 values each, which are not looked into.
#[apply(on_one_database)]
async fn every_question_about_a_guide_with_too_many_values_is_undecided(client: Client) {
    const DUPLICATES: i32 = 3;
    let mut steps = clean();
    for _ in 0..DUPLICATES {
        steps.push(asks("light", &["on", "off"]));
    }
    let draft = Step {
        published: Some(0),
        ..shown(StepType::Information, "Draft")
    };
    steps.push(draft);
    let values = |from: usize| (from..from + 1_000).map(|n| text(&format!("value {n}")));
    for step in 0..10 {
        let nodes = (0..40)
            .map(|n| reads_values("unknown", "=", values(1_000 * (40 * step + n)).collect()));
        steps.push(needing(
            shown(StepType::Information, "Hidden"),
            vec![nested(any_of(nodes.collect()))],
        ));
    }
    let shown = i32::try_from(steps.len()).unwrap() - 1;
    let request = validation_of_document(document("Guide", steps));
    let response = client.validated(request).await;
    // The task itself and its outcomes are two more questions.
    let undecided = shown + DUPLICATES + 2;
    assert_eq!(response.counts.unwrap().undecided, undecided);
    let duplicates = response
        .findings
        .iter()
        .filter(|one| one.rule == "observation/duplicate-name");
    assert_eq!(i32::try_from(duplicates.count()), Ok(DUPLICATES));
}

/// Ten observations that put pigeons into nine holes. That two pigeons share one is true and hard to
/// prove: first what holds if none do, and then what holds if some do.
fn pigeons() -> (Vec<Step>, Vec<DependencyNode>, DependencyGroup) {
    const PIGEONS: usize = 10;
    const HOLES: usize = PIGEONS - 1;
    let holes: Vec<String> = (0..HOLES).map(|hole| format!("hole {hole}")).collect();
    let holes: Vec<&str> = holes.iter().map(String::as_str).collect();
    let name = |pigeon: usize| format!("v{pigeon}");
    let steps = (0..PIGEONS).map(|pigeon| asks(&name(pigeon), &holes));
    let pairs = |operator: &str, group: fn(Vec<DependencyNode>) -> DependencyGroup| {
        let mut groups = Vec::new();
        for second in 0..PIGEONS {
            for first in 0..second {
                for hole in &holes {
                    let one = |pigeon| reads(&name(pigeon), operator, &[hole]);
                    groups.push(nested(group(vec![one(first), one(second)])));
                }
            }
        }
        groups
    };
    let mut apart: Vec<DependencyNode> = (0..PIGEONS)
        .map(|pigeon| reads(&name(pigeon), "=", &holes))
        .collect();
    apart.extend(pairs("!=", any_of));
    let mut together: Vec<DependencyNode> = (0..PIGEONS)
        .map(|pigeon| {
            nested(all_of(
                holes
                    .iter()
                    .map(|hole| reads(&name(pigeon), "!=", &[hole]))
                    .collect(),
            ))
        })
        .collect();
    together.extend(pairs("=", all_of));
    (steps.collect(), apart, any_of(together))
}

#[apply(on_one_database)]
async fn a_step_is_not_reported_when_its_questions_are_too_hard(client: Client) {
    let (mut steps, apart, together) = pigeons();
    steps.push(needing(shown(StepType::Information, "Apart"), apart));
    let mut sharing = shown(StepType::Solution, "Together");
    sharing.dependencies = Some(together);
    steps.push(sharing);
    steps.push(shown(StepType::End, "Done"));
    let request = validation_of_document(document("Guide", steps));
    let response = client.validated(request).await;
    assert_eq!(places(&response.findings), []);
    assert_eq!(response.counts.unwrap().undecided, 2);
}

#[apply(on_one_database)]
async fn observations_of_one_name_that_perhaps_meet_are_counted_as_undecided(client: Client) {
    let (mut steps, apart, _) = pigeons();
    let again = ["twice", "twice"].map(|name| needing(asks(name, &["a"]), apart.clone()));
    steps.extend(again);
    steps.push(shown(StepType::End, "Done"));
    let request = validation_of_document(document("Guide", steps));
    let response = client.validated(request).await;
    let duplicates = of_rule(&response.findings, "observation/duplicate-name");
    assert_eq!(duplicates.len(), 1, "{:#?}", response.findings);
    // Whether each of the two is seen, and whether both are.
    assert_eq!(response.counts.unwrap().undecided, 3);
}
