//! Aliases of revisions.

use super::{given_guide, request, retitle};
use crate::kit::prelude::*;

on_both_databases![
    an_alias_moves_and_is_removed,
    a_revision_with_an_alias_cannot_be_deleted,
    a_task_has_at_most_twenty_aliases,
];

async fn an_alias_moves_and_is_removed(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    retitle(&client, &guide.guid, "Changed").await;
    client.kept_revision(&guide.guid).await;
    let alias = async |revision: &str| {
        let set = client
            .set_revision_alias(&guide.guid, "live", revision)
            .await;
        set.accepted().revision
    };
    let live = async || {
        let found = client.get_revision(&guide.guid, "live").await.accepted();
        found.revision.expect("a revision").revision
    };
    let other = client.set_revision_alias(&guide.guid, "other", 1).await;
    other.accepted();
    let set = alias("1").await.expect("a revision");
    assert_eq!(set.aliases, ["live", "other"]);
    assert_eq!(live().await, 1);
    assert_eq!(alias("2").await.map(|it| it.revision), Some(2));
    assert_eq!(live().await, 2);
    assert_eq!(alias("").await, None);
    assert_eq!(alias("").await, None);
    let other = client.get_revision(&guide.guid, "other").await.accepted();
    let other = other.revision.expect("a revision");
    assert_eq!((other.revision, other.aliases.len()), (1, 1));
    let failure = client.get_revision(&guide.guid, "live").await.refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
}

async fn a_revision_with_an_alias_cannot_be_deleted(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    client
        .set_revision_alias(&guide.guid, "live", 1)
        .await
        .accepted();
    let delete = DeleteRevisionRequest {
        task: guide.guid.clone(),
        revision: "1".to_owned(),
    };
    let failure = client.delete_revision(delete.clone()).await.refused();
    failure.is(Code::FailedPrecondition, "REVISION_IN_USE");
    client
        .set_revision_alias(&guide.guid, "live", "")
        .await
        .accepted();
    client.delete_revision(delete).await.accepted();
}

async fn a_task_has_at_most_twenty_aliases(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    for number in 0..20 {
        let alias = format!("alias-{number}");
        client
            .set_revision_alias(&guide.guid, &alias, 1)
            .await
            .accepted();
    }
    let failure = client
        .set_revision_alias(&guide.guid, "more", 1)
        .await
        .refused();
    failure.violates(&[("alias", "TOO_MANY_ELEMENTS")]);
    retitle(&client, &guide.guid, "Changed").await;
    let keep = |alias: &str| CreateRevisionRequest {
        alias: alias.to_owned(),
        ..request(&guide.guid)
    };
    let failure = client.create_revision(keep("more")).await.refused();
    failure.violates(&[("alias", "TOO_MANY_ELEMENTS")]);
    client.create_revision(keep("alias-8")).await.accepted();
    // Those that there are move, and one that is removed leaves room.
    for (alias, revision) in [("alias-7", "2"), ("alias-9", ""), ("more", "2")] {
        let set = client
            .set_revision_alias(&guide.guid, alias, revision)
            .await;
        set.accepted();
    }
    let newest = client.all_revisions(&guide.guid).await.remove(0);
    assert_eq!(newest.aliases, ["alias-7", "alias-8", "more"]);
}
