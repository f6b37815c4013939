//! The file of tokens: TOML, one `[[token]]` per token with its name, role and hash.

use super::{Role, TokenHash};
use crate::limits::{TOKEN_NAME_CHARS_MAX, TOKENS_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// A token as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Whose it is: a service's name, as it appears in logs.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// What is stored of it.
    pub hash: TokenHash,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Entry>,
}

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read or written.
    #[error("cannot use the token file {path}: {error}")]
    Unusable {
        /// Which file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It holds something else.
    #[error("the token file {path} cannot be read: {problem}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl FileError {
    /// What the system said of it.
    pub(super) fn unusable(path: &Path, error: std::io::Error) -> FileError {
        FileError::Unusable { path: path.display().to_string(), error }
    }

    /// What is wrong with what it holds.
    pub(crate) fn unreadable(path: &Path, problem: impl Into<String>) -> FileError {
        FileError::Unreadable { path: path.display().to_string(), problem: problem.into() }
    }
}

/// What a file holds.
pub(crate) fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|error| FileError::unusable(path, error))
}

/// The tokens of a file that holds this text.
pub(crate) fn read_entries(path: &Path, text: &str) -> Result<Vec<Entry>, FileError> {
    parse(text).map_err(|problem| FileError::unreadable(path, problem))
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.token.len() > TOKENS_MAX {
        return Err(format!("{} tokens, at most {TOKENS_MAX} are read", file.token.len()));
    }
    if let Some(unfit) = file.token.iter().map(|entry| &entry.name).find(|name| !is_fit(name)) {
        return Err(format!(
            "a token is named {unfit:?}, expected 1 to {TOKEN_NAME_CHARS_MAX} characters, none of them a control character"
        ));
    }
    let mut names = BTreeSet::new();
    match file.token.iter().find(|entry| !names.insert(&entry.name)) {
        Some(twice) => Err(format!("two tokens are named {:?}; give each a name of its own", twice.name)),
        None => Ok(file.token),
    }
}

/// Whether a name can stand in a log.
fn is_fit(name: &str) -> bool {
    !name.trim().is_empty()
        && name.chars().count() <= TOKEN_NAME_CHARS_MAX
        && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused() {
        let told = parse("[[token]]\nname = \"a\"\nrole = \"admin\"\nhsah = \"x\"\n").unwrap_err();
        assert!(told.contains("hsah"), "{told}");
    }
}
