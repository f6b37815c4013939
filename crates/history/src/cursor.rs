//! Cursors: where a page ended, as text that a caller can pass on.
//!
//! Bytes, then in base64url: version (1), fingerprint of the query (8), partition (4), values of the position in
//! key encoding, CRC-32C of all before it (4). A cursor holds nothing but a position inside its own query, so a
//! forged one shows no row that the query would not.

use crate::contract::{Position, RangeRequest};
use crate::error::{Error, Result};
use crate::key_encoding;
use crate::limits::CURSOR_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use emberkeep_schema::{ColumnType, Order};
use std::fmt;
use std::str::FromStr;

const VERSION: u8 = 1;

/// Where a page ended. Opaque; it can be printed and parsed. It holds for the same query only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

impl Cursor {
    pub(crate) fn new(request: &RangeRequest, position: &Position) -> Cursor {
        let mut bytes = vec![VERSION];
        bytes.extend(fingerprint(request).to_be_bytes());
        bytes.extend((position.partition as u32).to_be_bytes());
        position.clustering.iter().for_each(|value| key_encoding::push(&mut bytes, value, Order::Ascending));
        bytes.extend(crc32c::crc32c(&bytes).to_be_bytes());
        Cursor(bytes)
    }

    /// The position, if this is a cursor of the request.
    pub(crate) fn position(&self, request: &RangeRequest) -> Result<Position> {
        let invalid = |problem| Error::InvalidCursor { problem };
        let (body, sum) = self.0.split_last_chunk::<4>().ok_or(invalid("it is too short"))?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*sum) {
            return Err(invalid("it was changed"));
        }
        let (version, body) = body.split_first().ok_or(invalid("it is too short"))?;
        if *version != VERSION {
            return Err(invalid("it is of another version"));
        }
        let (print, body) = body.split_first_chunk::<8>().ok_or(invalid("it is too short"))?;
        if u64::from_be_bytes(*print) != fingerprint(request) {
            return Err(invalid("it belongs to another query"));
        }
        let (partition, mut rest) = body.split_first_chunk::<4>().ok_or(invalid("it is too short"))?;
        let partition = u32::from_be_bytes(*partition) as usize;
        let take = |kind: ColumnType| key_encoding::take(&mut rest, kind, Order::Ascending);
        let clustering: Option<Vec<_>> = clustering_types(request).into_iter().map(take).collect();
        match clustering {
            Some(clustering) if rest.is_empty() && partition < request.partitions.len() => {
                Ok(Position { partition, clustering })
            }
            _ => Err(invalid("its position is not one of this query")),
        }
    }
}

fn clustering_types(request: &RangeRequest) -> Vec<ColumnType> {
    let table = request.table;
    let (key, partition) = match request.lookup.and_then(|name| table.lookup(name)) {
        Some(lookup) => (table.lookup_key(lookup), lookup.partition.len()),
        None => (table.primary_key(), table.partition.len()),
    };
    key[partition..].iter().filter_map(|(name, _)| table.column(name)).map(|column| column.kind).collect()
}

/// A number for the query without its position and page size.
fn fingerprint(request: &RangeRequest) -> u64 {
    let RangeRequest { table, lookup, partitions, equal, low, high, reversed, .. } = request;
    let text = format!("{} {lookup:?} {partitions:?} {equal:?} {low:?} {high:?} {reversed}", table.name);
    let fnv = |number: u64, byte: u8| (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv)
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cursor> {
        if text.len() > CURSOR_BYTES_MAX {
            return Err(Error::InvalidCursor { problem: "it is too long" });
        }
        let bytes = URL_SAFE_NO_PAD.decode(text);
        bytes.map(Cursor).map_err(|_| Error::InvalidCursor { problem: "it is not the text of a cursor" })
    }
}
