//! The guides in `examples/guides`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::prelude::*;
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

/// A file of a few kilobytes takes more, because there is little to compress.
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
async fn each_guide_is_kept_whole(client: Client) {
    for (name, guide) in guides() {
        let response = client.import(guide.clone()).await.accepted();
        assert_eq!(response.ignored_paths, [""; 0], "{name}");
        let made = response.task.unwrap();
        let exported = client.exported(&made.guid).await;
        // Each document in an answer becomes a separate task, to which a step leads.
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
    }
}
