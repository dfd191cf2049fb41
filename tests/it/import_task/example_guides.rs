//! The guides in `examples/guides`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::kit::prelude::*;
use prost_reflect::{DescriptorPool, DynamicMessage};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/guides")
}

/// Every guide by the name of its file, as JSON that proto3 maps to documents.
pub fn guides() -> Vec<(String, TaskDocument)> {
    let files = fs::read_dir(directory()).expect("the guides");
    let files = files.map(|file| file.expect("a guide").path());
    let mut guides: Vec<_> = files
        .filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|file| {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            (name, from_json(&fs::read_to_string(file).expect("a guide")))
        })
        .collect();
    guides.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(guides.len(), 3);
    guides
}

fn from_json(json: &str) -> TaskDocument {
    let pool = DescriptorPool::decode(expertise::proto::FILE_DESCRIPTOR_SET).expect("the contract");
    let descriptor = pool
        .get_message_by_name("expertise.v1.TaskDocument")
        .expect("the message of a document");
    let mut json = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(descriptor, &mut json)
        .expect("a document")
        .transcode_to()
        .expect("a document")
}

/// A file of a few kilobytes takes more, as there is little to compress.
#[apply(on_both_databases)]
async fn revisions_are_at_most_a_quarter_of_the_files(client: Client) {
    let (mut kept, mut written) = (0, 0);
    for (name, guide) in guides() {
        written += fs::metadata(directory().join(&name))
            .expect("a guide")
            .len();
        let made = client.imported(guide).await;
        let bytes = client.kept_revision(&made.guid).await.size_bytes;
        kept += u64::try_from(bytes).unwrap();
    }
    assert!(kept * 4 <= written, "{kept} of {written} bytes");
}

#[apply(on_both_databases)]
async fn each_guide_is_kept_as_it_was_written(client: Client) {
    for (name, guide) in guides() {
        let response = client.import(guide.clone()).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0], "{name}");
        let made = response.task.unwrap();
        let exported = client.exported(&made.guid).await;
        // Each document in an answer is a task of its own, to which a step leads.
        let documents = documents_in(&guide).len();
        assert_eq!(documents_in(&exported).len(), documents, "{name}");
        let wired = exported.steps.iter().filter(|step| !step.link.is_empty());
        assert_eq!(wired.count(), documents - 1, "{name}");
        // The export imports onto the guide.
        let before = client.tasks_with_steps().await;
        let again = client.import(exported.clone()).await.accepted();
        assert_eq!(again.ignored_paths, [""; 0], "{name}");
        assert_eq!(client.tasks_with_steps().await, before, "{name}");
        assert_eq!(client.exported(&made.guid).await, exported, "{name}");
        assert_eq!(
            Some(made.name),
            guide.task.as_ref().map(|task| task.name.clone())
        );
        as_written(&guide, exported, &name);
    }
}

/// Asserts that the export equals the written document, but for wiring steps and
/// defaults.
fn as_written(written: &TaskDocument, mut exported: TaskDocument, name: &str) {
    exported.steps.retain(|step| step.link.is_empty());
    assert_eq!(exported.steps.len(), written.steps.len(), "{name}");
    for (mut step, written) in exported.steps.into_iter().zip(&written.steps) {
        let title = &written.title;
        let questions = step
            .feedback_config
            .iter_mut()
            .zip(&written.feedback_config);
        for (question, written) in questions {
            for (value, written) in question.values.iter_mut().zip(&written.values) {
                value.link.clear();
                match (value.task_json.take(), &written.task_json) {
                    (Some(document), Some(written)) => as_written(written, *document, name),
                    (None, None) => {}
                    documents => panic!("{name}: {title}: {documents:?}"),
                }
            }
            let mut plain = written.clone();
            plain.linked = Some(plain.linked.unwrap_or_default());
            plain
                .values
                .iter_mut()
                .for_each(|value| value.task_json = None);
            assert_eq!(*question, plain, "{name}: {title}");
        }
        assert_eq!(step.title, *title, "{name}");
        assert_eq!(step.r#type, written.r#type, "{name}: {title}");
        assert_eq!(step.body, written.body, "{name}: {title}");
        assert_eq!(
            step.cost,
            Some(written.cost.unwrap_or(0)),
            "{name}: {title}"
        );
        let published = Some(written.published.unwrap_or(1));
        assert_eq!(step.published, published, "{name}: {title}");
        assert_eq!(step.instructions, written.instructions, "{name}: {title}");
        assert_eq!(step.looping, written.looping, "{name}: {title}");
        assert_eq!(step.parts, written.parts, "{name}: {title}");
        assert_eq!(step.skills, written.skills, "{name}: {title}");
        assert_eq!(step.tags, written.tags, "{name}: {title}");
        let languages = written.translations.keys();
        assert!(step.translations.keys().eq(languages), "{name}: {title}");
        if written.dependencies.is_some() {
            assert_eq!(step.dependencies, written.dependencies, "{name}: {title}");
        }
        if written.dependency_shorthand.is_some() {
            let shorthand = &written.dependency_shorthand;
            assert_eq!(step.dependency_shorthand, *shorthand, "{name}: {title}");
        }
    }
}
