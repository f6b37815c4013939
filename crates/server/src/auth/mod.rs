//! Who calls: bearer tokens and what they allow.
//!
//! A token is 32 random bytes, so a plain SHA-256 of it cannot be turned back; only hashes are stored. A token is compared
//! with every stored hash in constant time. Without any token configured everybody may do everything, and the server
//! listens on loopback only.

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

/// What a token allows; each role may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reads.
    ReadOnly,
    /// Reads, and the operations of the games.
    Service,
    /// All of it, and what concerns whole tenants.
    Admin,
}

/// By the word that stands for it in the file of tokens, too.
impl FromStr for Role {
    type Err = serde::de::value::Error;

    fn from_str(word: &str) -> Result<Role, Self::Err> {
        Role::deserialize(word.into_deserializer())
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's name.
    pub name: Arc<str>,
    /// What it may do.
    pub role: Role,
}

/// The token of an `Authorization: Bearer` header.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The accepted tokens. Cheap to clone; can be replaced while the server runs.
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Option<Known>>>);

type Known = Vec<(TokenHash, Caller)>;

/// Whether a caller showed a token that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// No tokens are configured: whoever reaches the server may use it.
    Open,
    /// A known one.
    Known(Caller),
    /// None, or one that nobody knows.
    Unknown,
}

impl Tokens {
    /// Nobody needs a token.
    pub fn open() -> Tokens {
        Tokens::default()
    }

    /// Only these are known. An empty list lets nobody in.
    pub fn of(entries: &[Entry]) -> Tokens {
        let tokens = Tokens::default();
        tokens.replace(entries);
        tokens
    }

    /// Puts others in force.
    pub fn replace(&self, entries: &[Entry]) {
        let known = entries
            .iter()
            .map(|entry| (entry.hash.clone(), Caller { name: entry.name.as_str().into(), role: entry.role }));
        *self.0.write() = Some(known.collect());
    }

    /// Whether everybody may call.
    pub fn is_open(&self) -> bool {
        self.0.read().is_none()
    }

    /// Whether tokens are asked for, and none is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().as_ref().is_some_and(Vec::is_empty)
    }

    /// Who shows this token.
    pub fn look_up(&self, shown: Option<&str>) -> Shown {
        let known = self.0.read();
        let Some(known) = &*known else { return Shown::Open };
        let Some(shown) = shown else { return Shown::Unknown };
        let hash = TokenHash::of(shown);
        // All are looked at, so that the time says nothing about which one it was.
        let found = known.iter().fold(
            None,
            |found, (candidate, caller)| {
                if candidate.is(&hash) { Some(caller) } else { found }
            },
        );
        found.map_or(Shown::Unknown, |caller| Shown::Known(caller.clone()))
    }
}
