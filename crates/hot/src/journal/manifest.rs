//! The manifest: the files of the journal in their order. It is replaced as a whole, never edited.
//!
//! The format is that of Redis, so that `redis-server` finds the files. Redis skips unknown words (`by
//! emberkeep`) and lines that begin with `#`.

use super::files::{Files, append_all};
use super::format::{FileKind, VERSION};
use super::{MANIFEST_NAME, MANIFEST_TEMP_NAME};
use std::io;
use std::path::Path;

/// One file of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) kind: FileKind,
    /// Written by us, hence checksummed.
    pub(super) ours: bool,
}

impl Entry {
    /// A file of ours.
    pub(super) fn ours(kind: FileKind, number: u64) -> Entry {
        Entry { name: format!("appendonly.aof.{number}.{}.aof", kind.word()), number, kind, ours: true }
    }
}

/// The files of the journal: at most one base, first, then increments in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) entries: Vec<Entry>,
    /// Files that Redis has replaced already and not deleted yet.
    pub(super) history: Vec<String>,
    /// It was read with a checksum of ours, so it names every file that is needed.
    pub(super) signed: bool,
}

impl Manifest {
    /// A number that no file of this manifest has.
    pub(super) fn next_number(&self) -> u64 {
        self.entries.iter().map(|entry| entry.number).max().unwrap_or(0) + 1
    }

    /// The manifest as text, with its checksum in the first line.
    pub(super) fn encode(&self) -> String {
        let mut lines = String::new();
        for Entry { name, number, kind, ours } in &self.entries {
            let kind = if *kind == FileKind::Base { 'b' } else { 'i' };
            let by = if *ours { " by emberkeep" } else { "" };
            lines.push_str(&format!("file {name} seq {number} type {kind}{by}\n"));
        }
        format!("#EK-MANIFEST:{VERSION}:{:08x}\n{lines}", crc32c::crc32c(lines.as_bytes()))
    }

    /// Reads a manifest of ours or of Redis; the error says what is wrong.
    pub(super) fn decode(text: &[u8]) -> Result<Manifest, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_owned())?;
        let mut manifest = Manifest::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match decode_entry(line).ok_or_else(|| format!("not understood: {line:?}"))? {
                Line::Needed(entry) => manifest.entries.push(entry),
                Line::History(name) => manifest.history.push(name),
            }
        }
        // Redis writes neither our comment nor our word, so where one of them is, the whole must be as we
        // wrote it.
        manifest.signed = text.starts_with("#EK") || manifest.entries.iter().any(|entry| entry.ours);
        if manifest.signed && manifest.encode() != text {
            return Err("its checksum does not fit".to_owned());
        }
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let base_later = self.entries.iter().skip(1).any(|entry| entry.kind == FileKind::Base);
        let increments = || self.entries.iter().filter(|entry| entry.kind == FileKind::Increment);
        let ordered = increments().zip(increments().skip(1)).all(|(a, b)| a.number < b.number);
        if base_later || !ordered {
            return Err("its files are not in order".to_owned());
        }
        Ok(())
    }

    /// Replaces the manifest on disk; when this returns, the new one survives a crash.
    pub(super) fn store(&self, files: &dyn Files, dir: &Path) -> io::Result<()> {
        self.stage(files, dir)?;
        Manifest::publish(files, dir)
    }

    /// Writes the manifest beside the one that counts. Should this fail, that one still does.
    pub(super) fn stage(&self, files: &dyn Files, dir: &Path) -> io::Result<()> {
        let mut file = files.create(&dir.join(MANIFEST_TEMP_NAME))?;
        append_all(&mut *file, self.encode().as_bytes())?;
        file.sync()
    }

    /// Lets the staged manifest take the place of the other. Should this fail, either may survive.
    pub(super) fn publish(files: &dyn Files, dir: &Path) -> io::Result<()> {
        files.rename(&dir.join(MANIFEST_TEMP_NAME), &dir.join(MANIFEST_NAME))?;
        files.sync_dir(dir)
    }
}

/// What one line says of a file.
enum Line {
    Needed(Entry),
    History(String),
}

fn decode_entry(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (pairs, []) = words.as_chunks::<2>() else { return None };
    let word = |key: &str| pairs.iter().find(|[k, _]| *k == key).map(|[_, value]| *value);
    let name = word("file")?.to_owned();
    // A name only: what stands in a file must not lead out of the folder.
    if name.contains(['/', '\\']) || name.starts_with('.') {
        return None;
    }
    let kind = match word("type")? {
        "b" => FileKind::Base,
        "i" => FileKind::Increment,
        "h" => return Some(Line::History(name)),
        _ => return None,
    };
    let (number, ours) = (word("seq")?.parse().ok()?, word("by") == Some("emberkeep"));
    Some(Line::Needed(Entry { name, number, kind, ours }))
}
