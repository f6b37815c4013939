//! Puts and removals in one buffer: a call's rows in their stored form, and a commit of several calls.

use fjall::{Keyspace, OwnedWriteBatch};

/// Puts and removals of keys, each at a place: a window of a table, or a keyspace of a commit.
#[derive(Debug, Default)]
pub(super) struct Operations {
    /// Keys and values behind each other.
    bytes: Vec<u8>,
    list: Vec<Operation>,
}

#[derive(Debug, Clone, Copy)]
struct Operation {
    place: i64,
    start: usize,
    key_end: usize,
    end: usize,
    is_removal: bool,
}

/// A place to go back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    operations: usize,
    bytes: usize,
}

impl Operations {
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Operations {
        Operations { bytes: Vec::with_capacity(bytes), list: Vec::with_capacity(count) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of all keys and values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { operations: self.list.len(), bytes: self.bytes.len() }
    }

    /// Takes back everything after a mark.
    pub(super) fn undo(&mut self, mark: Mark) {
        self.list.truncate(mark.operations);
        self.bytes.truncate(mark.bytes);
    }

    /// Adds a put. `key` and `value` append to the buffer; `value` also gets the key.
    pub(super) fn put<E>(
        &mut self,
        place: i64,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
        value: impl FnOnce(&mut Vec<u8>, usize),
    ) -> Result<(), E> {
        let start = self.bytes.len();
        if let Err(error) = key(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        let key_end = self.bytes.len();
        value(&mut self.bytes, start);
        self.list.push(Operation { place, start, key_end, end: self.bytes.len(), is_removal: false });
        Ok(())
    }

    pub(super) fn put_slices(&mut self, place: i64, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.list.push(Operation { place, start, key_end, end: self.bytes.len(), is_removal: false });
    }

    pub(super) fn remove(&mut self, place: i64, key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.list.push(Operation { place, start, key_end: end, end, is_removal: true });
    }

    /// Adds all of another buffer, each operation at the place that `place` gives for its own.
    pub(super) fn append<E>(
        &mut self,
        other: &Operations,
        mut place: impl FnMut(i64) -> Result<i64, E>,
    ) -> Result<(), E> {
        let moved = self.bytes.len();
        for operation in &other.list {
            self.list.push(Operation {
                place: place(operation.place)?,
                start: moved + operation.start,
                key_end: moved + operation.key_end,
                end: moved + operation.end,
                is_removal: operation.is_removal,
            });
        }
        self.bytes.extend_from_slice(&other.bytes);
        Ok(())
    }

    /// Sorts by place and key. The memory of the store below is a skip list: keys that follow each other find their
    /// neighbours in the cache of the processor.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.list.sort_by(|a, b| {
            let key = |operation: &Operation| &bytes[operation.start..operation.key_end];
            a.place.cmp(&b.place).then_with(|| key(a).cmp(key(b)))
        });
    }

    /// Length of the longest key after a mark.
    pub(super) fn longest_key(&self, since: Mark) -> usize {
        let operations = self.list[since.operations..].iter();
        operations.map(|operation| operation.key_end - operation.start).max().unwrap_or(0)
    }

    /// A checksum of everything.
    pub(super) fn digest(&self) -> u32 {
        crc32c::crc32c(&self.bytes)
    }

    /// Passes everything on; places are indexes of keyspaces.
    pub(super) fn fill(&self, batch: &mut OwnedWriteBatch, keyspaces: &[Keyspace]) {
        for operation in &self.list {
            let (key, value) = (
                &self.bytes[operation.start..operation.key_end],
                &self.bytes[operation.key_end..operation.end],
            );
            let keyspace = &keyspaces[operation.place as usize];
            if operation.is_removal {
                batch.remove(keyspace, key);
            } else {
                batch.insert(keyspace, key, value);
            }
        }
    }
}
