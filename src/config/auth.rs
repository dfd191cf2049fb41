//! How callers are authenticated, and the settings of it.

use std::{fmt, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use http::Uri;

use super::{WrongSetting, secret::SigningSecret, settings::GivenSettings, value};

/// Where the account of a call is taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthMode {
    /// Trusted metadata: for loopback and behind a mesh that sets it.
    #[default]
    Header,
    /// Signed tokens.
    Jwt(TokenRules),
}

/// Which tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// Where the keys come from that tokens are checked with.
    pub keys: KeySource,
    /// What a token's `iss` must be.
    pub issuer: String,
    /// What a token's `aud` must be or contain.
    pub audience: String,
}

/// How tokens are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSigning {
    /// The key.
    pub key: SigningKey,
    /// The token's `iss`.
    pub issuer: String,
    /// The token's `aud`.
    pub audience: String,
}

/// What signs a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigningKey {
    /// A secret, for HS256.
    Secret(SigningSecret),
    /// A file with such a secret, which only its owner may access.
    SecretFile(PathBuf),
    /// A private key in PEM, for RS256, ES256 or EdDSA, depending on its type.
    PrivateKeyFile(PathBuf),
}

/// Where the keys come from that tokens are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A secret, for HS256.
    Secret(SigningSecret),
    /// A file with such a secret, which only its owner may access.
    SecretFile(PathBuf),
    /// A public key in PEM, for RS256, ES256 or EdDSA, depending on its type.
    PublicKeyFile(PathBuf),
    /// A JSON Web Key Set in a file.
    KeySetFile(PathBuf),
    /// A JSON Web Key Set behind `http` or `https`.
    KeySetUrl(Uri),
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Jwt(_) => f.write_str("jwt"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthKind {
    Header,
    Jwt,
}

#[derive(Args)]
pub(super) struct AuthSettings {
    /// header: metadata x-account-id (required), x-subject and x-scopes are trusted; on any address but loopback it must be set explicitly. jwt: authorization: Bearer TOKEN [default: header on a loopback address]
    #[arg(value_name = "header|jwt", hide_possible_values = true)]
    auth: Option<AuthKind>,
    /// Tokens are signed with this secret of 32 bytes at least (HS256); set it in the environment or the file, as other users of the machine see flags
    #[arg(value_name = "SECRET", value_parser = value::signing_secret)]
    jwt_secret: Option<SigningSecret>,
    /// Tokens are signed with the secret in this file of mode 600, of 32 bytes at least (HS256); read again every five seconds
    #[arg(value_name = "PATH", value_parser = value::path)]
    jwt_secret_file: Option<PathBuf>,
    /// Tokens are signed with the private key of this public key in PEM (RS256, ES256 or EdDSA, depending on its type); read again every five seconds
    #[arg(value_name = "PATH", value_parser = value::path)]
    jwt_public_key_file: Option<PathBuf>,
    /// Tokens are signed with a key of this JSON Web Key Set; read again every five seconds
    #[arg(value_name = "PATH", value_parser = value::path)]
    jwt_jwks_file: Option<PathBuf>,
    /// Tokens are signed with a key of the JSON Web Key Set behind this http or https URL; fetched at start, every ten minutes, and for a key id that is not known
    #[arg(value_name = "URL", value_parser = value::http_url)]
    jwt_jwks_url: Option<Uri>,
    /// What a token's iss must be; required with jwt
    #[arg(value_name = "TEXT", value_parser = value::text)]
    jwt_issuer: Option<String>,
    /// What a token's aud must be or contain; required with jwt
    #[arg(value_name = "TEXT", value_parser = value::text)]
    jwt_audience: Option<String>,
}

/// One of these must be set in `jwt` mode.
const KEY_SOURCES: [&str; 5] = [
    "jwt_secret",
    "jwt_secret_file",
    "jwt_public_key_file",
    "jwt_jwks_file",
    "jwt_jwks_url",
];

impl AuthSettings {
    /// The mode of a server that listens on this address. Settings of tokens are refused in a
    /// mode without tokens: to ignore them would trust every caller, although tokens are meant.
    pub fn for_serving(
        self,
        given: &GivenSettings,
        listen: SocketAddr,
    ) -> Result<AuthMode, WrongSetting> {
        if self.auth == Some(AuthKind::Jwt) {
            return self.rules(given).map(AuthMode::Jwt);
        }
        let of_tokens = KEY_SOURCES.into_iter();
        let mut of_tokens = of_tokens.chain(["jwt_issuer", "jwt_audience"]);
        if let Some(name) = of_tokens.find_map(|key| given.named(key)) {
            return Err(given.wrong("auth", format!("jwt, as {name} is set")));
        }
        if self.auth.is_none() && !listen.ip().is_loopback() {
            return Err(given.wrong(
                "listen",
                "a loopback address, unless EXPERTISE_AUTH=jwt asks for tokens, or \
                 EXPERTISE_AUTH=header trusts the account that any caller names",
            ));
        }
        Ok(AuthMode::Header)
    }

    /// How tokens are signed, even if the setting `auth` is not given: with this private key, or
    /// with the secret of the server.
    pub fn for_signing(
        self,
        given: &GivenSettings,
        private_key_file: Option<PathBuf>,
    ) -> Result<TokenSigning, WrongSetting> {
        if self.auth == Some(AuthKind::Header) {
            return Err(given.wrong("auth", "jwt, as there are no tokens with header"));
        }
        let (keys, issuer, audience) = self.parts(given)?;
        let key = match (private_key_file, keys) {
            (Some(path), _) => SigningKey::PrivateKeyFile(path),
            (None, Some(KeySource::Secret(secret))) => SigningKey::Secret(secret),
            (None, Some(KeySource::SecretFile(path))) => SigningKey::SecretFile(path),
            (None, Some(_) | None) => {
                let min = SigningSecret::MIN;
                let expected = format!(
                    "the secret that signs tokens, of {min} bytes at least, or --private-key-file \
                     the file of a key"
                );
                return Err(given.wrong("jwt_secret", expected));
            }
        };
        Ok(TokenSigning {
            key,
            issuer,
            audience,
        })
    }

    fn rules(self, given: &GivenSettings) -> Result<TokenRules, WrongSetting> {
        let (keys, issuer, audience) = self.parts(given)?;
        let keys = keys.ok_or_else(|| {
            let expected = format!(
                "set, or one of EXPERTISE_JWT_SECRET_FILE, EXPERTISE_JWT_PUBLIC_KEY_FILE, \
                 EXPERTISE_JWT_JWKS_FILE and EXPERTISE_JWT_JWKS_URL, as {} is jwt",
                given.name("auth")
            );
            given.wrong("jwt_secret", expected)
        })?;
        Ok(TokenRules {
            keys,
            issuer,
            audience,
        })
    }

    /// Where keys come from, the issuer and the audience.
    fn parts(
        self,
        given: &GivenSettings,
    ) -> Result<(Option<KeySource>, String, String), WrongSetting> {
        let sources = [
            self.jwt_secret.map(KeySource::Secret),
            self.jwt_secret_file.map(KeySource::SecretFile),
            self.jwt_public_key_file.map(KeySource::PublicKeyFile),
            self.jwt_jwks_file.map(KeySource::KeySetFile),
            self.jwt_jwks_url.map(KeySource::KeySetUrl),
        ];
        let named = KEY_SOURCES.into_iter().zip(sources);
        let mut named = named.filter_map(|(key, source)| Some((key, source?)));
        let first = named.next();
        if let (Some((first, _)), Some((other, _))) = (&first, named.next()) {
            let first = given.name(first);
            let expected = format!("unset, as {first} is set: keys come from one place");
            return Err(given.wrong(other, expected));
        }
        let missing = |key| given.wrong(key, "set, as tokens are checked against it");
        Ok((
            first.map(|(_, keys)| keys),
            self.jwt_issuer.ok_or_else(|| missing("jwt_issuer"))?,
            self.jwt_audience.ok_or_else(|| missing("jwt_audience"))?,
        ))
    }
}
