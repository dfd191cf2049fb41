//! Guides beyond a limit, and questions that are hard to decide.

use serde_json::json;

use super::{CLEAN, fact, named, of_rule, of_variable, rules, validated};
use crate::{api::cases::guide, prelude::*};

/// There is no finding about `nobody`, because an observation that was not read may set it.
#[apply(on_both_databases)]
async fn a_name_without_setters_beside_one_with_too_many_to_read_has_no_finding(client: Client) {
    let many = "ask used: on, off\n".repeat(2_100);
    client.imported(named("Others", &many)).await;
    let steps = format!("info Used ? .used = on\ninfo Nobody ? .nobody = on\n{CLEAN}");
    let found = validated(&client, &steps).await.findings;
    assert_eq!(rules(&found), ["condition/set-elsewhere"], "{found:#?}");
    assert!(found[0].message.contains(".used`"), "{found:#?}");
    assert_eq!(found[0].related.len(), 20);
}

/// A condition that was not read may name any of its answers.
#[apply(on_both_databases)]
async fn an_observation_that_too_many_guides_read_has_no_finding(client: Client) {
    for (readers, expected) in [(999, vec!["observation/unused-answer"]), (1_010, vec![])] {
        let readers = "info Reader ? .used = on\n".repeat(readers);
        let others = client.imported(named("Others", &readers)).await;
        let found = validated(&client, "ask used: on, off\nend Done").await;
        assert_eq!(rules(&found.findings), expected);
        client.force_delete_task(&others.guid).await.accepted();
    }
}

/// What the task depends on is not known.
#[apply(on_one_database)]
async fn a_managed_task_beyond_a_limit_is_not_reported(client: Client) {
    let inner = "    info Inner\n".repeat(6_000);
    let steps = format!("link it: a=A, b=B\n  a ? .it = a\n{inner}  b ? .it = b\n{inner}");
    let made = client.imported(guide(&steps)).await;
    let found = client.validated(validation_of(&made.guid)).await.findings;
    assert_eq!(of_rule(&found, "analysis/too-large").len(), 1);
    assert_eq!(of_rule(&found, "linked/always-shown").len(), 0);
}

#[apply(on_one_database)]
async fn a_guide_of_more_steps_than_the_limit_is_too_large(client: Client) {
    let steps = |count| guide(&"solution Step\n".repeat(count)).steps;
    let inner = client.imported(document("Inner", steps(2_499))).await;
    let last = client.imported(named("Last", "end End")).await;
    let entering = |task: &Task, times| vec![subtask(&Task::default(), task); times];
    let entered = entering(&inner, 4);
    for (steps, expected) in [
        (entered.clone(), vec![]),
        ([entered, steps(1)].concat(), vec!["analysis/too-large"]),
        (steps(10_000), vec![]),
        (
            [entering(&last, 1), steps(9_999)].concat(),
            vec!["analysis/too-large"],
        ),
    ] {
        let request = validation_of_document(document("Guide", steps));
        let found = client.validated(request).await.findings;
        assert_eq!(rules(&found), expected);
    }
}

/// Conditions count at each subtask step that enters their task.
#[apply(on_one_database)]
async fn a_guide_of_more_conditions_than_the_limit_is_too_large(client: Client) {
    let conditions = vec![".light = on"; 1_000].join(" | ");
    let thousands = |count| guide(&format!("solution Step ? {conditions}\n").repeat(count)).steps;
    let inner = document("Inner", thousands(5));
    let inner = client.imported(inner).await;
    let entered = vec![subtask(&Task::default(), &inner); 4];
    for twenty_thousand in [entered, thousands(20)] {
        for (more, too_large) in [("", 0), ("end Done ? .light = on", 1)] {
            let first = guide("ask light: on, off").steps;
            let steps = [first, twenty_thousand.clone(), guide(more).steps].concat();
            let request = validation_of_document(document("Guide", steps));
            let found = client.validated(request).await.findings;
            let found = of_rule(&found, "analysis/too-large");
            assert_eq!(found.len(), too_large);
            for finding in found {
                assert_eq!(fact(finding, "limit"), "conditions");
                assert_eq!(fact(finding, "most"), 20_000.0);
            }
        }
    }
}

