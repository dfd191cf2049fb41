//! Valid tokens, of each algorithm and from each source of keys.

use super::prelude::*;

#[tokio::test]
async fn a_public_key_accepts_the_algorithm_of_its_type() {
    let directory = tempfile::tempdir().expect("a directory");
    for signer in [Signer::rsa(), Signer::es256(), Signer::ed25519()] {
        let path = directory.path().join(signer.algorithm());
        std::fs::write(&path, signer.public_pem()).expect("a file");
        let server = TestServer::start(jwt("EXPERTISE_JWT_PUBLIC_KEY_FILE", path.display())).await;
        let client = TokenClient::of(&server);
        for token in [signer.token(&claims()), signer.token_by("any", &claims())] {
            let accepted = client.read(&token).await;
            accepted.unwrap_or_else(|refused| panic!("{}: {refused}", signer.algorithm()));
        }
    }
}

#[tokio::test]
async fn every_supported_key_of_a_set_is_accepted() {
    let signers = [Signer::rsa(), Signer::es256(), Signer::ed25519()];
    let mut keys: Vec<_> = signers.iter().map(|s| s.jwk(s.algorithm())).collect();
    keys.push(json!({"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AA", "y": "AA"}));
    keys.push(json!({"kty": "lattice", "kid": 7}));
    keys.push(json!("no key"));
    // Some issuers write numbers with leading zeros. Four characters are three bytes.
    let mut padded = signers[0].jwk("padded");
    for number in ["n", "e"] {
        let digits = padded[number].as_str().expect("a number");
        padded[number] = json!(format!("AAAA{digits}"));
    }
    keys.push(padded);
    let set = key_set(&keys);

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("keys.json");
    std::fs::write(&path, &set).expect("a file");
    let issuer = KeyServer::start(&set).await;
    for settings in [
        jwt("EXPERTISE_JWT_JWKS_FILE", path.display()),
        jwt("EXPERTISE_JWT_JWKS_URL", issuer.url()),
    ] {
        let server = TestServer::start(settings).await;
        let client = TokenClient::of(&server);
        for signer in &signers {
            let token = signer.token_by(signer.algorithm(), &claims());
            let accepted = client.read(&token).await;
            accepted.unwrap_or_else(|refused| panic!("{}: {refused}", signer.algorithm()));
        }
        let token = signers[0].token_by("padded", &claims());
        client.read(&token).await.expect("it is accepted");
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_token_without_key_id_is_accepted_by_a_set_of_one_key_alone() {
    let (first, second) = (Signer::es256(), Signer::ed25519());
    let issuer = KeyServer::start(&key_set(&[first.jwk("first")])).await;
    let one = start_with_keys_of(&issuer).await;
    let token = first.token(&claims());
    TokenClient::of(&one)
        .read(&token)
        .await
        .expect("it is accepted");

    issuer.set_body(&key_set(&[first.jwk("first"), second.jwk("second")]));
    let two = start_with_keys_of(&issuer).await;
    let answer = error_answer(TokenClient::of(&two).read(&token).await);
    assert_eq!(answer.reason, "CREDENTIALS_INVALID");
}

#[tokio::test]
async fn optional_variants_of_http_and_jwt_are_accepted() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    let signer = Signer::hs256();
    let plain = signer.token(&claims());
    for scheme in ["Bearer", "bearer", "BEARER", "bEARER"] {
        let value = format!("{scheme} {plain}");
        let accepted = client.list(&[("authorization", &value)]).await;
        accepted.unwrap_or_else(|refused| panic!("{scheme}: {refused}"));
    }
    for header in [
        json!({"alg": "HS256"}),
        json!({"alg": "HS256", "typ": "jwt"}),
        json!({"alg": "HS256", "typ": "AT+JWT", "kid": "any", "cty": "any"}),
    ] {
        let token = sign(&signer, &header, &claims());
        let accepted = client.read(&token).await;
        accepted.unwrap_or_else(|refused| panic!("{header}: {refused}"));
    }
    for (claim, value) in [
        ("aud", json!(["another", AUDIENCE])),
        ("exp", json!(now() - 20)),
        ("exp", json!((now() + 60) as f64 + 0.5)),
        ("nbf", json!(now() + 20)),
        ("iat", json!("whenever")),
        ("scope", json!("openid read profile")),
        ("account_id", json!("a".repeat(64))),
        ("sub", json!("Ännchen")),
        ("sub", json!("ä".repeat(128))),
    ] {
        let mut claims = claims();
        claims[claim] = value.clone();
        let accepted = client.read(&signer.token(&claims)).await;
        accepted.unwrap_or_else(|refused| panic!("{claim} {value}: {refused}"));
    }
}

#[tokio::test]
async fn the_account_comes_from_the_token_not_from_metadata() {
    let server = TestServer::start(hs256()).await;
    let token = Signer::hs256().token(&claims());
    let account = TokenClient::of(&server)
        .write(&token)
        .await
        .expect("a task");
    assert_eq!(account, "42");

    let bearer = format!("Bearer {token}");
    let mut read_only = claims();
    read_only["scope"] = json!("");
    let powerless = format!("Bearer {}", Signer::hs256().token(&read_only));
    let client = TokenClient::of(&server);
    let others = [("x-account-id", "a b"), ("x-scopes", ""), ("x-subject", "")];
    let mut metadata = vec![("authorization", bearer.as_str())];
    metadata.extend(others);
    client.list(&metadata).await.expect("it is accepted");

    let all = [("authorization", powerless.as_str()), ("x-scopes", "read")];
    let answer = error_answer(client.list(&all).await);
    assert_eq!(answer.reason, "SCOPE_MISSING");
}

/// RFC 6749, section 3.3: spaces, and nothing else, are between the names of scopes.
#[tokio::test]
async fn scopes_have_spaces_between_them() {
    let server = TestServer::start(hs256()).await;
    let client = TokenClient::of(&server);
    for separator in ["\t", "\n", "\u{a0}", ","] {
        let mut claims = claims();
        claims["scope"] = json!(format!("openid{separator}read"));
        let refused = client.read(&Signer::hs256().token(&claims)).await;
        assert_eq!(
            error_answer(refused).reason,
            "SCOPE_MISSING",
            "{separator:?}"
        );
    }
}
