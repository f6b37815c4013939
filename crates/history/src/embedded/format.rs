//! The version of a folder's format. It grows when an older program could not read the folder any more, or would harm it.
//!
//! | version | since |
//! |---|---|
//! | 1 | the first; a folder without the file has it |

use super::ledger::{folder_error, lost};
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

const FORMAT_NAME: &str = "FORMAT";
const NEW_NAME: &str = "FORMAT.new";
/// What this program reads and writes.
const VERSION: u32 = 1;

/// Refuses a folder of a newer format, before anything of it is read or changed. One without a version gets this one, and
/// so does one whose version cannot be read, if the caller accepts losses.
pub(super) fn check(folder: &Path, accept_loss: bool) -> Result<()> {
    let path = folder.join(FORMAT_NAME);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return write(folder),
        Err(error) if error.kind() == ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(folder_error(&path, &error)),
    };
    match parse(&text) {
        Some(found) if found > VERSION => {
            Err(Error::NewerFormat { path: folder.display().to_string(), found, known: VERSION })
        }
        Some(_) => Ok(()),
        None if accept_loss => write(folder),
        None => Err(lost(&path, "it does not have its checksum".into())),
    }
}

/// The line of a version, with its checksum.
fn line(version: u32) -> String {
    let text = format!("emberkeep history {version}");
    format!("{text} {:08x}\n", crc32c::crc32c(text.as_bytes()))
}

fn parse(text: &str) -> Option<u32> {
    let version = text.split(' ').nth(2)?.parse().ok()?;
    (text == line(version)).then_some(version)
}

/// Under its own name only when it is on disk.
fn write(folder: &Path) -> Result<()> {
    let (new, path) = (folder.join(NEW_NAME), folder.join(FORMAT_NAME));
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(line(VERSION).as_bytes())?;
        file.sync_all()
    });
    let written = written.and_then(|()| fs::rename(&new, &path));
    written.and_then(|()| File::open(folder)?.sync_all()).map_err(|error| folder_error(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_it_was_written_and_nothing_else_is_one() {
        assert_eq!(parse(&line(1)), Some(1));
        assert_eq!(parse(&line(70)), Some(70));
        let changed = line(1).replace(" 1 ", " 2 ");
        for text in ["", "1", "emberkeep history 1", &changed, &line(1)[1..], &line(1).repeat(2)] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
