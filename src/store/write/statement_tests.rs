//! The statements of each kind of write, whole, as both databases receive them.

#![allow(clippy::expect_used)]

#[path = "statement_tests/samples.rs"]
mod samples;

use std::fmt::Write as _;

use sea_orm::DbBackend;
use uuid::Uuid;

use self::samples::{
    context, create, information, label, language, name, new_step, observation, reading,
    step_overlay, stored, task, task_overlay, title, update,
};
use super::{super::rows::task_row, *};
use crate::domain::{
    changes::{RoleChange, TranslatedStep, TranslatedTask},
    decide::{
        CreateStep, DeleteStep, ManagedTasks, NewStepSnapshot, StepSnapshot, StepToDelete,
        UpdateStep, UpdateTask,
    },
    etag::ExpectedEtag,
    feedback::{Feedback, FeedbackValue},
    ids::{RequestId, StepId, TaskId},
    order::{Insertion, Place},
    patch::Edit,
    step::{ContentPatch, Placement, Step, StepKind, StepPatch},
    task::{Published, Task, TaskPatch},
    text::Body,
};

/// The statements of a write: as a script, if it can be one, and under locks.
fn shown(changes: impl Fn() -> Changes, outcome: impl Fn() -> Option<KeptOutcome>) -> String {
    let context = context();
    let write = |backend| DecidedWrite {
        changes: changes(),
        outcome: outcome(),
        context: &context,
        backend,
    };
    let mut text = String::new();
    for (backend, database) in [
        (DbBackend::Postgres, "PostgreSQL"),
        (DbBackend::Sqlite, "SQLite"),
    ] {
        if let Some(script) = write(backend).script().expect("a script") {
            let statement = script.statement(backend, &context.account);
            let sql = in_lines(&statement.sql);
            writeln!(text, "-- {database}, optimistic\n{sql}\n").expect("a text");
        }
        let Ok(statements) = write(backend).under_locks() else {
            continue;
        };
        writeln!(text, "-- {database}, locked").expect("a text");
        for statement in statements {
            let statement = statement.statement(backend, &context.account);
            writeln!(text, "{};", in_lines(&statement.sql)).expect("a text");
        }
        text.push('\n');
    }
    text
}

/// A statement with its clauses on lines of their own.
fn in_lines(sql: &str) -> String {
    let clauses = [
        "; ",
        ", effect",
        ", attached",
        " SET ",
        " SELECT ",
        " VALUES ",
        " FROM ",
        " WHERE ",
        " AND ",
        " ON CONFLICT ",
        " RETURNING ",
        " UPDATE steps",
        " UPDATE tasks",
        " ORDER BY ",
    ];
    clauses.iter().fold(sql.to_owned(), |text, clause| {
        let on_its_own = match *clause {
            "; " => ";\n".to_owned(),
            ", effect" => ",\neffect".to_owned(),
            ", attached" => ",\nattached".to_owned(),
            clause => format!("\n  {}", clause.trim_start()),
        };
        text.replace(clause, &on_its_own)
    })
}

fn no_outcome() -> Option<KeptOutcome> {
    None
}

fn kept() -> Option<KeptOutcome> {
    Some(KeptOutcome {
        request_id: RequestId(Uuid::nil()),
        digest: [0; 32],
        answer: Vec::new(),
    })
}

macro_rules! statements {
    ($($name:ident: $changes:expr, $outcome:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::with_settings!({ omit_expression => true }, {
                insta::assert_snapshot!(shown($changes, $outcome));
            });
        }
    )*};
}

