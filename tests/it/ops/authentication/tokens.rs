//! Keys, and tokens with any header and claims.

use std::{
    fmt::Display,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair, RsaPublicKeyComponents,
    },
};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::{Value, json};

use crate::kit::server::Settings;

pub const ISSUER: &str = "https://issuer.test";
pub const AUDIENCE: &str = "expertise";
pub const SECRET: &str = "a secret of these tests, 32 bytes or more";

/// A key that is only for tests.
const RSA_PRIVATE: &str = include_str!("keys/rsa_private.pem");
const RSA_PUBLIC: &str = include_str!("keys/rsa_public.pem");

/// A key that signs tokens.
pub struct Signer {
    pair: Pair,
    public_pem: String,
}

enum Pair {
    Secret(hmac::Key),
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    /// The secret of these tests.
    pub fn hs256() -> Self {
        Self::secret(SECRET.as_bytes())
    }

    pub fn secret(secret: &[u8]) -> Self {
        Self {
            pair: Pair::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret)),
            public_pem: String::new(),
        }
    }

    /// Always the same key, because ring cannot generate RSA keys.
    pub fn rsa() -> Self {
        let der = PrivatePkcs8KeyDer::from_pem_slice(RSA_PRIVATE.as_bytes()).expect("a key");
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("a key");
        Self {
            pair: Pair::Rsa(Box::new(pair)),
            public_pem: RSA_PUBLIC.to_owned(),
        }
    }

    pub fn es256() -> Self {
        let made = rcgen::KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &made.serialize_der(),
            &SystemRandom::new(),
        );
        Self {
            pair: Pair::Ec(pair.expect("a key")),
            public_pem: made.public_key_pem(),
        }
    }

    pub fn ed25519() -> Self {
        let made = rcgen::KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&made.serialize_der());
        Self {
            pair: Pair::Ed(pair.expect("a key")),
            public_pem: made.public_key_pem(),
        }
    }

    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Secret(_) => "HS256",
            Pair::Rsa(_) => "RS256",
            Pair::Ec(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
        }
    }

    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// The public key as an entry of a key set.
    pub fn jwk(&self, id: &str) -> Value {
        match &self.pair {
            Pair::Secret(_) => panic!("a secret is no public key"),
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "kid": id, "use": "sig", "alg": "RS256",
                    "n": base64(public.n), "e": base64(public.e)})
            }
            Pair::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "kid": id, "crv": "P-256", "x": base64(x), "y": base64(y)})
            }
            Pair::Ed(pair) => {
                let x = base64(pair.public_key());
                json!({"kty": "OKP", "kid": id, "crv": "Ed25519", "x": x})
            }
        }
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Secret(key) => hmac::sign(key, message).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .expect("a signature");
                signature
            }
            Pair::Ec(pair) => {
                let signature = pair.sign(&random, message).expect("a signature");
                signature.as_ref().to_vec()
            }
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// A token of these claims with an ordinary header.
    pub fn token(&self, claims: &Value) -> String {
        sign(
            self,
            &json!({"alg": self.algorithm(), "typ": "JWT"}),
            claims,
        )
    }

    /// A token of these claims that names its key.
    pub fn token_by(&self, id: &str, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "typ": "JWT", "kid": id});
        sign(self, &header, claims)
    }
}

/// A token with this header and these claims, signed by this key regardless of the algorithm in the
/// header.
pub fn sign(signer: &Signer, header: &Value, claims: &Value) -> String {
    let message = format!(
        "{}.{}",
        base64(header.to_string()),
        base64(claims.to_string())
    );
    let signature = base64(signer.signature(message.as_bytes()));
    format!("{message}.{signature}")
}

/// Claims that are accepted.
pub fn claims() -> Value {
    json!({
        "account_id": "42", "sub": "ann", "iss": ISSUER, "aud": AUDIENCE,
        "exp": now() + 3600, "scope": "read write",
    })
}

/// A key set of these keys.
pub fn key_set(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time after 1970").as_secs()
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Settings {
    /// Accepts tokens of the tests' issuer, with the keys that a variable such as
    /// `EXPERTISE_JWT_JWKS_FILE` names.
    pub fn jwt(self, keys: &str, value: impl Display) -> Self {
        self.set("EXPERTISE_AUTH", "jwt")
            .set("EXPERTISE_JWT_ISSUER", ISSUER)
            .set("EXPERTISE_JWT_AUDIENCE", AUDIENCE)
            .set(keys, value)
    }
}
