//! Settings for authentication and for signing tokens.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use http::Uri;

use super::{
    Secret, database_url,
    read::{ConfigError, unset, wrong},
    settings_file::SettingsFileArg,
    value,
};
use crate::domain::{
    caller::{Scope, Subject},
    ids::AccountId,
};

/// Where the account of a call comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthMode {
    /// Trusted metadata, for loopback addresses and behind a proxy that sets it.
    #[default]
    Header,
    /// Signed tokens.
    Jwt(TokenConfig),
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Jwt(_) => "jwt",
        })
    }
}

/// How tokens are verified or signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    pub key: KeySource,
    /// The `iss` of tokens.
    pub issuer: String,
    /// The `aud` of tokens, or one of them.
    pub audience: String,
}

/// Where the keys come from that verify tokens. A secret, or a private key, signs them.
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
    /// A JSON Web Key Set at an `http` or `https` URL.
    KeySetUrl(Uri),
    /// A private key in PEM, for RS256, ES256 or EdDSA, depending on its type. It only signs.
    PrivateKeyFile(PathBuf),
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
            Self::PrivateKeyFile(_) => "--private-key-file",
        }
    }

    /// The file of the keys, or their URL with masked parameters. Empty for a secret.
    pub fn location(&self) -> String {
        match self {
            Self::Secret(_) => String::new(),
            Self::SecretFile(path)
            | Self::PublicKeyFile(path)
            | Self::KeySetFile(path)
            | Self::PrivateKeyFile(path) => path.display().to_string(),
            Self::KeySetUrl(url) => database_url::mask(&url.to_string()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthKind {
    Header,
    Jwt,
}

#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Accounts and tokens")]
pub(super) struct AuthSettings {
    /// header trusts the metadata x-account-id (required), x-subject and x-scopes, and must be set explicitly unless the server listens on a loopback address; jwt requires authorization: Bearer TOKEN [default: header on a loopback address]
    #[arg(env)]
    auth: Option<AuthKind>,
    /// The secret that signs tokens (HS256), at least 32 bytes; set it in the environment or the settings file, because other users of the machine can see flags
    #[arg(env, value_name = "SECRET", value_parser = Secret::for_signing)]
    jwt_secret: Option<Secret>,
    /// A file with the secret that signs tokens (HS256), at least 32 bytes; a trailing newline is ignored; the file must have mode 600, but a group may read a file that root owns, as systemd and Kubernetes provide it; read again every two seconds
    #[arg(env)]
    jwt_secret_file: Option<PathBuf>,
    /// The public key that verifies tokens, in PEM (RS256, ES256 or EdDSA, depending on its type); read again every two seconds
    #[arg(env)]
    jwt_public_key_file: Option<PathBuf>,
    /// A JSON Web Key Set whose keys verify tokens; read again every two seconds
    #[arg(env)]
    jwt_jwks_file: Option<PathBuf>,
    /// The http or https URL of a JSON Web Key Set whose keys verify tokens; fetched at start, every ten minutes, and for an unknown key ID, but then at most every ten seconds
    #[arg(env, value_parser = value::http_url)]
    jwt_jwks_url: Option<Uri>,
    /// The issuer that the iss of a token must equal; required with jwt
    #[arg(env, value_name = "TEXT", value_parser = value::text)]
    jwt_issuer: Option<String>,
    /// The audience that the aud of a token must equal or contain; required with jwt
    #[arg(env, value_name = "TEXT", value_parser = value::text)]
    jwt_audience: Option<String>,
}

impl AuthSettings {
    /// The mode of a server that listens on this address. Token settings are refused in a mode
    /// without tokens, because ignoring them would trust every caller.
    pub fn check(self, listen: SocketAddr) -> Result<AuthMode, Vec<String>> {
        let given = [
            self.keys().next().map(|keys| keys.setting()),
            self.jwt_issuer.as_ref().map(|_| "EXPERTISE_JWT_ISSUER"),
            self.jwt_audience.as_ref().map(|_| "EXPERTISE_JWT_AUDIENCE"),
        ];
        let fault = match (self.auth, given.into_iter().flatten().next()) {
            (Some(AuthKind::Jwt), _) => {
                let expected_key = "set, or one of EXPERTISE_JWT_SECRET_FILE, \
                    EXPERTISE_JWT_PUBLIC_KEY_FILE, EXPERTISE_JWT_JWKS_FILE and \
                    EXPERTISE_JWT_JWKS_URL, because EXPERTISE_AUTH is jwt";
                let key = at_most_one(self.keys());
                return self.tokens(key, expected_key).map(AuthMode::Jwt);
            }
            (Some(AuthKind::Header), Some(given)) => wrong(
                "EXPERTISE_AUTH",
                "header",
                format!("jwt, because {given} is set"),
            ),
            (None, Some(given)) => unset("EXPERTISE_AUTH", format!("jwt, because {given} is set")),
            (None, None) if !listen.ip().is_loopback() => wrong(
                "EXPERTISE_LISTEN",
                listen,
                "a loopback address, unless EXPERTISE_AUTH=jwt requires tokens, or \
                 EXPERTISE_AUTH=header trusts the account that a caller names",
            ),
            (Some(AuthKind::Header) | None, None) => return Ok(AuthMode::Header),
        };
        Err(vec![fault])
    }

    fn keys(&self) -> impl Iterator<Item = KeySource> {
        let file = |path: &Option<PathBuf>, source: fn(_) -> _| path.clone().map(source);
        let keys = [
            self.jwt_secret.clone().map(KeySource::Secret),
            file(&self.jwt_secret_file, KeySource::SecretFile),
            file(&self.jwt_public_key_file, KeySource::PublicKeyFile),
            file(&self.jwt_jwks_file, KeySource::KeySetFile),
            self.jwt_jwks_url.clone().map(KeySource::KeySetUrl),
        ];
        keys.into_iter().flatten()
    }

    /// Tokens with this key, or a line for each fault.
    fn tokens(
        self,
        key: Result<Option<KeySource>, String>,
        expected_key: &str,
    ) -> Result<TokenConfig, Vec<String>> {
        let claim = |setting, value: Option<String>| {
            value.ok_or_else(|| unset(setting, "set, because tokens are checked against it"))
        };
        let issuer = claim("EXPERTISE_JWT_ISSUER", self.jwt_issuer);
        let audience = claim("EXPERTISE_JWT_AUDIENCE", self.jwt_audience);
        let key =
            key.and_then(|key| key.ok_or_else(|| unset("EXPERTISE_JWT_SECRET", expected_key)));
        match (issuer, audience, key) {
            (Ok(issuer), Ok(audience), Ok(key)) => Ok(TokenConfig {
                key,
                issuer,
                audience,
            }),
            (issuer, audience, key) => {
                let faults = [issuer.err(), audience.err(), key.err()];
                Err(faults.into_iter().flatten().collect())
            }
        }
    }
}

/// The only key, if any. Fails if there are several.
fn at_most_one(mut keys: impl Iterator<Item = KeySource>) -> Result<Option<KeySource>, String> {
    match (keys.next(), keys.next()) {
        (Some(key), Some(other)) => {
            let expected = format!(
                "left out, because {} is set: keys come from one place",
                key.setting()
            );
            Err(wrong(other.setting(), other.location(), expected))
        }
        (key, _) => Ok(key),
    }
}

#[derive(Clone, Debug, PartialEq, Args)]
pub struct SigningSettings {
    /// Sign with this private key in PEM (RS256, ES256 or EdDSA, depending on its type), which the server verifies with EXPERTISE_JWT_PUBLIC_KEY_FILE or a key set
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,
    #[command(flatten)]
    auth: AuthSettings,
    #[command(flatten)]
    file: SettingsFileArg,
}

impl SigningSettings {
    /// How tokens are signed, with the private key or with the secret of the server, even if `auth`
    /// is unset.
    pub fn check(self) -> Result<TokenConfig, ConfigError> {
        if self.auth.auth == Some(AuthKind::Header) {
            let expected = "jwt, because header authentication uses no tokens";
            let fault = wrong("EXPERTISE_AUTH", "header", expected);
            return Err(ConfigError::Settings(vec![fault]));
        }
        let key = at_most_one(self.auth.keys()).and_then(|key| {
            let signs =
                |key: &KeySource| matches!(key, KeySource::Secret(_) | KeySource::SecretFile(_));
            let private = self.private_key_file.map(KeySource::PrivateKeyFile);
            at_most_one(key.filter(signs).into_iter().chain(private))
        });
        let expected_key = "a secret of at least 32 bytes, unless --private-key-file FILE is given";
        self.auth
            .tokens(key, expected_key)
            .map_err(ConfigError::Settings)
    }
}

/// The content of a token.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TokenGrant {
    /// The account that the token gives access to
    #[arg(short, long, value_parser = value::account)]
    pub account: AccountId,
    /// The scopes of the token, separated by spaces: read, write, translate, admin, index
    // The full path keeps clap from reading a list of repeated flags.
    #[arg(long = "scope", value_name = "SCOPES", value_parser = value::scopes)]
    pub scopes: ::std::vec::Vec<Scope>,
    /// How long the token is valid, such as 1h
    #[arg(long, default_value = "1h", value_parser = value::duration("1s", "366days"))]
    pub expires: Duration,
    /// The name of the caller, for the log
    #[arg(long, value_name = "NAME", default_value = "expertise-token", value_parser = value::subject)]
    pub subject: Subject,
}
