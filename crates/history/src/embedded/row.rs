//! The stored form of a row: its columns by id, so that rows of another declaration stay readable.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | CRC-32C of the key and of everything after these bytes |
//! | 8 | when the row expires, in milliseconds since 1970; 0 = never |
//! | for each column that is there: 2 | id of the column |
//! | 4 | length of the value |
//! | | the value in key encoding, ascending |
//!
//! Columns of the key are not repeated here. Ids from 65532 on are not of columns: the version of a row, and that it
//! was removed.

use crate::key_encoding;
use emberkeep_schema::{ColumnType, Order, Value};

const HEAD_BYTES: usize = 12;

/// Ids that no column of a table has. The version of a row of a versioned table:
pub(super) const VERSION_ID: u16 = u16::MAX - 2;
/// The row was removed, and stays to be compared with late writes. It is the first column then.
pub(super) const REMOVED_ID: u16 = u16::MAX - 3;
/// The first of those ids.
pub(super) const RESERVED_IDS: u16 = REMOVED_ID;

/// Appends a row. `others` are encoded columns that the declaration does not know, see [`Stored::unknown`].
pub(super) fn encode<'v>(
    out: &mut Vec<u8>,
    key: &[u8],
    expires: i64,
    columns: impl Iterator<Item = (u16, &'v Value)>,
    others: &[u8],
) {
    let start = out.len();
    encode_body(out, expires, columns, others);
    let sum = checksum(key, &out[start + 4..]);
    out[start..start + 4].copy_from_slice(&sum.to_be_bytes());
}

/// Appends a row to a buffer that ends with its key.
pub(super) fn encode_after_key<'v>(
    out: &mut Vec<u8>,
    key_start: usize,
    expires: i64,
    columns: impl Iterator<Item = (u16, &'v Value)>,
    others: &[u8],
) {
    let start = out.len();
    encode_body(out, expires, columns, others);
    let sum = checksum(&out[key_start..start], &out[start + 4..]);
    out[start..start + 4].copy_from_slice(&sum.to_be_bytes());
}

fn encode_body<'v>(
    out: &mut Vec<u8>,
    expires: i64,
    columns: impl Iterator<Item = (u16, &'v Value)>,
    others: &[u8],
) {
    out.extend([0; 4]);
    out.extend(expires.to_be_bytes());
    for (id, value) in columns {
        out.extend(id.to_be_bytes());
        let length_at = out.len();
        out.extend([0; 4]);
        key_encoding::push(out, value, Order::Ascending);
        let length = (out.len() - length_at - 4) as u32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }
    out.extend(others);
}

fn checksum(key: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), body)
}

/// A stored row whose checksum was compared.
pub(super) struct Stored<'b> {
    /// When it expires; 0 = never.
    pub(super) expires: i64,
    columns: &'b [u8],
}

impl<'b> Stored<'b> {
    /// Reads the head; `None` if the bytes are damaged.
    pub(super) fn read(key: &[u8], bytes: &'b [u8]) -> Option<Stored<'b>> {
        let (head, columns) = bytes.split_at_checked(HEAD_BYTES)?;
        if head[..4] != checksum(key, &bytes[4..]).to_be_bytes() {
            return None;
        }
        let expires = i64::from_be_bytes(head[4..].try_into().ok()?);
        Some(Stored { expires, columns })
    }

    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.expires != 0 && self.expires <= now
    }

    /// Whether it stands for a row that was removed.
    pub(super) fn is_removed(&self) -> bool {
        self.columns.starts_with(&REMOVED_ID.to_be_bytes())
    }

    /// The number in a column of this id.
    pub(super) fn number(&self, id: u16) -> Option<i64> {
        let (_, mut bytes) = self.parts().flatten().find(|(found, _)| *found == id)?;
        match key_encoding::take(&mut bytes, ColumnType::BigInt, Order::Ascending)? {
            Value::BigInt(number) => Some(number),
            _ => None,
        }
    }

    /// The value of each column that `find` knows: its place and type.
    pub(super) fn values(
        &self,
        find: impl Fn(u16) -> Option<(usize, ColumnType)>,
        row: &mut [Option<Value>],
    ) -> Option<()> {
        for column in self.parts() {
            let (id, mut bytes) = column?;
            if let Some((place, kind)) = find(id) {
                row[place] = Some(key_encoding::take(&mut bytes, kind, Order::Ascending)?);
            }
        }
        Some(())
    }

    /// The encoded columns that `is_known` does not know.
    pub(super) fn unknown(&self, is_known: impl Fn(u16) -> bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for column in self.parts() {
            let (id, bytes) = column?;
            if !is_known(id) {
                out.extend(id.to_be_bytes());
                out.extend((bytes.len() as u32).to_be_bytes());
                out.extend(bytes);
            }
        }
        Some(out)
    }

    /// Id and bytes of each column; `None` in the place of one that is cut off.
    fn parts(&self) -> impl Iterator<Item = Option<(u16, &'b [u8])>> {
        let mut rest = self.columns;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let part = part(&mut rest);
            if part.is_none() {
                rest = &[];
            }
            Some(part)
        })
    }
}

fn part<'b>(rest: &mut &'b [u8]) -> Option<(u16, &'b [u8])> {
    let (id, after) = rest.split_first_chunk::<2>()?;
    let (length, after) = after.split_first_chunk::<4>()?;
    let (value, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *rest = after;
    Some((u16::from_be_bytes(*id), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded<'v>(expires: i64, columns: impl Iterator<Item = (u16, &'v Value)>, others: &[u8]) -> Vec<u8> {
        let mut out = b"key".to_vec();
        encode_after_key(&mut out, 0, expires, columns, others);
        out.split_off(3)
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let values = [(1, Value::Text("ann".into())), (9, Value::Int(7))];
        let bytes = encoded(5, values.iter().map(|(id, value)| (*id, value)), &[]);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Stored::read(b"key", &changed).is_none(), "byte {at}");
        }
        assert!(Stored::read(b"kex", &bytes).is_none(), "a row of another key");
        assert!((0..bytes.len()).all(|end| Stored::read(b"key", &bytes[..end]).is_none()));
    }

    #[test]
    fn columns_that_are_not_known_are_passed_on() {
        let values = [(1, Value::Text("ann".into())), (9, Value::Int(7))];
        let bytes = encoded(0, values.iter().map(|(id, value)| (*id, value)), &[]);
        let stored = Stored::read(b"key", &bytes).unwrap();
        let mut row = [None];
        stored.values(|id| (id == 1).then_some((0, ColumnType::Text)), &mut row).unwrap();
        assert_eq!(row, [Some(Value::Text("ann".into()))]);
        let unknown = stored.unknown(|id| id == 1).unwrap();
        let text = Value::Text("bob".into());
        let again = encoded(0, [(1, &text)].into_iter(), &unknown);
        let mut number = [None];
        let stored = Stored::read(b"key", &again).unwrap();
        stored.values(|id| (id == 9).then_some((0, ColumnType::Int)), &mut number).unwrap();
        assert_eq!(number, [Some(Value::Int(7))]);
    }
}
