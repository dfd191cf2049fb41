//! The guides in `examples/guides`.

use crate::{api::import_task::example_guides, prelude::*};

#[apply(on_one_database)]
async fn the_example_guides_have_no_error(client: Client) {
    for (name, guide) in example_guides::guides() {
        let request = validation_of_document(guide.clone());
        let document = client.validated(request).await;
        let made = client.imported(guide).await;
        let stored = client.validated(validation_of(&made.guid)).await;
        for response in [document, stored] {
            let flaws = response.findings.iter().filter(|one| {
                let rule = one.rule.as_str();
                one.severity() == Severity::Error
                    || ["step/unreachable", "path/no-outcome", "task/never-visible"].contains(&rule)
            });
            assert_eq!(flaws.collect::<Vec<_>>(), Vec::<&Finding>::new(), "{name}");
            assert_eq!(response.counts.unwrap().undecided, 0, "{name}");
        }
    }
}

/// With the first answer to each question, and with the last.
#[apply(on_one_database)]
async fn the_example_guides_end_without_undetermined_steps(client: Client) {
    for (name, document) in example_guides::guides() {
        let task = client.imported(document).await;
        for from_end in [false, true] {
            let mut request = preview_of(&task.guid).to_depth(8).with_page_size(500);
            let preview = loop {
                let preview = client.previewed(request.clone()).await;
                let Some(next) = preview.next_observation.last() else {
                    break preview;
                };
                let step = client.get_step(next).await.accepted();
                let answers = answers_of(&step);
                let answer = if from_end {
                    answers.last()
                } else {
                    answers.first()
                };
                let key = &answer.expect("an answer").key;
                request = request.answering(&step.feedback_config[0].name, text(key));
            };
            let mut steps = preview.steps.iter();
            let undetermined = steps.find(|it| it.visibility() == Visibility::Undetermined);
            assert_eq!(undetermined, None, "{name}");
        }
    }
}
