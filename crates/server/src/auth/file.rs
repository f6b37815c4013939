//! The file of tokens: TOML, one `[[token]]` per token with its name, role and hash.

use super::{Role, TokenHash};
use crate::limits::TOKENS_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
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
    let mut names = BTreeSet::new();
    match file.token.iter().find(|entry| !names.insert(&entry.name)) {
        Some(twice) => Err(format!("two tokens are named {:?}; give each a name of its own", twice.name)),
        None => Ok(file.token),
    }
}

/// Adds a token to a file, which is made if there is none. Only its owner may read it.
pub fn write_entry(path: &Path, entry: &Entry) -> Result<(), FileError> {
    let mut text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(FileError::unusable(path, error)),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (name, role) = (toml::Value::from(entry.name.as_str()), role_text(entry.role));
    let _ = write!(text, "[[token]]\nname = {name}\nrole = \"{role}\"\nhash = \"{}\"\n\n", entry.hash);
    read_entries(path, &text)?;
    replace(path, &text).map_err(|error| FileError::unusable(path, error))
}

fn role_text(role: Role) -> &'static str {
    match role {
        Role::ReadOnly => "read-only",
        Role::Service => "service",
        Role::Admin => "admin",
    }
}

/// Written beside it and renamed over it: a server that looks meanwhile sees one or the other, whole.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::super::{Shown, Token, Tokens};
    use super::*;

    #[test]
    fn what_is_written_is_read_and_known() {
        let folder = std::env::temp_dir().join(format!("ember-tokens-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("tokens.toml");
        let (first, second) = (Token::new().unwrap(), Token::new().unwrap());
        for (name, role, token) in [("lobby \"1\"", Role::Service, &first), ("ops", Role::Admin, &second)] {
            write_entry(&path, &Entry { name: name.into(), role, hash: token.hash() }).unwrap();
        }
        let entries = read_entries(&path, &read_text(&path).unwrap()).unwrap();
        let again = write_entry(&path, &Entry { hash: first.hash(), ..entries[1].clone() });
        assert!(again.unwrap_err().to_string().contains("two tokens are named \"ops\""));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!text.contains(first.reveal()), "the file holds no token");
        let tokens = Tokens::of(&entries);
        let Shown::Known(caller) = tokens.look_up(Some(second.reveal())) else {
            panic!("the token is known")
        };
        assert_eq!((&*caller.name, caller.role), ("ops", Role::Admin));
        assert_eq!(tokens.look_up(Some("ek_other")), Shown::Unknown);
        assert_eq!(tokens.look_up(None), Shown::Unknown);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let told = parse("[[token]]\nname = \"a\"\nrole = \"admin\"\nhsah = \"x\"\n").unwrap_err();
        assert!(told.contains("hsah"), "{told}");
    }
}