statements! {
    create_task_with_translations: || task().0, no_outcome;
    create_task_with_a_request_id: || task().0, kept;
    update_task: || {
        let mut task = task().1;
        let update = UpdateTask {
            guid: task.guid,
            expected: ExpectedEtag::Any,
            patch: TaskPatch {
                published: Edit::Set(Published::new(0).expect("a number")),
                ..TaskPatch::default()
            },
        };
        task.translations.clear();
        update.into_changes(Some(task), &context()).expect("an update").0
    }, no_outcome;
    rename_task: || {
        let task = task().1;
        let update = UpdateTask {
            guid: task.guid,
            expected: ExpectedEtag::Any,
            patch: TaskPatch {
                name: Edit::Set(Ok(name("New"))),
                ..TaskPatch::default()
            },
        };
        let mut changes = update.into_changes(Some(task), &context()).expect("an update").0;
        changes.retitle(vec![StepId(Uuid::nil())]);
        changes
    }, no_outcome;
    append_step: || create(Insertion::at_end(Placement::Appended)).0, no_outcome;
    insert_step_behind_another_one: || {
        let neighbours = crate::domain::order::Neighbours {
            before: Place::nth(0),
            after: Some(Place::nth(1)),
        };
        create(Insertion::after(&neighbours, 7).expect("room")).0
    }, kept;
    insert_step_with_a_new_numbering: || {
        let order = [StepId(Uuid::nil()), StepId(Uuid::max())];
        create(Insertion::renumbering(Placement::AfterPrevstep, &order, Some(StepId(Uuid::nil())))).0
    }, no_outcome;
    update_title_of_step: || {
        let patch = StepPatch {
            title: Edit::Set(Ok(title("New"))),
            ..StepPatch::default()
        };
        update(patch, information())
    }, no_outcome;
    append_observation_with_a_condition: || {
        let mut new = new_step(observation());
        new.content.translations.clear();
        new.content.dependencies = Some(reading(&["power"]));
        let create = CreateStep { new, prevstep: None };
        let stored = NewStepSnapshot {
            insertion: Insertion::at_end(Placement::Appended),
            target: None,
            step_count: None,
        };
        create.into_changes(stored, &context()).expect("a step").0
    }, no_outcome;
    update_conditions_of_step: || {
        let mut new = new_step(information());
        new.content.dependencies = Some(reading(&["power", "light"]));
        let step = Step::create(new, "Step".to_owned(), &context());
        let update = UpdateStep {
            guid: step.guid,
            expected: ExpectedEtag::Any,
            patch: StepPatch {
                content: ContentPatch {
                    dependencies: Edit::Set(reading(&["light", "fuse"])),
                    ..ContentPatch::default()
                },
                ..StepPatch::default()
            },
        };
        update.into_changes(stored(step), None, &context()).expect("an update").0
    }, no_outcome;
    update_conditions_of_task: || {
        let task = task().1;
        let update = UpdateTask {
            guid: task.guid,
            expected: ExpectedEtag::Any,
            patch: TaskPatch {
                dependencies: Edit::Set(reading(&["light"])),
                ..TaskPatch::default()
            },
        };
        update.into_changes(Some(task), &context()).expect("an update").0
    }, no_outcome;
    update_body_of_step: || {
        let patch = StepPatch {
            content: ContentPatch {
                body: Edit::Clear,
                ..ContentPatch::default()
            },
            ..StepPatch::default()
        };
        update(patch, information())
    }, no_outcome;
    delete_step: || {
        let step = create(Insertion::at_end(Placement::Appended)).1;
        let delete = DeleteStep { guid: step.guid, expected: ExpectedEtag::Any };
        let stored = StepToDelete {
            task: step.task,
            link: None,
            revision: step.revision,
            managed_ids: Vec::new(),
            managed: ManagedTasks::default(),
        };
        delete.into_changes(Some(stored), &context()).expect("a deletion").0
    }, no_outcome;
    unlink_tasks_of_an_observation: || {
        let managed = Uuid::max();
        let task = Task {
            guid: TaskId(managed),
            managed: Some(crate::domain::task::ManagedBy { parent: TaskId(Uuid::nil()), idx: 0 }),
            ..task().1
        };
        let value = |link| FeedbackValue { key: label("on"), value: label("On"), link };
        let question = |linked, link| Feedback {
            name: label("light"),
            linked,
            values: vec![value(link)],
        };
        let observation = StepKind::Observation {
            title: title("Look"),
            feedback: question(true, Some(TaskId(managed))),
        };
        let observation = Step::create(new_step(observation), "Look".to_owned(), &context());
        let wiring = StepId(Uuid::max());
        let update = UpdateStep {
            guid: observation.guid,
            expected: ExpectedEtag::Any,
            patch: StepPatch {
                feedback: Edit::Set(question(false, None)),
                ..StepPatch::default()
            },
        };
        let stored = StepSnapshot {
            step: observation,
            place: Place::nth(0),
            managed: ManagedTasks {
                tasks: vec![task],
                wiring: vec![(wiring, TaskId(managed))],
            },
        };
        update.into_changes(Some(stored), None, &context()).expect("an update").0
    }, no_outcome;
    delete_task_with_its_steps: || Changes {
        tasks: vec![TaskChange::Delete { task: TaskId(Uuid::nil()), steps: vec![StepId(Uuid::nil())] }],
        ..Changes::default()
    }, no_outcome;
    write_automatic_translations: || Changes {
        translated_tasks: vec![TranslatedTask {
            task: TaskId(Uuid::nil()),
            name: name("Task"),
            by_language: vec![(language(), task_overlay())],
            added_languages: 1,
            growth: 25,
        }],
        translated_steps: vec![TranslatedStep {
            step: StepId(Uuid::nil()),
            title: "Step".to_owned(),
            content_digest: crate::domain::translation_work::SourceDigest([0; 16]),
            by_language: vec![(language(), step_overlay())],
            added_languages: 1,
            growth: crate::domain::size::StepSize::default(),
        }],
        ..Changes::default()
    }, no_outcome;
    import_two_steps: || {
        let step = |nth, title: &str, body| {
            let mut new = new_step(information());
            new.content.body = body;
            StepChange {
                before: None,
                after: Box::new(Step::create(new, title.to_owned(), &context())),
                place: Some(Place::nth(nth)),
            }
        };
        let body = Body::parse("body".to_owned()).expect("a body");
        Changes {
            steps: vec![step(0, "First", Some(body)), step(1, "Second", None)],
            ..Changes::default()
        }
    }, no_outcome;
    create_role: || Changes {
        role: Some(RoleChange::Create(name("Technician"))),
        ..Changes::default()
    }, no_outcome;
    delete_role: || Changes {
        role: Some(RoleChange::Delete(crate::domain::ids::RoleId(7))),
        ..Changes::default()
    }, no_outcome;
}

#[test]
fn a_statement_puts_a_thousand_rows_at_most() {
    let (_, task) = task();
    let row = task_row(&task);
    for (rows, statements) in [
        (0, 0),
        (1, 1),
        (1_000, 1),
        (1_001, 2),
        (2_000, 2),
        (2_500, 3),
    ] {
        for backend in [DbBackend::Sqlite, DbBackend::Postgres] {
            let upsert = Upsert::new(vec![row.clone(); rows]);
            assert_eq!(upsert.statements(backend).len(), statements, "{rows} rows");
        }
    }
}
