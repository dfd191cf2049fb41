//! How callers are authenticated, and how tokens are signed.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint, builder::NonEmptyStringValueParser};
use http::Uri;

use super::{
    read::{Checked, unset, wrong},
    secret::SigningSecret,
    value,
};
use crate::domain::{
    caller::{Scope, Subject},
    ids::AccountId,
};

/// Where the account of a call is taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthMode {
    /// Trusted metadata: for loopback and behind a mesh that sets it.
    #[default]
    Header,
    /// Signed tokens.
    Jwt(TokenRules),
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Jwt(_) => "jwt",
        })
    }
}

/// Which tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    pub keys: KeySource,
    /// What a token's `iss` must be.
    pub issuer: String,
    /// What a token's `aud` must be or contain.
    pub audience: String,
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

impl KeySource {
    /// The setting that names the keys.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Secret(_) => "EXPERTISE_JWT_SECRET",
            Self::SecretFile(_) => "EXPERTISE_JWT_SECRET_FILE",
            Self::PublicKeyFile(_) => "EXPERTISE_JWT_PUBLIC_KEY_FILE",
            Self::KeySetFile(_) => "EXPERTISE_JWT_JWKS_FILE",
            Self::KeySetUrl(_) => "EXPERTISE_JWT_JWKS_URL",
        }
    }

    /// The file or URL of the keys; empty for a secret.
    pub fn location(&self) -> String {
        match self {
            Self::Secret(_) => String::new(),
            Self::SecretFile(path) | Self::PublicKeyFile(path) | Self::KeySetFile(path) => {
                path.display().to_string()
            }
            Self::KeySetUrl(url) => url.to_string(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthKind {
    Header,
    Jwt,
}

#[derive(Args)]
#[command(next_help_heading = "Accounts and tokens")]
pub(super) struct AuthSettings {
    /// header: metadata x-account-id (required), x-subject and x-scopes are trusted; on any address but loopback it must be set explicitly. jwt: authorization: Bearer TOKEN [default: header on a loopback address]
    #[arg(
        long,
        env = "EXPERTISE_AUTH",
        value_name = "header|jwt",
        hide_possible_values = true
    )]
    auth: Option<AuthKind>,
    /// Tokens are signed with this secret of 32 bytes at least (HS256); set it in the environment or the file, as other users of the machine see flags
    #[arg(
        long,
        env = "EXPERTISE_JWT_SECRET",
        value_name = "SECRET",
        value_parser = value::signing_secret
    )]
    jwt_secret: Option<SigningSecret>,
    /// Tokens are signed with the secret in this file of mode 600, of 32 bytes at least (HS256); the end of its line does not count; a group may read a file of root, as systemd and Kubernetes give them to a service; read again every five seconds
    #[arg(long, env = "EXPERTISE_JWT_SECRET_FILE", value_name = "PATH")]
    jwt_secret_file: Option<PathBuf>,
    /// Tokens are signed with the private key of this public key in PEM (RS256, ES256 or EdDSA, depending on its type); read again every five seconds
    #[arg(long, env = "EXPERTISE_JWT_PUBLIC_KEY_FILE", value_name = "PATH")]
    jwt_public_key_file: Option<PathBuf>,
    /// Tokens are signed with a key of this JSON Web Key Set; read again every five seconds
    #[arg(long, env = "EXPERTISE_JWT_JWKS_FILE", value_name = "PATH")]
    jwt_jwks_file: Option<PathBuf>,
    /// Tokens are signed with a key of the JSON Web Key Set behind this http or https URL; fetched at start, every ten minutes, and for a key id that is not known, but then at most every ten seconds
    #[arg(
        long,
        env = "EXPERTISE_JWT_JWKS_URL",
        value_name = "URL",
        value_parser = value::http_url
    )]
    jwt_jwks_url: Option<Uri>,
    /// What a token's iss must be; required with jwt
    #[arg(
        long,
        env = "EXPERTISE_JWT_ISSUER",
        value_name = "TEXT",
        value_parser = NonEmptyStringValueParser::new()
    )]
    jwt_issuer: Option<String>,
    /// What a token's aud must be or contain; required with jwt
    #[arg(
        long,
        env = "EXPERTISE_JWT_AUDIENCE",
        value_name = "TEXT",
        value_parser = NonEmptyStringValueParser::new()
    )]
    jwt_audience: Option<String>,
}

