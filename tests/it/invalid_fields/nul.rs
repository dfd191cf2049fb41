//! U+0000 is refused where `every_text` does not look: in JSON, masks and tokens, and in
//! requests other than of tasks and steps.

use crate::kit::prelude::*;
use serde_json::json;

#[apply(on_one_database)]
async fn json_keys_and_texts_refuse_nul(client: Client) {
    let task = client.given_task(task("Guide")).await;
    for odd in [
        json!({"a\u{0}": 1}),
        json!({"a": "\u{0}"}),
        json!({"a": [{"b": ["x", "y\u{0}"]}]}),
        json!({"a": {"\u{0}": null}}),
    ] {
        let sent = information_step(&task, "odd").with_instructions(vec![object(odd.clone())]);
        let failure = client.create_step(sent).await.refused();
        failure.violates_below("step.instructions[0]", "FIELD_INVALID");
        let sent = Step {
            looping: Some(Looping {
                array: Some(value(odd)),
                ..Looping::default()
            }),
            ..information_step(&task, "odd")
        };
        let failure = client.create_step(sent).await.refused();
        failure.violates_below("step.looping.array", "FIELD_INVALID");
    }
}

#[apply(on_one_database)]
async fn ids_masks_and_tokens_refuse_nul(client: Client) {
    client
        .get_task("\0")
        .await
        .refused()
        .violates(&[("guid", "FIELD_INVALID")]);
    let listed = client.list_roles(0, "\0").await;
    listed
        .refused()
        .violates(&[("page_token", "PAGE_TOKEN_INVALID")]);
    let request = CreateTaskRequest {
        task: Some(task("Named")),
        request_id: "\0".to_owned(),
        ..CreateTaskRequest::default()
    };
    let created = client.send_create_task(request).await;
    created
        .refused()
        .violates(&[("request_id", "FIELD_INVALID")]);
    let task = client.given_task(task("Guide")).await;
    let updated = client.update_task(task_of(&task.guid), &["na\0me"]).await;
    let failure = updated.refused();
    assert_eq!(failure.code, Code::InvalidArgument);
    assert_eq!(failure.violations()[0].0, "update_mask.paths[0]");
}

#[apply(on_one_database)]
async fn etags_and_digests_refuse_nul_too(client: Client) {
    let task = client.given_task(task("Guide")).await;
    let step = client.given_step(information_step(&task, "Look")).await;
    let (odd, at) = ("a\0b".to_owned(), &[("etag", "FIELD_INVALID")][..]);
    let request = DeleteTaskRequest {
        guid: task.guid.clone(),
        etag: odd.clone(),
        force: true,
        purge_history: false,
    };
    client
        .send_delete_task(request)
        .await
        .refused()
        .violates(at);
    let request = DeleteStepRequest {
        guid: step.guid.clone(),
        etag: odd.clone(),
    };
    client
        .send_delete_step(request)
        .await
        .refused()
        .violates(at);
    let request = ImportTaskRequest {
        document: Some(client.exported(&task.guid).await),
        etag: odd.clone(),
        ..ImportTaskRequest::default()
    };
    client.send_import(request).await.refused().violates(at);
    let update = step_of(&step.guid).with_etag(odd.clone());
    let failure = client.update_step(update, &[]).await.refused();
    failure.violates(&[("step.etag", "FIELD_INVALID")]);
    let translation = AutomaticTranslation {
        guid: step.guid.clone(),
        language: "de".to_owned(),
        title: Some("Schau".to_owned()),
        source_digest: odd,
        ..AutomaticTranslation::default()
    };
    let written = client.write_translations(vec![translation]).await;
    let path = "translations[0].source_digest";
    written.refused().violates(&[(path, "FIELD_INVALID")]);
}
