//! Reads a snapshot, block by block. What is not as it was written is an error that names the file.

use super::{blocking, format, name_of};
use crate::contract::SnapshotReader;
use crate::encode::keys_from;
use crate::error::{Error, Result};
use crate::info::SnapshotInfo;
use emberkeep_hot::command::KeyDump;
use emberkeep_hot::engine::Pending;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An open file.
pub(super) struct FileReader {
    info: SnapshotInfo,
    /// `None` at the end, after an error, and while a thread reads.
    file: Option<BlockFile>,
}

/// A file from some block on.
struct BlockFile {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
}

/// The metadata of a file.
pub(super) fn info_of(path: &Path) -> Result<SnapshotInfo> {
    FileReader::open(path).map(|reader| reader.info)
}

fn damaged(path: &Path, at: u64, problem: &str) -> Error {
    Error::Damaged { snapshot: name_of(path), problem: format!("at byte {at}: {problem}") }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound { id: name_of(path), store: String::new() },
        _ => Error::of_file(path, error),
    }
}

impl FileReader {
    pub(super) fn open(path: &Path) -> Result<FileReader> {
        let file = File::open(path).map_err(|error| failed(path, &error))?;
        let mut file = BlockFile { path: path.to_owned(), file: BufReader::new(file), at: 0 };
        file.check_header()?;
        let at = file.find_info()?;
        file.seek(at)?;
        let (kind, payload) = file.block()?;
        if kind != format::BlockKind::Info {
            return Err(damaged(path, at, "keys where the metadata should be"));
        }
        let info = format::parse_info(&payload).map_err(|problem| damaged(path, at, problem))?;
        file.seek(format::HEADER_BYTES as u64)?;
        Ok(FileReader { info, file: Some(file) })
    }
}

impl BlockFile {
    fn failed(&self, error: &io::Error) -> Error {
        failed(&self.path, error)
    }

    fn seek(&mut self, at: u64) -> Result<()> {
        self.at = at;
        self.file.seek(SeekFrom::Start(at)).map(drop).map_err(|error| self.failed(&error))
    }

    fn check_header(&mut self) -> Result<()> {
        let mut header = [0; format::HEADER_BYTES];
        if let Err(error) = self.file.read_exact(&mut header) {
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => damaged(&self.path, 0, "the file ends within its header"),
                _ => self.failed(&error),
            });
        }
        let (magic, version) = header.split_at(format::MAGIC.len());
        if magic != format::MAGIC {
            return Err(damaged(&self.path, 0, "it does not begin like a snapshot"));
        }
        let found = version.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        match found {
            0 => Err(damaged(&self.path, 8, "format 0")),
            1..=format::VERSION => Ok(()),
            _ => {
                let snapshot = name_of(&self.path);
                Err(Error::NewerFormat { snapshot, found, max: format::VERSION })
            }
        }
    }

    /// Where the metadata begins, by the footer.
    fn find_info(&mut self) -> Result<u64> {
        let length = self.file.seek(SeekFrom::End(0)).map_err(|error| self.failed(&error))?;
        let start = length.saturating_sub(format::FOOTER_BYTES as u64);
        self.seek(start)?;
        let mut footer = [0; format::FOOTER_BYTES];
        match self.file.read_exact(&mut footer) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(self.failed(&error)),
            _ => {}
        }
        let at = format::info_at(&footer).filter(|at| (format::HEADER_BYTES as u64..start).contains(at));
        at.ok_or_else(|| damaged(&self.path, start, "its end is missing or changed"))
    }

    fn block(&mut self) -> Result<(format::BlockKind, Vec<u8>)> {
        let block = format::read_block(&mut self.file).map_err(|error| self.failed(&error))?;
        let (kind, payload) = block.map_err(|problem| damaged(&self.path, self.at, problem))?;
        self.at += payload.len() as u64 + 9;
        Ok((kind, payload))
    }

    /// The keys of the next block; `None` where the metadata begins.
    fn keys(&mut self) -> Result<Option<Vec<KeyDump>>> {
        let at = self.at;
        match self.block()? {
            (format::BlockKind::Info, _) => Ok(None),
            (format::BlockKind::Keys, payload) => {
                let keys = keys_from(payload.into());
                keys.map(Some).map_err(|problem| damaged(&self.path, at, problem))
            }
        }
    }
}

impl SnapshotReader for FileReader {
    fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    fn next(&mut self) -> Pending<'_, Result<Option<Vec<KeyDump>>>> {
        Box::pin(async {
            let Some(mut file) = self.file.take() else { return Ok(None) };
            let (keys, file) = blocking(move || Ok((file.keys()?, file))).await?;
            if keys.is_some() {
                self.file = Some(file);
            }
            Ok(keys)
        })
    }
}