impl AuthSettings {
    /// The mode of a server that listens on this address. Settings of tokens are refused in a
    /// mode without tokens: to ignore them would trust every caller, although tokens are meant.
    pub fn check(self, listen: SocketAddr) -> Result<AuthMode, Vec<String>> {
        if self.auth == Some(AuthKind::Jwt) {
            let mut faults = Vec::new();
            let TokenSettings {
                keys,
                issuer,
                audience,
            } = self.token_settings(&mut faults);
            if keys.is_none() {
                let expected = "set, or one of EXPERTISE_JWT_SECRET_FILE, \
                    EXPERTISE_JWT_PUBLIC_KEY_FILE, EXPERTISE_JWT_JWKS_FILE and \
                    EXPERTISE_JWT_JWKS_URL, as EXPERTISE_AUTH is jwt";
                faults.push(unset("EXPERTISE_JWT_SECRET", expected));
            }
            return match (keys, issuer, audience) {
                (Some(keys), Some(issuer), Some(audience)) if faults.is_empty() => {
                    Ok(AuthMode::Jwt(TokenRules {
                        keys,
                        issuer,
                        audience,
                    }))
                }
                _ => Err(faults),
            };
        }
        let is_explicit = self.auth.is_some();
        let names = [
            self.jwt_issuer.as_ref().map(|_| "EXPERTISE_JWT_ISSUER"),
            self.jwt_audience.as_ref().map(|_| "EXPERTISE_JWT_AUDIENCE"),
        ];
        let sources = self.key_sources().into_iter().flatten();
        let mut given = sources
            .map(|keys| keys.setting())
            .chain(names.into_iter().flatten());
        if let Some(given) = given.next() {
            let expected = format!("jwt, as {given} is set");
            return Err(vec![match is_explicit {
                true => wrong("EXPERTISE_AUTH", "header", expected),
                false => unset("EXPERTISE_AUTH", expected),
            }]);
        }
        if !is_explicit && !listen.ip().is_loopback() {
            return Err(vec![wrong(
                "EXPERTISE_LISTEN",
                listen,
                "a loopback address, unless EXPERTISE_AUTH=jwt asks for tokens, or \
                 EXPERTISE_AUTH=header trusts the account that any caller names",
            )]);
        }
        Ok(AuthMode::Header)
    }

    fn key_sources(self) -> [Option<KeySource>; 5] {
        [
            self.jwt_secret.map(KeySource::Secret),
            self.jwt_secret_file.map(KeySource::SecretFile),
            self.jwt_public_key_file.map(KeySource::PublicKeyFile),
            self.jwt_jwks_file.map(KeySource::KeySetFile),
            self.jwt_jwks_url.map(KeySource::KeySetUrl),
        ]
    }

    /// Adds a fault for each setting that is missing, and for a second source of keys.
    fn token_settings(mut self, faults: &mut Vec<String>) -> TokenSettings {
        let issuer = self.jwt_issuer.take();
        let audience = self.jwt_audience.take();
        for (setting, is_set) in [
            ("EXPERTISE_JWT_ISSUER", issuer.is_some()),
            ("EXPERTISE_JWT_AUDIENCE", audience.is_some()),
        ] {
            if !is_set {
                faults.push(unset(setting, "set, as tokens are checked against it"));
            }
        }
        let mut sources = self.key_sources().into_iter().flatten();
        let keys = sources.next();
        if let (Some(keys), Some(other)) = (&keys, sources.next()) {
            let expected = format!(
                "unset, as {} is set: keys come from one place",
                keys.setting()
            );
            faults.push(wrong(other.setting(), other.location(), expected));
        }
        TokenSettings {
            keys,
            issuer,
            audience,
        }
    }
}

/// The settings of tokens, whether they are checked or signed.
struct TokenSettings {
    keys: Option<KeySource>,
    issuer: Option<String>,
    audience: Option<String>,
}

/// How tokens are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSigning {
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

#[derive(Args)]
pub struct SigningSettings {
    /// Sign with this private key in PEM (RS256, ES256 or EdDSA, depending on its type), which EXPERTISE_JWT_PUBLIC_KEY_FILE or a key set of the server verifies
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    private_key_file: Option<PathBuf>,
    #[command(flatten)]
    auth: AuthSettings,
}

impl Checked for TokenSigning {
    type Settings = SigningSettings;

    fn check(settings: SigningSettings) -> Result<Self, Vec<String>> {
        settings.check()
    }
}

impl SigningSettings {
    /// How tokens are signed, even if the setting `auth` is not given: with the private key, or
    /// with the secret of the server.
    fn check(self) -> Result<TokenSigning, Vec<String>> {
        if self.auth.auth == Some(AuthKind::Header) {
            let expected = "jwt, as there are no tokens with header";
            return Err(vec![wrong("EXPERTISE_AUTH", "header", expected)]);
        }
        let mut faults = Vec::new();
        let settings = self.auth.token_settings(&mut faults);
        let key = match (self.private_key_file, settings.keys) {
            (Some(path), _) => Some(SigningKey::PrivateKeyFile(path)),
            (None, Some(KeySource::Secret(secret))) => Some(SigningKey::Secret(secret)),
            (None, Some(KeySource::SecretFile(path))) => Some(SigningKey::SecretFile(path)),
            (None, Some(_) | None) => None,
        };
        if key.is_none() {
            let expected = format!(
                "a secret of at least {} bytes, or use --private-key-file FILE",
                SigningSecret::MIN_BYTES
            );
            faults.push(unset("EXPERTISE_JWT_SECRET", expected));
        }
        match (key, settings.issuer, settings.audience) {
            (Some(key), Some(issuer), Some(audience)) if faults.is_empty() => Ok(TokenSigning {
                key,
                issuer,
                audience,
            }),
            _ => Err(faults),
        }
    }
}

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TokenGrant {
    /// The account that calls with the token work on
    #[arg(short, long, value_name = "ID", value_parser = value::account)]
    pub account: AccountId,
    /// What the token allows, space-separated, of read write translate admin index
    // The full path keeps clap from reading a list of repeated flags.
    #[arg(long = "scope", value_name = "SCOPES", value_parser = value::scopes)]
    pub scopes: ::std::vec::Vec<Scope>,
    /// How long the token is valid, such as 1h
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1h",
        value_parser = value::lifetime
    )]
    pub expires: Duration,
    /// Who calls, for the log
    #[arg(
        long,
        value_name = "NAME",
        default_value = "expertise-token",
        value_parser = value::subject
    )]
    pub subject: Subject,
}
