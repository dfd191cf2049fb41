//! How callers are authenticated, and how tokens are signed.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use http::Uri;

use super::{
    Secret,
    read::{Checked, unset, wrong},
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
    Secret(Secret),
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
    #[arg(env)]
    auth: Option<AuthKind>,
    /// Tokens are signed with this secret of 32 bytes at least (HS256); set it in the environment or the file, as other users of the machine see flags
    #[arg(env, value_name = "SECRET", value_parser = value::signing_secret)]
    jwt_secret: Option<Secret>,
    /// Tokens are signed with the secret in this file of mode 600, of 32 bytes at least (HS256); the end of its line does not count; a group may read a file of root, as systemd and Kubernetes give them to a service; read again every five seconds
    #[arg(env)]
    jwt_secret_file: Option<PathBuf>,
    /// Tokens are signed with the private key of this public key in PEM (RS256, ES256 or EdDSA, depending on its type); read again every five seconds
    #[arg(env)]
    jwt_public_key_file: Option<PathBuf>,
    /// Tokens are signed with a key of this JSON Web Key Set; read again every five seconds
    #[arg(env)]
    jwt_jwks_file: Option<PathBuf>,
    /// Tokens are signed with a key of the JSON Web Key Set behind this http or https URL; fetched at start, every ten minutes, and for a key id that is not known, but then at most every ten seconds
    #[arg(env, value_parser = value::http_url)]
    jwt_jwks_url: Option<Uri>,
    /// What a token's iss must be; required with jwt
    #[arg(env, value_name = "TEXT", value_parser = value::text)]
    jwt_issuer: Option<String>,
    /// What a token's aud must be or contain; required with jwt
    #[arg(env, value_name = "TEXT", value_parser = value::text)]
    jwt_audience: Option<String>,
}

impl AuthSettings {
    /// The mode of a server that listens on this address. Settings of tokens are refused in a
    /// mode without tokens: to ignore them would trust every caller, although tokens are meant.
    pub fn check(self, listen: SocketAddr) -> Result<AuthMode, Vec<String>> {
        let (auth, tokens) = (self.auth, self.tokens());
        let fault = match (auth, tokens.given) {
            (Some(AuthKind::Jwt), _) => return tokens.rules().map(AuthMode::Jwt),
            (Some(AuthKind::Header), Some(given)) => wrong(
                "EXPERTISE_AUTH",
                "header",
                format!("jwt, as {given} is set"),
            ),
            (None, Some(given)) => unset("EXPERTISE_AUTH", format!("jwt, as {given} is set")),
            (None, None) if !listen.ip().is_loopback() => wrong(
                "EXPERTISE_LISTEN",
                listen,
                "a loopback address, unless EXPERTISE_AUTH=jwt asks for tokens, or \
                 EXPERTISE_AUTH=header trusts the account that any caller names",
            ),
            (Some(AuthKind::Header) | None, None) => return Ok(AuthMode::Header),
        };
        Err(vec![fault])
    }

    fn tokens(self) -> Tokens {
        let sources = [
            self.jwt_secret.map(KeySource::Secret),
            self.jwt_secret_file.map(KeySource::SecretFile),
            self.jwt_public_key_file.map(KeySource::PublicKeyFile),
            self.jwt_jwks_file.map(KeySource::KeySetFile),
            self.jwt_jwks_url.map(KeySource::KeySetUrl),
        ];
        let mut sources = sources.into_iter().flatten();
        let (keys, other) = (sources.next(), sources.next());
        let issuer = self.jwt_issuer.ok_or("EXPERTISE_JWT_ISSUER");
        let audience = self.jwt_audience.ok_or("EXPERTISE_JWT_AUDIENCE");
        let missing = [issuer.as_ref().err(), audience.as_ref().err()];
        let missing = missing.into_iter().flatten();
        let mut faults: Vec<String> = missing
            .map(|setting| unset(setting, "set, as tokens are checked against it"))
            .collect();
        if let (Some(keys), Some(other)) = (&keys, other) {
            let setting = keys.setting();
            let expected = format!("unset, as {setting} is set: keys come from one place");
            faults.push(wrong(other.setting(), other.location(), expected));
        }
        Tokens {
            given: (keys.as_ref().map(KeySource::setting))
                .or(issuer.as_ref().ok().map(|_| "EXPERTISE_JWT_ISSUER"))
                .or(audience.as_ref().ok().map(|_| "EXPERTISE_JWT_AUDIENCE")),
            keys,
            issuer: issuer.unwrap_or_default(),
            audience: audience.unwrap_or_default(),
            faults,
        }
    }
}