#[apply(on_one_database)]
async fn managed_tasks_of_a_guide_that_is_too_large_are_checked_in_any_order_of_its_subtasks(
    client: Client,
) {
    let nested = "
        link it: a=A
          a
            link it: a=A
              a
                link it: a=A
                  a
                    link it: a=A
                      a
                        ask nobody_reads_this: x";
    let outer = client.imported(guide(nested)).await;
    let mut managed = vec![outer.clone()];
    for depth in 0..4 {
        let link = &client.managed_by(&managed[depth].steps[0], 0).await.guid;
        managed.push(client.get_task(link).await.accepted());
    }
    // The outer task refers to the third one, which is so above the second, its manager.
    client.given_step(subtask(&outer, &managed[3])).await;
    // Each level has ten ways into the next: more than 10,000 steps.
    let mut below = client.imported(named("Last", "end End")).await;
    for _ in 0..4 {
        let ways = vec![subtask(&Task::default(), &below); 10];
        below = client.imported(document("Level", ways)).await;
    }
    client.given_step(subtask(&outer, &below)).await;
    let found = client.validated(validation_of(&outer.guid)).await.findings;
    assert_eq!(of_rule(&found, "analysis/too-large").len(), 1);
    let unused = of_rule(&found, "observation/unused").into_iter();
    let steps: Vec<_> = unused.map(|finding| &finding.step).collect();
    assert!(steps.contains(&&managed[4].steps[0]), "{found:#?}");
}

/// Rules about walkthroughs are still checked.
#[apply(on_one_database)]
async fn of_more_than_a_hundred_languages_a_hundred_are_checked(client: Client) {
    let all = tags(101);
    for (count, too_large) in [(100, 0), (101, 1)] {
        let mut guide = guide("end End body=null\nsolution After body=null");
        for (index, tag) in all.iter().take(count).enumerate() {
            let translations = &mut guide.steps[index / 100].translations;
            translations.insert(tag.clone(), step_translation("Text"));
        }
        let found = client.validated(validation_of_document(guide)).await;
        let beyond = of_rule(&found.findings, "analysis/too-large");
        assert_eq!(beyond.len(), too_large);
        for finding in beyond {
            assert_eq!(fact(finding, "limit"), "languages");
            assert_eq!(fact(finding, "most"), 100.0);
        }
        assert_eq!(of_rule(&found.findings, "step/unreachable").len(), 1);
        let missing = of_rule(&found.findings, "translation/missing").into_iter();
        let missing = missing.filter(|one| one.path.contains("task."));
        assert_eq!(missing.count(), 100);
    }
}

#[apply(on_one_database)]
async fn texts_and_lists_of_a_finding_are_cut(client: Client) {
    let long = "é".repeat(999);
    let others = (0..100).map(|n| format!("key {n}=Text {n}"));
    let others = others.collect::<Vec<_>>().join(", ");
    let answers = format!("{long}a={long}, {long}b={long}, {others}");
    let steps = format!("ask it de.title=Frage de.answers=another: {answers}");
    let found = validated(&client, &steps).await.findings;
    let message = &of_rule(&found, "observation/duplicate-text")[0].message;
    assert_eq!(message.chars().count(), 2_049);
    assert!(message.ends_with('…'), "{message}");
    let missing = fact(of_rule(&found, "translation/answers")[0], "missing");
    assert_eq!(missing.as_array().map(Vec::len), Some(100));
}

