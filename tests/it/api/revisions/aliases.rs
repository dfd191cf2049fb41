//! Aliases of revisions.

use super::{given_guide, numbers, retitle};
use crate::prelude::*;

#[apply(on_both_databases)]
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
    client.alias(&guide.guid, "other", 1).await;
    // Set again to what it names, also by another alias or itself, it stays.
    for name in ["1", "1", "other", "live"] {
        let set = alias(name).await.expect("a revision");
        assert_eq!(set.revision, 1);
        assert_eq!(set.aliases, ["live", "other"]);
        assert_eq!(live().await, 1);
    }
    let moved = alias("2").await.expect("a revision");
    assert_eq!(moved.revision, 2);
    assert_eq!(moved.aliases, ["live"]);
    assert_eq!(live().await, 2);
    // Removing an alias keeps the other aliases of the same revision and of others.
    let same = client
        .set_revision_alias(&guide.guid, "same", "live")
        .await
        .accepted();
    assert_eq!(same.revision.expect("a revision").aliases, ["live", "same"]);
    assert_eq!(alias("").await, None);
    assert_eq!(alias("").await, None);
    let revisions = client.all_revisions(&guide.guid).await;
    let aliases: Vec<&[String]> = revisions.iter().map(|it| &*it.aliases).collect();
    assert_eq!(aliases, [["same"], ["other"]]);
    let failure = client.get_revision(&guide.guid, "live").await.refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
}

#[apply(on_both_databases)]
async fn a_revision_with_an_alias_cannot_be_deleted(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    retitle(&client, &guide.guid, "Changed").await;
    client.kept_revision(&guide.guid).await;
    for alias in ["live", "best"] {
        client.alias(&guide.guid, alias, 1).await;
    }
    let delete = async |revision: &str| client.delete_revision(&guide.guid, revision).await;
    // Until the last one is removed, by which it may be named, too.
    for (revision, alias) in [("1", "live"), ("best", "best")] {
        let failure = delete(revision).await.refused();
        failure.is(Code::FailedPrecondition, "REVISION_IN_USE");
        client.alias(&guide.guid, alias, "").await;
    }
    let failure = delete("best").await.refused();
    failure.is(Code::NotFound, "REVISION_NOT_FOUND");
    delete("1").await.accepted();
    assert_eq!(numbers(&client, &guide.guid).await, [2]);
}

#[apply(on_both_databases)]
async fn a_task_has_at_most_twenty_aliases(client: Client) {
    let guide = given_guide(&client).await;
    client.kept_revision(&guide.guid).await;
    for number in 0..20 {
        let alias = format!("alias-{number}");
        client.alias(&guide.guid, &alias, 1).await;
    }
    let failure = client
        .set_revision_alias(&guide.guid, "more", 1)
        .await
        .refused();
    failure.violates(&[("alias", "TOO_MANY_ELEMENTS")]);
    let other = given_guide(&client).await;
    client.kept_revision(&other.guid).await;
    client.alias(&other.guid, "more", 1).await;
    retitle(&client, &guide.guid, "Changed").await;
    let keep = |alias: &str| revision_of(&guide.guid).with(|it| it.alias = alias.to_owned());
    let failure = client.call(keep("more")).await.refused();
    failure.violates(&[("alias", "TOO_MANY_ELEMENTS")]);
    client.call(keep("alias-8")).await.accepted();
    // Existing aliases can move, and removing one makes room.
    for (alias, revision) in [("alias-7", "2"), ("alias-9", ""), ("more", "2")] {
        client.alias(&guide.guid, alias, revision).await;
    }
    let newest = client.all_revisions(&guide.guid).await.remove(0);
    assert_eq!(newest.aliases, ["alias-7", "alias-8", "more"]);
}
