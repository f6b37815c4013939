//! Bearer tokens and roles.
//!
//! A token is 32 random bytes, so that a plain SHA-256 hash cannot be reversed; only hashes are stored. A
//! token is compared with every hash in constant time. Without configured tokens every client may do
//! everything, and the server listens on loopback only.

mod add;
mod file;
mod token;

pub use add::{write_entry, write_entry_after};
pub use file::{Entry, FileError};
pub(crate) use file::{read_entries, read_text};
pub use token::{Token, TokenHash};

use axum::http::{HeaderMap, header::AUTHORIZATION};
use parking_lot::RwLock;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;

/// The role of a token. Each role includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Read.
    ReadOnly,
    /// Operations of the games.
    Service,
    /// Operations on whole tenants.
    Admin,
}

/// The same names as in the token file.
impl FromStr for Role {
    type Err = serde::de::value::Error;

    fn from_str(word: &str) -> Result<Role, Self::Err> {
        Role::deserialize(word.into_deserializer())
    }
}

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token.
    pub name: Arc<str>,
    /// The role of the token.
    pub role: Role,
    /// The service that the token names.
    pub service: Option<Arc<str>>,
}

impl Caller {
    fn of(entry: &Entry) -> Caller {
        let service = entry.service.as_deref().map(Arc::from);
        Caller { name: entry.name.as_str().into(), role: entry.role, service }
    }
}

/// The token of an `Authorization: Bearer` header.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The accepted tokens. Cheap to clone; can be replaced at run time.
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Option<TokenTable>>>);

type TokenTable = Vec<(TokenHash, Caller)>;

/// The result of a token lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenCheck {
    /// No tokens are configured: every client may do everything.
    Open,
    /// The token is known.
    Known(Caller),
    /// The token is missing or unknown.
    Unknown,
}

impl Tokens {
    /// No token is required.
    pub fn open() -> Tokens {
        Tokens::default()
    }

    /// Accepts these tokens. An empty list refuses every request.
    pub fn of(entries: &[Entry]) -> Tokens {
        let tokens = Tokens::default();
        tokens.replace(entries);
        tokens
    }

    /// Replaces the tokens.
    pub fn replace(&self, entries: &[Entry]) {
        let known = entries.iter().map(|entry| (entry.hash.clone(), Caller::of(entry)));
        *self.0.write() = Some(known.collect());
    }

    /// Whether no token is required.
    pub fn is_open(&self) -> bool {
        self.0.read().is_none()
    }

    /// Whether tokens are required and none is accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().as_ref().is_some_and(Vec::is_empty)
    }

    /// The caller of a token.
    pub fn look_up(&self, shown: Option<&str>) -> TokenCheck {
        let known = self.0.read();
        let Some(known) = &*known else { return TokenCheck::Open };
        let Some(shown) = shown else { return TokenCheck::Unknown };
        let hash = TokenHash::of(shown);
        // All hashes are compared, so that the time does not reveal which one matched.
        let found = known.iter().fold(
            None,
            |found, (candidate, caller)| {
                if candidate.is(&hash) { Some(caller) } else { found }
            },
        );
        found.map_or(TokenCheck::Unknown, |caller| TokenCheck::Known(caller.clone()))
    }
}