/// The settings of tokens, whether they are checked or signed.
struct Tokens {
    keys: Option<KeySource>,
    issuer: String,
    audience: String,
    /// A setting of tokens that is given.
    given: Option<&'static str>,
    /// A line for each setting that is missing, and for a second source of keys.
    faults: Vec<String>,
}

impl Tokens {
    fn rules(mut self) -> Result<TokenRules, Vec<String>> {
        match self.keys {
            Some(keys) if self.faults.is_empty() => Ok(TokenRules {
                keys,
                issuer: self.issuer,
                audience: self.audience,
            }),
            Some(_) => Err(self.faults),
            None => {
                let expected = "set, or one of EXPERTISE_JWT_SECRET_FILE, \
                    EXPERTISE_JWT_PUBLIC_KEY_FILE, EXPERTISE_JWT_JWKS_FILE and \
                    EXPERTISE_JWT_JWKS_URL, as EXPERTISE_AUTH is jwt";
                self.faults.push(unset("EXPERTISE_JWT_SECRET", expected));
                Err(self.faults)
            }
        }
    }
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
    Secret(Secret),
    /// A file with such a secret, which only its owner may access.
    SecretFile(PathBuf),
    /// A private key in PEM, for RS256, ES256 or EdDSA, depending on its type.
    PrivateKeyFile(PathBuf),
}

#[derive(Args)]
pub struct SigningSettings {
    /// Sign with this private key in PEM (RS256, ES256 or EdDSA, depending on its type), which EXPERTISE_JWT_PUBLIC_KEY_FILE or a key set of the server verifies
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,
    #[command(flatten)]
    auth: AuthSettings,
}

impl Checked for TokenSigning {
    type Settings = SigningSettings;

    /// How tokens are signed, even if the setting `auth` is not given: with the private key, or
    /// with the secret of the server.
    fn check(settings: SigningSettings) -> Result<Self, Vec<String>> {
        const PRIVATE_KEY_FILE: &str = "--private-key-file";
        if settings.auth.auth == Some(AuthKind::Header) {
            let expected = "jwt, as there are no tokens with header";
            return Err(vec![wrong("EXPERTISE_AUTH", "header", expected)]);
        }
        let mut tokens = settings.auth.tokens();
        let secret = match tokens.keys {
            Some(KeySource::Secret(secret)) => Some(SigningKey::Secret(secret)),
            Some(KeySource::SecretFile(path)) => Some(SigningKey::SecretFile(path)),
            Some(_) | None => None,
        };
        let key = match (settings.private_key_file, secret) {
            (Some(path), None) => Ok(SigningKey::PrivateKeyFile(path)),
            (None, Some(secret)) => Ok(secret),
            (Some(path), Some(_)) => {
                let setting = tokens.given.unwrap_or_default();
                let expected = format!("left out, as {setting} is set: one key signs a token");
                Err(wrong(PRIVATE_KEY_FILE, path.display(), expected))
            }
            (None, None) => Err(unset(
                "EXPERTISE_JWT_SECRET",
                format!("a secret of at least 32 bytes, or use {PRIVATE_KEY_FILE} FILE"),
            )),
        };
        match key {
            Ok(key) if tokens.faults.is_empty() => Ok(Self {
                key,
                issuer: tokens.issuer,
                audience: tokens.audience,
            }),
            key => {
                tokens.faults.extend(key.err());
                Err(tokens.faults)
            }
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
        value_parser = value::duration("1s", "366days")
    )]
    pub expires: Duration,
    /// Who calls, for the log
    #[arg(long, value_name = "NAME", default_value = "expertise-token", value_parser = value::subject)]
    pub subject: Subject,
}
