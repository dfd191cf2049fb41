use std::cell::Cell;

use uuid::Uuid;

use super::*;
use crate::domain::{
    analysis::{GuideDraft, KnownVariables, NEVER, SourceStep, SourceTasks},
    decide::WriteContext,
    ids::{AccountId, ProductId},
    step::{Cost, NewStep, Step, StepContent, StepKind, StepType},
    task::{NewTask, Task, TaskContent},
    text::Name,
    time::Timestamp,
};

const STEPS: usize = 100;

fn draft() -> GuideDraft {
    let write = WriteContext {
        account: AccountId::parse("tests").expect("an account"),
        subject: String::new(),
        now: Timestamp(0),
        new_id: Uuid::now_v7,
        max_message_bytes: 1024,
        automatic_revisions: 0,
        keeps_deleted_tasks: false,
    };
    let product = ProductId::new(7).expect("a product");
    let new = NewTask {
        name: Name::parse("Guide".to_owned()).expect("a name"),
        product,
        content: TaskContent::default(),
    };
    let task = Task::create(new, None, &write);
    let root = task.guid;
    let new = NewStep {
        task: root,
        product,
        title: "Step".to_owned(),
        kind: StepKind::new(StepType::Information, Cost::default(), None, None).expect("a kind"),
        content: StepContent::default(),
    };
    let step = SourceStep::from(Step::create(new, &write));
    let tasks = SourceTasks::from([(root, (task.into(), Some(vec![step; STEPS])))]);
    GuideDraft::new(root, tasks, &KnownVariables::default()).expect("a guide")
}

fn preview(stop: StopSignal<'_>) -> Option<Preview> {
    let guide = draft().finish(BTreeMap::new(), stop)?;
    let options = PreviewOptions {
        level: None,
        texts: TextLanguages::default(),
        answers: BTreeMap::new(),
        include_unpublished: false,
        subtask_depth: 0,
    };
    Preview::new(guide, options, &Path::root("guid"), stop).expect("a preview")
}

#[test]
fn a_preview_that_nobody_waits_for_ends_at_the_step_where_it_is() {
    assert!(preview(NEVER).is_some());
    // While the guide is compiled, and while its steps are listed.
    for stop_at in [1, STEPS / 2, STEPS + 1, 2 * STEPS - 1] {
        let looked = Cell::new(0);
        let is_given = || {
            looked.set(looked.get() + 1);
            looked.get() >= stop_at
        };
        assert!(preview(&is_given).is_none());
        let looked = looked.get();
        assert!(looked <= stop_at + 1, "{looked} after {stop_at}");
    }
}