/// For each type of step: each text is the only missing one, and the only present one.
#[apply(on_one_database)]
async fn each_text_that_a_translation_lacks_is_missing(client: Client) {
    const TEXTS: [(&str, &str); 4] = [
        ("title", "de.title=Titel"),
        ("body", "de.body=Text"),
        ("instructions", "de.instructions=[{\"text\":\"Text\"}]"),
        ("feedback_config", "de.answers=a"),
    ];
    let inner = client.imported(named("Inner", "")).await.guid;
    let (mut steps, mut expected) = (String::new(), Vec::new());
    for kind in [
        "info Title",
        "ask Title",
        "solution Title",
        "idp Title",
        "end Title",
        "sub Inner",
    ] {
        for index in 0..4 {
            for lacks_it in [true, false] {
                let is_missing = |at: &usize| (*at == index) == lacks_it;
                let missing = (0..4).filter(is_missing).map(|at| TEXTS[at].0);
                expected.push(json!(missing.collect::<Vec<_>>()));
                let there = (0..4).filter(|at| !is_missing(at)).map(|at| TEXTS[at].1);
                let there = there.collect::<Vec<_>>().join(" ");
                let source = "body=text instructions=[{\"text\":\"Text\"}]";
                steps += &format!("{kind} {source} subtask_id={inner} {there}: a\n");
            }
        }
    }
    let mut guide = guide(&steps);
    for step in &mut guide.steps {
        if step.r#type() != StepType::Subtask {
            step.subtask_id.clear();
        }
        step.feedback_config = vec![question("Title", &["a"])];
    }
    let name = task_translation("Anleitung");
    guide.task = guide.task.map(|task| task.translated("de", name));
    let found = client.validated(validation_of_document(guide)).await;
    let missing = of_rule(&found.findings, "translation/missing").into_iter();
    let missing = missing.map(|one| (one.path.clone(), fact(one, "fields")));
    let expected = expected.into_iter().enumerate();
    let expected =
        expected.map(|(at, it)| (format!("document.steps[{at}].translations[\"de\"]"), it));
    assert_eq!(missing.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Going through every combination of answers would take 3^20 walkthroughs.
#[apply(on_one_database)]
async fn twenty_observations_that_only_the_last_step_reads_are_decided(client: Client) {
    let asks = (0..20).map(|index| format!("ask v{index}: a, b, c\n"));
    let all = |key: &str, operator: &str| {
        let conditions = (0..20).map(|index| format!(".v{index} = {key}"));
        conditions.collect::<Vec<_>>().join(operator)
    };
    let steps = format!(
        "{}solution All a ? {}\nsolution Some ? {}\nsolution Some ? {}",
        asks.collect::<String>(),
        all("a", " & "),
        all("b", " | "),
        all("c", " | ")
    );
    let response = validated(&client, &steps).await;
    assert_eq!(response.findings, []);
    assert_eq!(response.counts.unwrap().undecided, 0);
}

/// Whether a step can be seen is as hard as any question about boolean formulas.
#[apply(on_one_database)]
async fn a_thousand_conditions_over_a_hundred_variables_end_within_the_budget(client: Client) {
    let asks = (0..100).map(|index| format!("ask v{index}: a, b\n"));
    let mut state = 7_usize;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut literal = || {
        let key = if next(2) == 0 { "a" } else { "b" };
        format!(".v{} = {key}", next(100))
    };
    let clauses = (0..333).map(|_| format!("({} | {} | {})", literal(), literal(), literal()));
    let clauses = clauses.collect::<Vec<_>>().join(" & ");
    let asks = asks.collect::<String>();
    let steps = format!("{asks}solution Hard ? {clauses}\nend Done");
    let first = validated(&client, &steps).await;
    assert_eq!(first, validated(&client, &steps).await);
    let counts = first.counts.unwrap();
    assert!(counts.undecided <= 2, "{counts:?}");
}

/// 400 conditions of 1,000 values each, which are not looked into.
#[apply(on_one_database)]
async fn every_question_about_a_guide_with_too_many_values_is_undecided(client: Client) {
    const DUPLICATES: usize = 3;
    let mut steps = CLEAN.to_owned();
    steps += &"\nask light: on, off".repeat(DUPLICATES);
    for step in 0..10 {
        let conditions = (0..40).map(|n| {
            let first = 1_000 * (40 * step + n);
            let values = (first..first + 1_000).map(|n: i32| format!("value {n}"));
            format!(".unknown = {}", values.collect::<Vec<_>>().join(", "))
        });
        let conditions = conditions.collect::<Vec<_>>().join(" | ");
        steps += &format!("\ninfo Hidden ? ({conditions})");
    }
    let shown = steps.lines().count();
    steps += "\ninfo Draft published=0";
    let response = validated(&client, &steps).await;
    // The task itself and its outcomes are two more questions.
    let undecided = shown + DUPLICATES + 2;
    assert_eq!(response.counts.unwrap().undecided as usize, undecided);
    let duplicates = of_rule(&response.findings, "observation/duplicate-name");
    assert_eq!(duplicates.len(), DUPLICATES);
}

/// Ten observations that put pigeons into nine holes. That two pigeons share one is true and hard to
/// prove: first what holds if none do, and then what holds if some do.
fn pigeons() -> (String, String, String) {
    const HOLES: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let pigeons = 0..=HOLES.len();
    let steps = pigeons
        .clone()
        .map(|pigeon| format!("ask v{pigeon}: {}\n", HOLES.join(", ")));
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    for second in pigeons {
        apart.push(format!(".v{second} = {}", HOLES.join(", ")));
        let nowhere = HOLES.map(|hole| format!(".v{second} != {hole}"));
        together.push(format!("({})", nowhere.join(" & ")));
        for first in 0..second {
            for hole in HOLES {
                apart.push(format!("(.v{first} != {hole} | .v{second} != {hole})"));
                together.push(format!("(.v{first} = {hole} & .v{second} = {hole})"));
            }
        }
    }
    (steps.collect(), apart.join(" & "), together.join(" | "))
}

#[apply(on_one_database)]
async fn a_step_is_not_reported_when_its_questions_are_too_hard(client: Client) {
    let (steps, apart, together) = pigeons();
    let steps = format!("{steps}info Apart ? {apart}\nsolution Together ? {together}\nend Done");
    let response = validated(&client, &steps).await;
    assert_eq!(rules(&response.findings), Vec::<&str>::new());
    assert_eq!(response.counts.unwrap().undecided, 2);
}

#[apply(on_one_database)]
async fn observations_of_one_name_that_perhaps_meet_are_counted_as_undecided(client: Client) {
    let (steps, apart, _) = pigeons();
    let again = format!("ask twice: a ? {apart}\n").repeat(2);
    let response = validated(&client, &format!("{steps}{again}end Done")).await;
    let duplicates = of_rule(&response.findings, "observation/duplicate-name");
    assert_eq!(duplicates.len(), 1, "{:#?}", response.findings);
    // Whether each of the two is seen, and whether both are.
    assert_eq!(response.counts.unwrap().undecided, 3);
}

#[apply(on_one_database)]
async fn of_open_variables_and_their_keys_a_hundred_are_listed(client: Client) {
    let many = (0..101).map(|n| format!("v{n} = 1")).collect::<Vec<_>>();
    let many = guide(&format!("info many ? {}", many.join(" | ")));
    let preview = client.previewed(preview_of_document(many)).await;
    assert_eq!(preview.open_variables.len(), 100);

    let asking = |keys: std::ops::Range<usize>| {
        let keys: Vec<String> = keys.map(|n| format!("key {n}")).collect();
        format!(
            "info Reader ? light = off\nask light: off, {}",
            keys.join(", ")
        )
    };
    let inner = client.imported(named("Inner", &asking(60..120))).await;
    let mut outer = guide(&asking(0..60));
    outer.steps.push(subtask(&Task::default(), &inner));
    let preview = client.previewed(preview_of_document(outer)).await;
    let open = preview.open_variables.iter();
    let open = open.filter(|one| one.name == "light");
    let counts: Vec<usize> = open.map(|one| one.keys.len()).collect();
    assert_eq!(counts, [100]);
}

#[apply(on_one_database)]
async fn a_preview_of_too_many_steps_is_refused(client: Client) {
    let small = named("small", "info a\ninfo b\ninfo c");
    let small = client.imported(small).await;
    // 2,500 entries of a task of three steps make 10,000 steps.
    let entries = |count| vec![subtask(&Task::default(), &small); count];
    let exact = client.imported(document("exact", entries(2_500))).await;
    client.previewed(preview_of(&exact.guid)).await;
    let over = client.imported(document("over", entries(2_501))).await;
    let failure = client.call(preview_of(&over.guid)).await.refused();
    failure.violates(&[("guid", "TOO_MANY_ELEMENTS")]);
    let request = preview_of_document(document("over", entries(2_501)));
    let failure = client.call(request).await.refused();
    failure.violates(&[("document", "TOO_MANY_ELEMENTS")]);
}

#[apply(on_one_database)]
async fn a_preview_of_too_many_conditions_is_refused(client: Client) {
    let with = |count| {
        guide("info full")
            .steps
            .remove(0)
            .depending_on(conditions(count))
    };
    let mut steps = vec![with(1_000); 20];
    let request = preview_of_document(document("exact", steps.clone()));
    client.previewed(request).await;
    steps.push(with(1));
    let request = preview_of_document(document("over", steps));
    let failure = client.call(request).await.refused();
    failure.violates(&[("document", "TOO_MANY_ELEMENTS")]);
}

#[apply(on_one_database)]
async fn an_answer_of_a_preview_has_a_kind_and_is_finite(client: Client) {
    let request = preview_of_document(guide("ask light: off, on"));
    for wrong in [number(f64::INFINITY), prost_types::Value { kind: None }] {
        let request = request.clone().answering("light", wrong);
        let failure = client.call(request).await.refused();
        failure.violates(&[("answers[\"light\"]", "FIELD_INVALID")]);
    }
}

#[apply(on_both_databases)]
async fn a_thousand_conditions_of_one_step_are_found(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let nodes = (0..1_000).map(|n| when(&format!("v{n}"), "=", "1"));
    let step = information_step(&task, "Step").depending_on(all_of(nodes.collect()));
    let step = client.given_step(step).await;
    for name in ["v0", "v500", "v999"] {
        let found = client.list(of_variable(name)).await;
        assert_eq!(found.len(), 1, "{name}");
    }
    let same = all_of(vec![when("v7", "=", "1"); 1_000]);
    let update = step_of(&step.guid).depending_on(same);
    client.updated_step(update, &["dependencies"]).await;
    assert_eq!(client.list(of_variable("v0")).await, []);
    let found = client.list(of_variable("v7")).await;
    assert_eq!(found.len(), 1_000);
    let path = |one: &Reference| one.place.clone().map(|place| place.path);
    assert!(found.is_sorted_by_key(path), "by path");
}
