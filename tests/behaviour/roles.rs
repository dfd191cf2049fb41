//! The roles that an account has named.

use crate::harness::prelude::*;

on_both_databases![
    a_fresh_account_has_no_roles,
    roles_are_listed_in_the_order_of_their_creation,
    names_need_not_be_unique,
    an_id_sent_is_ignored_and_listed,
    a_deleted_role_leaves_the_list,
    an_id_is_never_used_twice,
    a_role_that_is_not_there_is_not_found,
    an_id_must_be_greater_than_0,
    a_name_is_required,
    a_name_has_200_code_points_at_most,
    roles_are_paged,
];

async fn names(world: &World) -> Vec<String> {
    let listed = world.list_roles(0, "").await.accepted();
    listed.roles.into_iter().map(|role| role.name).collect()
}

async fn a_fresh_account_has_no_roles(world: World) {
    let listed = world.list_roles(0, "").await.accepted();
    assert_eq!(listed, ListRolesResponse::default());
}

async fn roles_are_listed_in_the_order_of_their_creation(world: World) {
    for name in ["b", "a", "ä", "B"] {
        world.given_role(name).await;
    }
    assert_eq!(names(&world).await, ["b", "a", "ä", "B"]);
}

async fn names_need_not_be_unique(world: World) {
    let first = world.given_role("same").await;
    let second = world.given_role("same").await;
    assert_ne!(first.id, second.id);
    assert!(first.id > 0 && second.id > 0);
}

async fn an_id_sent_is_ignored_and_listed(world: World) {
    let role = Role {
        id: 987_654,
        name: "numbered".to_owned(),
    };
    let request = CreateRoleRequest { role: Some(role) };
    let response = world.roles().create_role(request).await.accepted();
    let response = response.into_inner();
    assert_eq!(response.ignored_paths, ["role.id"]);
    assert_ne!(response.role.unwrap().id, 987_654);
}

async fn a_deleted_role_leaves_the_list(world: World) {
    let gone = world.given_role("gone").await;
    world.given_role("kept").await;
    let response = world.delete_role(gone.id).await.accepted();
    assert_eq!(response.ignored_paths, [""; 0]);
    assert_eq!(names(&world).await, ["kept"]);
}

async fn an_id_is_never_used_twice(world: World) {
    let gone = world.given_role("gone").await;
    world.delete_role(gone.id).await.accepted();
    let next = world.given_role("next").await;
    assert_ne!(next.id, gone.id);
}

async fn a_role_that_is_not_there_is_not_found(world: World) {
    for id in [1, i64::MAX] {
        world.delete_role(id).await.refused().misses_role(id);
    }
}

async fn an_id_must_be_greater_than_0(world: World) {
    for (id, reason) in [
        (0, "FIELD_REQUIRED"),
        (-1, "FIELD_OUT_OF_RANGE"),
        (i64::MIN, "FIELD_OUT_OF_RANGE"),
    ] {
        let failure = world.delete_role(id).await.refused();
        failure.violates(&[("id", reason)]);
    }
}

async fn a_name_is_required(world: World) {
    for name in ["", " ", "\t\n\u{3000}"] {
        let failure = world.create_role(name).await.refused();
        failure.violates(&[("role.name", "FIELD_REQUIRED")]);
    }
    let request = CreateRoleRequest { role: None };
    let failure = world.roles().create_role(request).await.refused();
    failure.violates(&[("role", "FIELD_REQUIRED")]);
}

async fn a_name_has_200_code_points_at_most(world: World) {
    let name = "🔧".repeat(200);
    assert_eq!(world.given_role(&name).await.name, name);
    let failure = world.create_role(&"x".repeat(201)).await.refused();
    failure.violates(&[("role.name", "FIELD_TOO_LONG")]);
    let failure = world.create_role("x\0").await.refused();
    failure.violates(&[("role.name", "FIELD_INVALID")]);
}

async fn roles_are_paged(world: World) {
    for name in ["a", "b", "c", "d", "e"] {
        world.given_role(name).await;
    }
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = world.list_roles(2, &token).await.accepted();
        assert!(page.roles.len() <= 2);
        found.extend(page.roles.into_iter().map(|role| role.name));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found, ["a", "b", "c", "d", "e"]);
}
