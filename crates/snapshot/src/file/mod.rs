//! The store in one folder: a file for each snapshot, and one for the generations.

mod format;
mod generations;
mod read;
mod write;

use crate::contract::{Listing, SnapshotReader, SnapshotStore, SnapshotWriter};
use crate::error::{Error, Result};
use crate::id::SnapshotId;
use crate::info::{DamagedSnapshot, SnapshotInfo};
use emberkeep_hot::engine::Pending;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What names of whole snapshots end with.
const SUFFIX: &str = ".snapshot";
/// What names of snapshots in the making end with.
const UNFINISHED: &str = ".unfinished";

/// Snapshots in one folder. Several processes may use it at once.
#[derive(Debug, Clone)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// Opens a folder, which is made if it does not exist. What a process left unfinished when it died is removed.
    pub fn open(folder: impl Into<PathBuf>) -> Result<FileStore> {
        let store = FileStore { folder: folder.into() };
        fs::create_dir_all(&store.folder).map_err(|error| Error::of_file(&store.folder, &error))?;
        for path in store.files(UNFINISHED)? {
            write::remove_abandoned(&path);
        }
        Ok(store)
    }

    fn path(&self, id: &SnapshotId) -> PathBuf {
        self.folder.join(format!("{id}{SUFFIX}"))
    }

    /// The files whose name ends with a text, in the order of their names.
    fn files(&self, suffix: &str) -> Result<Vec<PathBuf>> {
        let failed = |error: io::Error| Error::of_file(&self.folder, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(suffix)) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    fn list_files(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        for path in self.files(SUFFIX)? {
            match read::info_of(&path) {
                Ok(info) => listing.snapshots.push(info),
                Err(Error::NotFound { .. }) => {}
                Err(Error::Damaged { snapshot, problem }) => {
                    listing.damaged.push(DamagedSnapshot { snapshot, problem });
                }
                // One file that cannot be read does not hide the others.
                Err(error) => listing
                    .damaged
                    .push(DamagedSnapshot { snapshot: name_of(&path), problem: error.to_string() }),
            }
        }
        listing.snapshots.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(listing)
    }

    fn not_found(&self, id: &SnapshotId) -> Error {
        Error::NotFound { id: id.to_string(), store: self.name() }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Runs work on files on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(emberkeep_hot::Error::Closed.into()),
        },
    }
}

impl SnapshotStore for FileStore {
    fn name(&self) -> String {
        self.folder.display().to_string()
    }

    fn begin<'a>(&'a self, info: &'a SnapshotInfo) -> Pending<'a, Result<Box<dyn SnapshotWriter>>> {
        let path = self.path(&info.id);
        Box::pin(async {
            let writer = blocking(move || write::FileWriter::begin(path)).await?;
            Ok(Box::new(writer) as Box<dyn SnapshotWriter>)
        })
    }

    fn list(&self) -> Pending<'_, Result<Listing>> {
        let store = self.clone();
        Box::pin(blocking(move || store.list_files()))
    }

    fn open<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<Box<dyn SnapshotReader>>> {
        let path = self.path(id);
        Box::pin(async move {
            match blocking(move || read::FileReader::open(&path)).await {
                Ok(reader) if reader.info().id == *id => Ok(Box::new(reader) as Box<dyn SnapshotReader>),
                Ok(reader) => Err(Error::Damaged {
                    snapshot: name_of(&self.path(id)),
                    problem: format!("it is the snapshot {}", reader.info().id),
                }),
                Err(Error::NotFound { .. }) => Err(self.not_found(id)),
                Err(error) => Err(error),
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a SnapshotId) -> Pending<'a, Result<bool>> {
        let path = self.path(id);
        Box::pin(blocking(move || match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::of_file(&path, &error)),
        }))
    }

    fn generation<'a>(&'a self, partition: &'a str) -> Pending<'a, Result<u64>> {
        let (folder, partition) = (self.folder.clone(), partition.to_owned());
        Box::pin(blocking(move || generations::read(&folder, &partition)))
    }

    fn raise_generation<'a>(&'a self, partition: &'a str, at_least: u64) -> Pending<'a, Result<u64>> {
        let (folder, partition) = (self.folder.clone(), partition.to_owned());
        Box::pin(blocking(move || generations::raise(&folder, &partition, at_least)))
    }
}
