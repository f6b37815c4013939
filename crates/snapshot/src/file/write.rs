//! Writes a snapshot: to a file of another name, which gets its name when it is whole and durable.

use super::{SUFFIX, UNFINISHED, blocking, format};
use crate::contract::SnapshotWriter;
use crate::encode::push_key;
use crate::error::{Error, Result};
use crate::info::SnapshotInfo;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file in the making. It is locked, which tells other processes that its writer lives; dropped before its end it is
/// removed.
pub(super) struct FileWriter {
    /// `None` while a thread writes.
    file: Option<Unfinished>,
}

struct Unfinished {
    file: File,
    path: PathBuf,
    bytes: u64,
    is_finished: bool,
}

impl FileWriter {
    /// Begins the file that will have this path.
    pub(super) fn begin(path: PathBuf) -> Result<FileWriter> {
        let path = path.with_extension(&UNFINISHED[1..]);
        let begun = || -> io::Result<Unfinished> {
            let file = File::options().write(true).create_new(true).open(&path)?;
            file.try_lock()?;
            let mut file = Unfinished { file, path: path.clone(), bytes: 0, is_finished: false };
            file.append(&format::header())?;
            Ok(file)
        };
        begun().map(|file| FileWriter { file: Some(file) }).map_err(|error| Error::of_file(&path, &error))
    }

    /// Lets a thread that may block work on the file. After an error there is none: it was removed.
    async fn work(
        &mut self,
        work: impl FnOnce(&mut Unfinished) -> io::Result<()> + Send + 'static,
    ) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Err(Error::invalid("snapshot", "a write before this one failed"));
        };
        let written = blocking(move || match work(&mut file) {
            Ok(()) => Ok(file),
            Err(error) => Err(Error::of_file(&file.path, &error)),
        });
        self.file = Some(written.await?);
        Ok(())
    }
}

impl SnapshotWriter for FileWriter {
    fn write(&mut self, keys: Vec<KeyDump>) -> Pending<'_, Result<()>> {
        Box::pin(self.work(move |file| {
            let mut payload = Vec::new();
            keys.iter().for_each(|key| push_key(&mut payload, key));
            file.append(&format::block(format::BlockKind::Keys, &payload))
        }))
    }

    fn finish(mut self: Box<Self>, info: SnapshotInfo) -> Pending<'static, Result<()>> {
        Box::pin(async move { self.work(move |file| file.finish(&info)).await })
    }
}

impl Unfinished {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn finish(&mut self, info: &SnapshotInfo) -> io::Result<()> {
        let at = self.bytes;
        let info = serde_json::to_vec(info).expect("metadata is JSON");
        self.append(&format::block(format::BlockKind::Info, &info))?;
        self.append(&format::footer(at))?;
        self.file.sync_all()?;
        fs::rename(&self.path, self.path.with_extension(&SUFFIX[1..]))?;
        self.is_finished = true;
        self.path.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "an unfinished snapshot was not removed");
        }
    }
}

/// Makes a rename durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes an unfinished file unless its writer lives.
pub(super) fn remove_abandoned(path: &Path) {
    let removed = File::open(path).and_then(|file| match file.try_lock() {
        Ok(()) => fs::remove_file(path),
        Err(_) => Ok(()),
    });
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "an unfinished snapshot was not removed");
    }
}
