//! Signs tokens with the shared secret or with a private key.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

use super::{KeyError, SigningKey, TokenGrant, TokenSigning, crypto, keys};
use crate::pem::{self, PemError};

/// Names the private key in errors.
const PRIVATE_KEY_FILE: &str = "--private-key-file";

/// Why no token was signed. Its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error("the clock of this machine is before 1970: set it")]
    Clock,
    /// The file of the secret cannot be used.
    #[error(transparent)]
    Secret(#[from] KeyError),
    /// The file of the private key cannot be used.
    #[error(transparent)]
    PrivateKey(#[from] PemError),
    /// The token cannot be encoded: a bug.
    #[error("the token cannot be encoded")]
    Encoding,
}

impl SignError {
    /// Whether a setting must change.
    pub fn is_wrong_setting(&self) -> bool {
        match self {
            Self::Secret(_) | Self::PrivateKey(_) => true,
            Self::Clock | Self::Encoding => false,
        }
    }
}

#[derive(Serialize)]
struct SignedClaims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    account_id: &'a str,
    scope: String,
    iat: u64,
    exp: u64,
}

/// Signs a token that is valid until it expires.
pub fn sign(signing: &TokenSigning, grant: &TokenGrant) -> Result<String, SignError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_err(|_| SignError::Clock)?.as_secs();
    let scopes: Vec<_> = grant.scopes.iter().map(|scope| scope.name()).collect();
    let claims = SignedClaims {
        iss: &signing.issuer,
        aud: &signing.audience,
        sub: grant.subject.as_str(),
        account_id: grant.account.as_str(),
        scope: scopes.join(" "),
        iat: now,
        exp: now.saturating_add(grant.expires.as_secs()),
    };
    crypto::install();
    let with_secret = |secret: &[u8]| {
        let key = EncodingKey::from_secret(secret);
        encode(&Header::new(Algorithm::HS256), &claims, &key).map_err(|_| SignError::Encoding)
    };
    match &signing.key {
        SigningKey::Secret(secret) => with_secret(secret.expose().as_bytes()),
        SigningKey::SecretFile(path) => {
            with_secret(keys::secret_of_file(path)?.expose().as_bytes())
        }
        SigningKey::PrivateKeyFile(path) => sign_with_file(path, &claims),
    }
}

/// Signs by the algorithm of the key's type. Some keys are refused only when they sign.
fn sign_with_file(path: &Path, claims: &SignedClaims<'_>) -> Result<String, SignError> {
    let text = pem::key(path, PRIVATE_KEY_FILE)?;
    let keys = [
        (Algorithm::RS256, EncodingKey::from_rsa_pem(&text)),
        (Algorithm::ES256, EncodingKey::from_ec_pem(&text)),
        (Algorithm::EdDSA, EncodingKey::from_ed_pem(&text)),
    ];
    let mut signed = keys
        .into_iter()
        .filter_map(|(algorithm, key)| encode(&Header::new(algorithm), claims, &key.ok()?).ok());
    signed.next().ok_or_else(|| {
        SignError::PrivateKey(PemError {
            setting: PRIVATE_KEY_FILE.to_owned(),
            path: path.display().to_string(),
            expected: "a private key in PEM",
            reason: "its key is not RSA (2048 bits or more), P-256 or Ed25519 in PKCS #8, as \
                     `openssl pkcs8 -topk8 -nocrypt` writes it"
                .to_owned(),
        })
    })
}
