//! Signs tokens with the shared secret or with a private key.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::{KeyError, SigningKey, TokenConfig, TokenGrant, crypto, keys};
use crate::{
    config::Secret,
    pem::{self, PemError},
};

/// Names the private key in errors.
const PRIVATE_KEY_FILE: &str = "--private-key-file";

/// Signs a token that is valid until it expires.
pub fn sign(tokens: &TokenConfig<SigningKey>, grant: &TokenGrant) -> Result<String, KeyError> {
    crypto::install();
    // A clock before 1970 counts as 1970, as when a token is checked.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    let scopes: Vec<_> = grant.scopes.iter().map(|scope| scope.name()).collect();
    let claims = json!({
        "iss": tokens.issuer,
        "aud": tokens.audience,
        "sub": grant.subject.as_str(),
        "account_id": grant.account.as_str(),
        "scope": scopes.join(" "),
        "iat": now,
        "exp": now.saturating_add(grant.expires.as_secs()),
    });
    let with_secret = |secret: &Secret| {
        let key = EncodingKey::from_secret(secret.expose().as_bytes());
        encode(&Header::new(Algorithm::HS256), &claims, &key).map_err(|_| KeyError::encoding())
    };
    match &tokens.key {
        SigningKey::Secret(secret) => with_secret(secret),
        SigningKey::SecretFile(path) => with_secret(&keys::read_secret(path)?),
        SigningKey::PrivateKeyFile(path) => Ok(sign_with_file(path, &claims)?),
    }
}

/// Signs by the algorithm of the key's type. Some keys are refused only when they sign.
fn sign_with_file(path: &Path, claims: &Value) -> Result<String, PemError> {
    let text = pem::key(path, PRIVATE_KEY_FILE)?;
    let keys = [
        (Algorithm::RS256, EncodingKey::from_rsa_pem(&text)),
        (Algorithm::ES256, EncodingKey::from_ec_pem(&text)),
        (Algorithm::EdDSA, EncodingKey::from_ed_pem(&text)),
    ];
    keys.into_iter()
        .find_map(|(algorithm, key)| encode(&Header::new(algorithm), claims, &key.ok()?).ok())
        .ok_or_else(|| PemError {
            setting: PRIVATE_KEY_FILE.to_owned(),
            path: path.display().to_string(),
            expected: "a private key in PEM",
            reason: "its key is not RSA (2048 bits or more), P-256 or Ed25519 in PKCS #8, as \
                     `openssl pkcs8 -topk8 -nocrypt` writes it"
                .to_owned(),
        })
}
