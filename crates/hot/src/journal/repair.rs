//! Loading with consequences: a torn end is cut; damage is refused, or set aside if the caller insists.

use super::decode::Apply;
use super::files::{Files, OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line};
use super::manifest::{Entry, Manifest};
use super::reader::{Item, Reader, Window};
use super::recover::{Damage, Found, Stop, read_manifest, recover};
use super::{MANIFEST_NAME, folder_error, is_data_name};
use crate::error::Result;
use std::io;
use std::path::Path;

/// Loads the folder. On return the files that the manifest names are whole.
pub(super) fn load(
    files: &dyn Files,
    dir: &Path,
    cut_damage: bool,
    apply: Apply<'_>,
) -> Result<(Manifest, Found)> {
    let mut found = Found::default();
    let mut manifest = Manifest::default();
    let loaded = read_manifest(files, dir).and_then(|read| {
        manifest = read.unwrap_or_default();
        recover(files, dir, &manifest, apply, &mut found)
    });
    match loaded {
        Ok(()) => cut_torn_end(files, dir, &manifest, &mut found)?,
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::Damage(damage)) if !cut_damage => return Err(damage.into_error(&manifest)),
        Err(Stop::Damage(damage)) => {
            tracing::error!(
                ?damage,
                "the journal is damaged; everything from there on is set aside, as told"
            );
            manifest = set_aside(files, dir, &manifest, &damage, &mut found)
                .map_err(|error| folder_error(dir, error))?;
        }
    }
    Ok((manifest, found))
}

fn cut_torn_end(files: &dyn Files, dir: &Path, manifest: &Manifest, found: &mut Found) -> Result<()> {
    let (Some(entry), Some(tail), cut @ 1..) =
        (manifest.entries.last(), found.tail, found.recovery.cut_bytes)
    else {
        return Ok(());
    };
    tracing::warn!(file = %entry.name, at = tail.bytes, cut, "cut a torn end that was never synced");
    let path = dir.join(&entry.name);
    let cut_file = || {
        let mut file = files.open(&path)?;
        file.truncate(tail.bytes)?;
        file.sync()
    };
    found.bytes -= cut;
    cut_file().map_err(|error| folder_error(&path, error))
}

/// Keeps what lies before the damage under a new manifest; the damaged file and all behind it are copied aside
/// first, so that whoever knows better can still go back, and a crash in between loses neither.
fn set_aside(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    damage: &Damage,
    found: &mut Found,
) -> io::Result<Manifest> {
    let (kept, dropped) = manifest.entries.split_at(damage.file.unwrap_or(0));
    let mut mended = Manifest { entries: kept.to_vec() };
    if let Some(entry) = dropped.first().filter(|_| damage.offset > 0) {
        mended.entries.push(copy_prefix(files, dir, entry, manifest.next_number(), damage.offset)?);
    }
    let aside = match damage.file {
        Some(_) => dropped.iter().map(|entry| entry.name.clone()).collect(),
        None => {
            files.list(dir)?.into_iter().filter(|name| is_data_name(name) || name == MANIFEST_NAME).collect()
        }
    };
    found.recovery.set_aside = copy_aside(files, dir, aside)?;
    mended.store(files, dir)?;
    // Appending goes on in a new file, after the last transaction that was applied.
    found.tail = None;
    Ok(mended)
}

/// Copies files beside themselves as `<name>.damaged`; those that are missing are passed over.
fn copy_aside(files: &dyn Files, dir: &Path, names: Vec<String>) -> io::Result<Vec<String>> {
    let mut copies = Vec::new();
    for name in names {
        let source = match files.open(&dir.join(&name)) {
            Ok(file) => Window::new(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let copy = format!("{name}.damaged");
        let length = source.length();
        copy_bytes(source, length, &mut *files.create(&dir.join(&copy))?)?;
        copies.push(copy);
    }
    files.sync_dir(dir)?;
    Ok(copies)
}

/// Copies the whole part of a damaged file under a new number.
fn copy_prefix(files: &dyn Files, dir: &Path, entry: &Entry, number: u64, bytes: u64) -> io::Result<Entry> {
    let source = dir.join(&entry.name);
    let copy = Entry { ours: entry.ours, ..Entry::ours(entry.kind, number) };
    let mut target = files.create(&dir.join(&copy.name))?;
    let mut window = Window::new(files.open(&source)?)?;
    let mut rest = bytes;
    let mut end = Vec::new();
    if entry.ours {
        // The header names the number, so it is written anew; the salt stays, or no checksum would fit.
        let missing = || io::Error::other("its header was there a moment ago");
        let mut reader = Reader::open(window)?.ok_or_else(missing)?;
        let header = FileHeader { number, ..reader.header };
        let mut line = Vec::new();
        Line::File(header).encode(&mut line, header.salt);
        append_all(&mut *target, &line)?;
        rest -= reader.offset();
        let mut records = 0;
        while entry.kind == FileKind::Base && reader.offset() < bytes {
            records += u64::from(matches!(reader.next()?, Item::Record(..)));
        }
        if entry.kind == FileKind::Base {
            Line::End(records).encode(&mut end, header.salt);
        }
        window = Window::new(files.open(&source)?)?;
        let header_bytes = (bytes - rest) as usize;
        window.peek(header_bytes)?;
        window.skip(header_bytes);
    }
    copy_bytes(window, rest, &mut *target)?;
    append_all(&mut *target, &end)?;
    target.sync()?;
    files.sync_dir(dir)?;
    Ok(copy)
}

/// Copies `bytes` from where the window stands, and syncs them.
fn copy_bytes(mut source: Window, mut bytes: u64, target: &mut dyn OpenFile) -> io::Result<()> {
    while bytes > 0 {
        let portion = source.peek(1)?;
        let portion = &portion[..portion.len().min(usize::try_from(bytes).unwrap_or(usize::MAX))];
        if portion.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        append_all(target, portion)?;
        let taken = portion.len();
        source.skip(taken);
        bytes -= taken as u64;
    }
    target.sync()
}
