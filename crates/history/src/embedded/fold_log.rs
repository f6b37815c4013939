//! The log of folds: what was added to totals and is not written to their rows yet.
//!
//! A fold is one record, however many rows it changes. It costs far less than writing the rows, which are written
//! together later. Numbers are big endian:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | CRC-32C of the key of the record and of everything after these bytes |
//! | 2 | length of the source's name, which follows |
//! | for each entry: 8, 8 | position, time |
//! | 2 | length of the key, which follows in key encoding |
//! | 1 | count of amounts that are not 0; for each of them 2 bytes of the sum's id, 8 of the amount |

/// A record that is being written.
pub(super) struct Record {
    bytes: Vec<u8>,
}

/// An entry of a record.
pub(super) struct LoggedEntry<'b> {
    pub(super) position: i64,
    pub(super) at_ms: i64,
    pub(super) key: &'b [u8],
    amounts: &'b [u8],
}

impl Record {
    pub(super) fn new(source: &str, entries: usize) -> Record {
        let mut bytes = Vec::with_capacity(64 + entries * 40);
        bytes.extend([0; 4]);
        bytes.extend((source.len() as u16).to_be_bytes());
        bytes.extend(source.as_bytes());
        Record { bytes }
    }

    pub(super) fn add(
        &mut self,
        position: i64,
        at_ms: i64,
        key: &[u8],
        amounts: impl Iterator<Item = (u16, i64)>,
    ) {
        self.bytes.extend(position.to_be_bytes());
        self.bytes.extend(at_ms.to_be_bytes());
        self.bytes.extend((key.len() as u16).to_be_bytes());
        self.bytes.extend(key);
        let count_at = self.bytes.len();
        self.bytes.push(0);
        for (id, amount) in amounts.filter(|(_, amount)| *amount != 0) {
            self.bytes[count_at] += 1;
            self.bytes.extend(id.to_be_bytes());
            self.bytes.extend(amount.to_be_bytes());
        }
    }

    /// The record with its checksum.
    pub(super) fn finish(mut self, key: &[u8]) -> Vec<u8> {
        let sum = crc32c::crc32c_append(crc32c::crc32c(key), &self.bytes[4..]);
        self.bytes[..4].copy_from_slice(&sum.to_be_bytes());
        self.bytes
    }
}

impl<'b> LoggedEntry<'b> {
    /// Id and amount of each sum that is not 0.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (u16, i64)> + use<'b> {
        self.amounts.chunks_exact(10).filter_map(|bytes| {
            let (id, amount) = bytes.split_first_chunk::<2>()?;
            Some((u16::from_be_bytes(*id), i64::from_be_bytes(*amount.first_chunk()?)))
        })
    }
}

/// The source and the entries of a record; `None` if it is damaged.
pub(super) fn read<'b>(key: &[u8], bytes: &'b [u8]) -> Option<(&'b str, Vec<LoggedEntry<'b>>)> {
    let (sum, body) = bytes.split_first_chunk::<4>()?;
    if crc32c::crc32c_append(crc32c::crc32c(key), body).to_be_bytes() != *sum {
        return None;
    }
    let mut rest = body;
    let source = std::str::from_utf8(take_counted(&mut rest)?).ok()?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (position, at_ms) = (take_number(&mut rest)?, take_number(&mut rest)?);
        let key = take_counted(&mut rest)?;
        let (count, after) = rest.split_first()?;
        let (amounts, after) = after.split_at_checked(usize::from(*count) * 10)?;
        rest = after;
        entries.push(LoggedEntry { position, at_ms, key, amounts });
    }
    Some((source, entries))
}

fn take_number(rest: &mut &[u8]) -> Option<i64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(i64::from_be_bytes(*number))
}

fn take_counted<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (taken, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_or_damaged() {
        let mut record = Record::new("s/l/i", 2);
        record.add(7, -1, b"key", [(1, 5), (2, 0), (300, i64::MIN)].into_iter());
        record.add(8, i64::MAX, b"", std::iter::empty());
        let bytes = record.finish(b"at");
        let (source, entries) = read(b"at", &bytes).unwrap();
        assert_eq!((source, entries.len()), ("s/l/i", 2));
        assert_eq!((entries[0].position, entries[0].at_ms, entries[0].key), (7, -1, &b"key"[..]));
        assert_eq!(entries[0].amounts().collect::<Vec<_>>(), [(1, 5), (300, i64::MIN)]);
        assert_eq!((entries[1].at_ms, entries[1].amounts().count()), (i64::MAX, 0));
        assert!(read(b"au", &bytes).is_none(), "of another key");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(b"at", &changed).is_none() && read(b"at", &bytes[..at]).is_none());
        }
    }
}
