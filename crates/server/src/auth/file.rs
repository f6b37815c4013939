//! The token file: TOML with one `[[token]]` per token, with name, role and hash.

use super::{Role, TokenHash};
use crate::limits::{TOKEN_NAME_CHARS_MAX, TOKENS_MAX};
use emberkeep_schema::Service;
use emberkeep_schema::limits::SERVICE_NAME_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// An entry of the token file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name of the service, as it appears in logs.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The service that its calls act as, in games that declare services; none = they may write everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The hash of the token.
    pub hash: TokenHash,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Entry>,
}

/// An error of the token file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {path}: {error}")]
    Unusable {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The content is invalid.
    #[error("the token file {path} cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl FileError {
    pub(super) fn unusable(path: &Path, error: std::io::Error) -> FileError {
        FileError::Unusable { path: path.display().to_string(), error }
    }

    pub(crate) fn unreadable(path: &Path, problem: impl Into<String>) -> FileError {
        FileError::Unreadable { path: path.display().to_string(), problem: problem.into() }
    }
}

pub(crate) fn read_text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|error| FileError::unusable(path, error))
}

/// Parses the text of a token file.
pub(crate) fn read_entries(path: &Path, text: &str) -> Result<Vec<Entry>, FileError> {
    parse(text).map_err(|problem| FileError::unreadable(path, problem))
}

fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    if file.token.len() > TOKENS_MAX {
        return Err(format!("{} tokens, at most {TOKENS_MAX} are read", file.token.len()));
    }
    if let Some(invalid) = file.token.iter().map(|entry| &entry.name).find(|name| !is_valid_name(name)) {
        return Err(format!(
            "a token is named {invalid:?}, expected 1 to {TOKEN_NAME_CHARS_MAX} characters, none of them a control character"
        ));
    }
    let mut services = file.token.iter().filter_map(|entry| entry.service.as_deref());
    if let Some(invalid) = services.find(|name| !Service::is_valid_name(name)) {
        return Err(format!(
            "a token names the service {invalid:?}, expected 1 to {SERVICE_NAME_BYTES_MAX} letters, digits, hyphens and underscores"
        ));
    }
    let mut names = BTreeSet::new();
    match file.token.iter().find(|entry| !names.insert(&entry.name)) {
        Some(twice) => Err(format!("two tokens are named {:?}; give each a name of its own", twice.name)),
        None => Ok(file.token),
    }
}

/// Whether a name is printable and not too long.
fn is_valid_name(name: &str) -> bool {
    !name.trim().is_empty()
        && name.chars().count() <= TOKEN_NAME_CHARS_MAX
        && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_refused() {
        let error = parse("[[token]]\nname = \"a\"\nrole = \"admin\"\nhsah = \"x\"\n").unwrap_err();
        assert!(error.contains("hsah"), "{error}");
    }

    #[test]
    fn a_service_is_read_and_its_name_checked() {
        let hash = crate::auth::TokenHash::of("ek_x");
        let entry = |service: &str| {
            let hash = toml::Value::try_from(&hash).unwrap();
            parse(&format!("[[token]]\nname = \"a\"\nrole = \"service\"\n{service}hash = {hash}\n"))
        };
        assert_eq!(entry("").unwrap()[0].service, None);
        assert_eq!(entry("service = \"api-gateway\"\n").unwrap()[0].service.as_deref(), Some("api-gateway"));
        let error = entry("service = \"api gateway\"\n").unwrap_err();
        assert!(error.contains("names the service \"api gateway\", expected 1 to 64 letters"), "{error}");
    }
}
