//! Loads the folder and repairs it: a torn end is cut off; damage is an error, or is set aside if the caller
//! asks for it.

use super::decode::Apply;
use super::files::{Files, OpenFile, append_all};
use super::format::{FileHeader, FileKind, Line};
use super::manifest::{Entry, Manifest};
use super::reader::{Item, Reader, Window};
use super::recover::{Damage, LoadError, LoadResult, read_manifest, recover};
use super::{MANIFEST_NAME, folder_error, unlisted_files};
use crate::error::{Error, Result};
use std::io;
use std::path::Path;

/// Loads the folder. On return the files that the manifest names are whole.
pub(super) fn load(
    files: &dyn Files,
    dir: &Path,
    cut_damage: bool,
    apply: Apply<'_>,
) -> Result<(Manifest, LoadResult)> {
    let mut found = LoadResult::default();
    let (mut manifest, rebuilt) = match read_manifest(files, dir) {
        Ok(read) => (read.unwrap_or_default(), false),
        Err(LoadError::Error(error)) => return Err(error),
        Err(LoadError::Damage(damage)) if !cut_damage => return Err(damage.into_error(&Manifest::default())),
        Err(LoadError::Damage(damage)) => {
            tracing::error!(?damage, "the manifest is damaged; it is rebuilt from the files, as requested");
            (unlisted_files::rebuild(files, dir)?, true)
        }
    };
    let damage = match recover(files, dir, &manifest, apply, &mut found) {
        Ok(()) => None,
        Err(LoadError::Error(error)) => return Err(error),
        Err(LoadError::Damage(damage)) if !cut_damage => return Err(damage.into_error(&manifest)),
        Err(LoadError::Damage(damage)) => Some(damage),
    };
    let failed = |error| folder_error(dir, error);
    // Before any file is created, so that no new file replaces an old one.
    found.recovery.set_aside = unlisted_files::clear(files, dir, &manifest)?;
    cut_ends(files, dir, &manifest, &found)?;
    if rebuilt {
        let copies = copy_aside(files, dir, vec![MANIFEST_NAME.to_owned()]).map_err(failed)?;
        found.recovery.set_aside.extend(copies);
        manifest.store(files, dir).map_err(failed)?;
    }
    if let Some(damage) = damage {
        tracing::error!(
            ?damage,
            "the journal is damaged; everything after the damage is set aside, as requested"
        );
        manifest = set_aside(files, dir, &manifest, &damage, &mut found).map_err(failed)?;
    }
    Ok((manifest, found))
}

/// What a start would find, as [`Journal::examine`](super::Journal::examine) reports it. Nothing is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// Transactions that can be read (a base counts its records).
    pub transactions: u64,
    /// Where the journal is damaged; `None` if it is sound.
    pub damage: Option<Error>,
    /// Bytes that cutting the damage sets aside, those of `left_out` included.
    pub lost_bytes: u64,
    /// Files with data that no transaction is read from, because no manifest names them and they fit in
    /// nowhere.
    pub left_out: Vec<String>,
}

/// Reads the folder and changes nothing in it.
pub(super) fn examine(files: &dyn Files, dir: &Path) -> Result<Examination> {
    let (mut found, mut damage) = (LoadResult::default(), None);
    let manifest = match read_manifest(files, dir) {
        Ok(read) => read.unwrap_or_default(),
        Err(LoadError::Error(error)) => return Err(error),
        Err(LoadError::Damage(found)) => {
            damage = Some(found.into_error(&Manifest::default()));
            unlisted_files::rebuild(files, dir)?
        }
    };
    let left_out = unlisted_files::with_records(files, dir, &manifest)?;
    let bytes_of = |name: &String| files.open(&dir.join(name)).ok()?.size().ok();
    let mut lost_bytes = left_out.iter().filter_map(bytes_of).sum();
    match recover(files, dir, &manifest, &mut |_, _| Ok(()), &mut found) {
        Ok(()) => {}
        Err(LoadError::Error(error)) => return Err(error),
        Err(LoadError::Damage(stop)) => {
            let behind = &manifest.entries[stop.file.unwrap_or(0)..];
            let sizes = behind.iter().filter_map(|entry| bytes_of(&entry.name));
            lost_bytes += sizes.sum::<u64>().saturating_sub(stop.offset);
            damage = Some(stop.into_error(&manifest));
        }
    }
    Ok(Examination { transactions: found.recovery.transactions, damage, lost_bytes, left_out })
}

/// Cuts torn ends, and space that was reserved and not written: appending goes on behind the content, and
/// Redis would not load zeros.
fn cut_ends(files: &dyn Files, dir: &Path, manifest: &Manifest, found: &LoadResult) -> Result<()> {
    if found.recovery.cut_bytes > 0 {
        tracing::warn!(cut_bytes = found.recovery.cut_bytes, "cut a torn end that was never synced");
    }
    for (at, bytes) in &found.cuts {
        let path = dir.join(&manifest.entries[*at].name);
        let cut_file = || {
            let mut file = files.open(&path)?;
            file.truncate(*bytes)?;
            file.sync()
        };
        cut_file().map_err(|error| folder_error(&path, error))?;
    }
    Ok(())
}

/// Keeps everything before the damage under a new manifest. The damaged file and all files after it are
/// copied first, so that an operator can still use them, and a crash in between loses neither.
fn set_aside(
    files: &dyn Files,
    dir: &Path,
    manifest: &Manifest,
    damage: &Damage,
    found: &mut LoadResult,
) -> io::Result<Manifest> {
    let (kept, dropped) = manifest.entries.split_at(damage.file.unwrap_or(0));
    let mut mended = Manifest { entries: kept.to_vec(), ..Manifest::default() };
    if let Some(entry) = dropped.first().filter(|_| damage.offset > 0) {
        mended.entries.push(copy_prefix(files, dir, entry, manifest.next_number(), damage.offset)?);
    }
    let aside = dropped.iter().map(|entry| entry.name.clone()).collect();
    found.recovery.set_aside.extend(copy_aside(files, dir, aside)?);
    mended.store(files, dir)?;
    for entry in dropped {
        // Copied aside and synced just now.
        let _ = files.remove(&dir.join(&entry.name));
    }
    // Appending goes on in a new file, after the last transaction that was applied.
    found.tail = None;
    Ok(mended)
}

/// Copies files beside themselves as `<name>.damaged`, or `<name>.damaged-<n>` where that is taken; those
/// that are missing are passed over.
fn copy_aside(files: &dyn Files, dir: &Path, names: Vec<String>) -> io::Result<Vec<String>> {
    let mut copies = Vec::new();
    for name in names {
        let source = match files.open(&dir.join(&name)) {
            Ok(file) => Window::new(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let copy = unlisted_files::free_name(&files.list(dir)?, &format!("{name}.damaged"));
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
