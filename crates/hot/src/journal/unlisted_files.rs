//! Files that the manifest does not name. A file is removed only if our manifest proves that it is
//! superseded; another file with records is renamed and stays.

use super::files::Files;
use super::format::{FileKind, LINE_BYTES_MAX};
use super::manifest::{Entry, Manifest};
use super::reader::{Item, Reader, Window};
use super::{folder_error, format};
use crate::error::Result;
use std::io;
use std::path::Path;

/// How Redis names a base that is a dump. We never write one and never remove one.
const DUMP_SUFFIX: &str = ".base.rdb";

/// The number and kind in the name of a data file: `appendonly.aof.<n>.base.aof`, `.incr.aof`, or Redis'
/// `.base.rdb`.
pub(super) fn data_name(name: &str) -> Option<(u64, FileKind)> {
    let rest = name.strip_prefix("appendonly.aof.")?;
    let (number, kind) = match rest.strip_suffix(".base.aof").or(rest.strip_suffix(DUMP_SUFFIX)) {
        Some(number) => (number, FileKind::Base),
        None => (rest.strip_suffix(".incr.aof")?, FileKind::Increment),
    };
    Some((format::decimal(number.as_bytes())?, kind))
}

/// Names of data files that the manifest does not name, in order.
fn unlisted(files: &dyn Files, dir: &Path, manifest: &Manifest) -> io::Result<Vec<(String, u64, FileKind)>> {
    let mut found: Vec<_> = files
        .list(dir)?
        .into_iter()
        .filter(|name| !manifest.entries.iter().any(|entry| entry.name == *name))
        .filter(|name| !manifest.history.contains(name))
        .filter_map(|name| data_name(&name).map(|(number, kind)| (name, number, kind)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// The files that the manifest neither names nor proves to be superseded, and that hold records, in order.
pub(super) fn with_records(files: &dyn Files, dir: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, number, kind) in unlisted(files, dir, manifest).map_err(|error| folder_error(dir, error))? {
        if is_superseded(manifest, number, kind) {
            continue;
        }
        if holds_records(files, &dir.join(&name)).map_err(|error| folder_error(&dir.join(&name), error))? {
            names.push(name);
        }
    }
    Ok(names)
}

/// The name, or the first of `<name>-1`, `<name>-2` … that no file has.
pub(super) fn free_name(names: &[String], name: &str) -> String {
    let numbered = (1..).map(|n: u64| format!("{name}-{n}"));
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    all.find(|free| !names.contains(free)).expect("a folder has fewer files than there are numbers")
}

/// Removes what is proved to be superseded or empty, and renames the rest to `<name>.unlisted-<n>`. Answers
/// the new names.
pub(super) fn clear(files: &dyn Files, dir: &Path, manifest: &Manifest) -> Result<Vec<String>> {
    clear_files(files, dir, manifest).map_err(|error| folder_error(dir, error))
}

fn clear_files(files: &dyn Files, dir: &Path, manifest: &Manifest) -> io::Result<Vec<String>> {
    let mut aside = Vec::new();
    for (name, number, kind) in unlisted(files, dir, manifest)? {
        if name.ends_with(DUMP_SUFFIX) {
            continue;
        }
        if is_superseded(manifest, number, kind) || !holds_records(files, &dir.join(&name))? {
            if files.remove(&dir.join(&name)).is_err() {
                tracing::warn!(%name, "cannot remove a file that the journal no longer needs");
            }
            continue;
        }
        let names = files.list(dir)?;
        let free = (1..).map(|n: u64| format!("{name}.unlisted-{n}")).find(|free| !names.contains(free));
        let free = free.expect("a folder has fewer files than there are numbers");
        files.rename(&dir.join(&name), &dir.join(&free))?;
        tracing::warn!(%name, %free, "the manifest does not name a file that holds records; it was renamed");
        aside.push(free);
    }
    if !aside.is_empty() {
        files.sync_dir(dir)?;
    }
    Ok(aside)
}

/// Whether a manifest of ours shows that the file is not needed: it is older than the base, or it is the
/// base of a rewrite that did not end, whose increment is named already.
fn is_superseded(manifest: &Manifest, number: u64, kind: FileKind) -> bool {
    let base = manifest.entries.first().filter(|entry| entry.kind == FileKind::Base);
    let older = base.is_some_and(|base| number < base.number);
    manifest.signed && (older || (kind == FileKind::Base && number < manifest.next_number()))
}

/// Whether a file holds records, or bytes that may have been some.
fn holds_records(files: &dyn Files, path: &Path) -> io::Result<bool> {
    let mut window = Window::new(files.open(path)?)?;
    let length = window.length();
    let start = window.peek(LINE_BYTES_MAX)?;
    // The beginning of a header is all that a start leaves which did not get further. Commands begin with
    // `*`.
    let torn_header = length <= LINE_BYTES_MAX as u64
        && matches!(start.first(), None | Some(b'#' | 0))
        && !start.contains(&b'*');
    let Some(mut reader) = Reader::open(window)? else { return Ok(!torn_header) };
    loop {
        let offset = reader.offset();
        match reader.next()? {
            Item::Synced(_) => {}
            Item::Record(..) => return Ok(true),
            Item::End(_) | Item::EndOfFile => return Ok(false),
            Item::Broken(_) => return Ok(reader.rest(offset, u64::MAX)?.content_end > offset),
        }
    }
}

/// A manifest made of what the files say of themselves: the newest base that has its end, and all increments
/// since. What is missing or not readable among them, recovery finds.
pub(super) fn rebuild(files: &dyn Files, dir: &Path) -> Result<Manifest> {
    rebuild_from(files, dir).map_err(|error| folder_error(dir, error))
}

fn rebuild_from(files: &dyn Files, dir: &Path) -> io::Result<Manifest> {
    let (mut ended, mut begun, mut increments) = (None, None, Vec::new());
    let mut found = unlisted(files, dir, &Manifest::default())?;
    found.sort_by_key(|(_, number, _)| *number);
    for (name, number, kind) in found {
        let path = dir.join(&name);
        let entry = Entry { name, number, kind, ours: true };
        match (kind, Reader::open(Window::new(files.open(&path)?)?)?) {
            (FileKind::Increment, Some(reader)) => increments.push((entry, reader.header.after)),
            // One that was never written to has never been named either.
            (FileKind::Increment, None) if holds_records(files, &path)? => increments.push((entry, 0)),
            (FileKind::Base, Some(reader)) => {
                *(if is_ended(reader)? { &mut ended } else { &mut begun }) = Some(entry);
            }
            (_, None) => {}
        }
    }
    // A base without an end is what an unfinished rewrite leaves, unless the increments go back to the
    // beginning only with it.
    let needs = |base: &Entry| {
        increments.first().is_none_or(|(first, after)| *after > 0 || first.number >= base.number)
    };
    let base = ended.or(begun.filter(needs));
    let increments = increments.into_iter().map(|(entry, _)| entry);
    let since = |entry: &Entry| base.as_ref().is_none_or(|base| entry.number >= base.number);
    let increments: Vec<_> = increments.filter(since).collect();
    Ok(Manifest { entries: base.into_iter().chain(increments).collect(), ..Manifest::default() })
}

fn is_ended(mut reader: Reader) -> io::Result<bool> {
    loop {
        match reader.next()? {
            Item::Record(..) => {}
            Item::End(_) => return Ok(true),
            _ => return Ok(false),
        }
    }
}
