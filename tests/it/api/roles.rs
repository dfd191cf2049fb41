//! RoleService.

use crate::prelude::*;

async fn names(client: &Client) -> Vec<String> {
    let listed = client.list_roles(0, "").await.accepted();
    listed.roles.into_iter().map(|role| role.name).collect()
}

#[apply(on_both_databases)]
async fn roles_are_listed_in_the_order_of_their_creation(client: Client) {
    for name in ["b", "a", "ä", "B"] {
        client.given_role(name).await;
    }
    assert_eq!(names(&client).await, ["b", "a", "ä", "B"]);
}

#[apply(on_both_databases)]
async fn names_need_not_be_unique(client: Client) {
    let first = client.given_role("same").await;
    let second = client.given_role("same").await;
    assert_ne!(first.id, second.id);
    assert!(first.id > 0 && second.id > 0);
}

#[apply(on_both_databases)]
async fn an_id_sent_is_ignored_and_listed(client: Client) {
    let role = Role {
        id: 987_654,
        name: "numbered".to_owned(),
    };
    let request = CreateRoleRequest { role: Some(role) };
    let response = client.call(request).await.accepted();
    assert_eq!(response.ignored_paths, ["role.id"]);
    assert_ne!(response.role.unwrap().id, 987_654);
    let response = client.create_role("named alone").await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
}

#[apply(on_both_databases)]
async fn a_deleted_role_leaves_the_list(client: Client) {
    let gone = client.given_role("gone").await;
    client.given_role("kept").await;
    let other = client.given_role("gone").await;
    let response = client
        .call(DeleteRoleRequest { id: gone.id })
        .await
        .accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    let again = client
        .call(DeleteRoleRequest { id: gone.id })
        .await
        .refused();
    again.is_role_not_found(gone.id);
    let listed = client.list_roles(0, "").await.accepted();
    assert_eq!(listed.roles[1..], [other]);
    assert_eq!(names(&client).await, ["kept", "gone"]);
}

#[apply(on_both_databases)]
async fn an_id_is_never_used_twice(client: Client) {
    let gone = client.given_role("gone").await;
    client
        .call(DeleteRoleRequest { id: gone.id })
        .await
        .accepted();
    let next = client.given_role("next").await;
    assert_ne!(next.id, gone.id);
}
