//! Adds a token to a file, which is made if there is none.
//!
//! An addition holds a lock beside the file, so that none of several at once is lost. The new file is
//! written beside the old one and renamed over it: a server that reads meanwhile gets one or the other, never
//! a part.

use super::Entry;
use super::file::{FileError, read_entries};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Adds a token to a file. Only its owner may read a new file; an existing one keeps its permissions.
pub fn write_entry(path: &Path, entry: &Entry) -> Result<(), FileError> {
    write_entry_after(path, entry, || Ok(()))
}

/// The same, after `show` has shown the token: if that fails, the file stays as it is.
pub fn write_entry_after(
    path: &Path,
    entry: &Entry,
    show: impl FnOnce() -> io::Result<()>,
) -> Result<(), FileError> {
    let unusable = |error| FileError::unusable(path, error);
    // The target of a symbolic link is replaced, not the link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let _lock = lock(&target).map_err(unusable)?;
    let mut text = match std::fs::read_to_string(&target) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(error)),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let entry = toml::to_string(entry).map_err(|error| FileError::unreadable(path, error.to_string()))?;
    let _ = write!(text, "[[token]]\n{entry}\n");
    read_entries(path, &text)?;
    replace(&target, &text, show).map_err(unusable)
}

/// An exclusive lock until it is dropped. Its file is never deleted: a process that waits for the lock would
/// then wait on a deleted file, while another one locks the new file.
fn lock(path: &Path) -> io::Result<File> {
    let file = private().create(true).truncate(false).open(beside(path, "lock"))?;
    file.lock()?;
    Ok(file)
}

fn replace(path: &Path, text: &str, show: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let new = beside(path, &format!("{}.new", Uuid::new_v4().simple()));
    let written = write(&new, path, text).and_then(|()| show()).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

fn write(new: &Path, old: &Path, text: &str) -> io::Result<()> {
    let mut file = private().create_new(true).open(new)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = std::fs::metadata(old) {
        copy_permissions(&file, &old)?;
    }
    file.sync_all()
}

/// Copies owner and mode of the old file. Only an administrator may change the owner; otherwise the file
/// belongs to this process's user.
fn copy_permissions(file: &File, old: &std::fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(file, None, Some(old.gid()));
        }
    }
    file.set_permissions(old.permissions())
}

/// Opens files that only their owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::super::{Role, Token, TokenCheck, Tokens, read_text};
    use super::*;
    use crate::limits::TOKEN_NAME_CHARS_MAX;
    use emberkeep_testkit::scratch;
    use std::sync::Barrier;

    fn entry(name: &str) -> Entry {
        Entry { name: name.into(), role: Role::Service, service: None, hash: Token::new().unwrap().hash() }
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = read_entries(path, &read_text(path).unwrap()).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn a_written_token_is_read_and_known() {
        let folder = scratch();
        let path = folder.join("tokens.toml");
        let (first, second) = (Token::new().unwrap(), Token::new().unwrap());
        for (name, role, token) in [("lobby \"1\"", Role::ReadOnly, &first), ("ops", Role::Admin, &second)] {
            write_entry(&path, &Entry { name: name.into(), role, service: None, hash: token.hash() })
                .unwrap();
        }
        let again = write_entry(&path, &entry("ops"));
        assert!(again.unwrap_err().to_string().contains("two tokens are named \"ops\""));
        let text = read_text(&path).unwrap();
        assert!(!text.contains(first.reveal()), "the file holds no token");
        let tokens = Tokens::of(&read_entries(&path, &text).unwrap());
        let TokenCheck::Known(caller) = tokens.look_up(Some(second.reveal())) else {
            panic!("the token is known")
        };
        assert_eq!((&*caller.name, caller.role), ("ops", Role::Admin));
        assert_eq!(tokens.look_up(Some("ek_other")), TokenCheck::Unknown);
        assert_eq!(tokens.look_up(None), TokenCheck::Unknown);
    }

    #[test]
    fn concurrent_additions_are_all_kept() {
        let (folder, barrier) = (scratch(), Barrier::new(12));
        let path = folder.join("tokens.toml");
        std::thread::scope(|scope| {
            for number in 0..12 {
                let (path, barrier) = (&path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    write_entry(path, &entry(&format!("n{number}"))).unwrap();
                });
            }
        });
        let mut found = names(&path);
        found.sort_by_key(|name| name[1..].parse::<u32>().unwrap());
        assert_eq!(found, (0..12).map(|number| format!("n{number}")).collect::<Vec<_>>());
        let files = std::fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["tokens.toml", "tokens.toml.lock"], "nothing else is left behind");
    }

    #[test]
    fn a_name_must_be_printable() {
        let folder = scratch();
        let path = folder.join("tokens.toml");
        let long = "n".repeat(TOKEN_NAME_CHARS_MAX + 1);
        for invalid in ["", "  ", "a\nb", "a\u{7}", "a\u{1b}[31m", long.as_str()] {
            let error = write_entry(&path, &entry(invalid)).unwrap_err().to_string();
            assert!(error.contains("expected 1 to 64 characters"), "{error}");
        }
        write_entry(&path, &entry(&long[1..])).unwrap();
        assert_eq!(names(&path), [&long[1..]]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_permissions_and_its_link() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = scratch();
        let (path, link) = (folder.join("tokens.toml"), folder.join("link.toml"));
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write_entry(&path, &entry("first")).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_entry(&link, &entry("second")).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((mode(), names(&path).len()), (0o640, 2));
    }
}
