//! Where accounts come from, and which settings that takes.

use std::{fmt, net::SocketAddr, path::PathBuf};

use http::Uri;

use super::{
    Command, MASK, WrongSetting,
    sources::Values,
    table::{self, Setting},
    value,
};

/// Where accounts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Metadata that is believed: for loopback and behind a mesh that sets it.
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

/// Where the keys come from that tokens are checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A secret, for HS256.
    Secret(SigningSecret),
    /// A public key in PEM, for RS256, ES256 or EdDSA as its type has it.
    PublicKeyFile(PathBuf),
    /// A JSON Web Key Set in a file.
    KeySetFile(PathBuf),
    /// A JSON Web Key Set behind `http` or `https`.
    KeySetUrl(Uri),
}

/// A secret that signs tokens. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(String);

impl SigningSecret {
    /// The shortest secret in bytes: as long as what HS256 makes (RFC 7518,
    /// section 3.2).
    pub const MIN: usize = 32;

    /// Accepts what is long enough.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() >= Self::MIN).then(|| Self(text.to_owned()))
    }

    /// The bytes that sign.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for AuthMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Jwt(_) => f.write_str("jwt"),
        }
    }
}

/// What `EXPERTISE_AUTH` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Header,
    Jwt,
}

/// One of these must be set in `jwt` mode.
const SOURCES: [Setting; 4] = [
    table::JWT_SECRET,
    table::JWT_PUBLIC_KEY_FILE,
    table::JWT_JWKS_FILE,
    table::JWT_JWKS_URL,
];

/// Settings that mean nothing without `jwt`: to ignore one would believe
/// everybody where tokens were asked for.
const JWT: [Setting; 6] = [
    table::JWT_SECRET,
    table::JWT_PUBLIC_KEY_FILE,
    table::JWT_JWKS_FILE,
    table::JWT_JWKS_URL,
    table::JWT_ISSUER,
    table::JWT_AUDIENCE,
];

/// Reads where accounts come from, as far as the command asks for it.
pub(super) fn read(
    values: &Values,
    listen: SocketAddr,
    command: &Command,
) -> Result<AuthMode, WrongSetting> {
    let named = values.read(&table::AUTH, value::auth)?;
    match command {
        Command::Token(_) => return token(values, named).map(AuthMode::Jwt),
        Command::Serve
        | Command::Migrate
        | Command::Config
        | Command::Translate(_)
        | Command::Errand(_)
        | Command::Health(_)
        | Command::Completions(_)
        | Command::Man(_) => {}
    }
    if named == Some(Named::Jwt) {
        return jwt(values).map(AuthMode::Jwt);
    }
    if let Some(stray) = JWT.iter().find_map(|setting| values.named(setting)) {
        return Err(values.wrong(&table::AUTH, format!("jwt, as {stray} is set")));
    }
    if named.is_none() && !listen.ip().is_loopback() {
        return Err(values.wrong(
            &table::LISTEN,
            "a loopback address, unless EXPERTISE_AUTH=jwt asks for tokens, or \
             EXPERTISE_AUTH=header for believing the account that any caller names",
        ));
    }
    Ok(AuthMode::Header)
}

/// Signing needs the secret. It asks for `jwt` by itself.
fn token(values: &Values, named: Option<Named>) -> Result<TokenRules, WrongSetting> {
    if named == Some(Named::Header) {
        return Err(values.wrong(&table::AUTH, "jwt for there to be tokens"));
    }
    if values.named(&table::JWT_SECRET).is_none() {
        return Err(values.wrong(
            &table::JWT_SECRET,
            format!(
                "the secret that signs tokens, of {} bytes at least",
                SigningSecret::MIN
            ),
        ));
    }
    jwt(values)
}

fn jwt(values: &Values) -> Result<TokenRules, WrongSetting> {
    Ok(TokenRules {
        keys: keys(values)?,
        issuer: required(values, &table::JWT_ISSUER)?,
        audience: required(values, &table::JWT_AUDIENCE)?,
    })
}

fn keys(values: &Values) -> Result<KeySource, WrongSetting> {
    let mut set = SOURCES
        .iter()
        .filter(|source| values.named(source).is_some());
    if let (Some(first), Some(second)) = (set.next(), set.next()) {
        let first = values.named(first).unwrap_or_default();
        return Err(values.wrong(
            second,
            format!("unset, as {first} is set: keys come from one place"),
        ));
    }
    let secret = values.read(&table::JWT_SECRET, value::signing_secret)?;
    let public_key = values.read(&table::JWT_PUBLIC_KEY_FILE, value::path)?;
    let key_set = values.read(&table::JWT_JWKS_FILE, value::path)?;
    let url = values.read(&table::JWT_JWKS_URL, value::http_url)?;
    secret
        .map(KeySource::Secret)
        .or(public_key.map(KeySource::PublicKeyFile))
        .or(key_set.map(KeySource::KeySetFile))
        .or(url.map(KeySource::KeySetUrl))
        .ok_or_else(|| {
            values.wrong(
                &table::JWT_SECRET,
                "set, or one of EXPERTISE_JWT_PUBLIC_KEY_FILE, EXPERTISE_JWT_JWKS_FILE and \
                 EXPERTISE_JWT_JWKS_URL, as EXPERTISE_AUTH is jwt",
            )
        })
}

fn required(values: &Values, setting: &Setting) -> Result<String, WrongSetting> {
    values
        .read(setting, value::text)?
        .ok_or_else(|| values.wrong(setting, "set where there are tokens"))
}

impl AuthMode {
    /// The settings of tokens with their values as they may be shown.
    pub(super) fn entries(&self) -> [(Setting, Option<String>); 6] {
        let jwt = match self {
            Self::Header => None,
            Self::Jwt(jwt) => Some(jwt),
        };
        let keys = jwt.map(|jwt| &jwt.keys);
        let mut secret = None;
        let mut public_key = None;
        let mut key_set = None;
        let mut url = None;
        match keys {
            None => {}
            Some(KeySource::Secret(_)) => secret = Some(MASK.to_owned()),
            Some(KeySource::PublicKeyFile(path)) => public_key = Some(path.display().to_string()),
            Some(KeySource::KeySetFile(path)) => key_set = Some(path.display().to_string()),
            Some(KeySource::KeySetUrl(uri)) => url = Some(uri.to_string()),
        }
        [
            (table::JWT_SECRET, secret),
            (table::JWT_PUBLIC_KEY_FILE, public_key),
            (table::JWT_JWKS_FILE, key_set),
            (table::JWT_JWKS_URL, url),
            (table::JWT_ISSUER, jwt.map(|jwt| jwt.issuer.clone())),
            (table::JWT_AUDIENCE, jwt.map(|jwt| jwt.audience.clone())),
        ]
    }
}
