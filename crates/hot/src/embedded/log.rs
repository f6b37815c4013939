//! The partition log as plain writes of two keys: a counter and a bounded list of `<sequence>:<entry>`.
//!
//! The entries are expanded under the locks of both keys, so the sequence has no gap and the first entry has
//! number 1. The journal then stores only plain writes.

use super::locks::Locked;
use crate::command::*;
use crate::command::{not_an_integer, parse_integer};
use crate::error::{Error, Result};
use crate::limits::COMMAND_ARGUMENTS_MAX;
use crate::tx::log::{log_keys, stored_entry};
use crate::tx::{ReadSource, read_through};

/// Turns the log entries of a transaction into writes at the end of its writes.
pub(super) fn expand(locked: &mut Locked<'_>, partition: &[u8], effects: &mut Effects) -> Result<()> {
    let (list, counter) = log_keys(&locked.engine.layout, partition);
    let mut sequence = match read(locked, &counter, Read::Get, &effects.writes)? {
        Reply::Blob(text) => parse_integer(&text).ok_or_else(|| not_an_integer(&counter))?,
        _ => 0,
    };
    let mut len = match read(locked, &list, Read::LLen, &effects.writes)? {
        Reply::Int(len) => len as usize,
        _ => 0,
    };
    let mut trims = false;
    let added = effects.log.len();
    let mut lines = Vec::with_capacity(added);
    for append in effects.log.drain(..) {
        sequence += 1;
        lines.push(stored_entry(sequence, &append.entry));
        let max = append.entries_max;
        match append.overflow {
            Overflow::Refuse if len >= max => {
                return Err(Error::LogFull { partition: crate::error::show(partition), max });
            }
            Overflow::DropOldest if len >= max => {
                trims = true;
                len = max;
            }
            _ => len += 1,
        }
    }
    effects.writes.push((counter, Write::IncrBy(added as i64)));
    for piece in lines.chunks(COMMAND_ARGUMENTS_MAX) {
        effects.writes.push((list.clone(), Write::RPush(piece.to_vec())));
    }
    if trims {
        effects.writes.push((list, Write::LTrim(-(len as i64), -1)));
    }
    Ok(())
}

/// Reads one of the two keys with the transaction's own writes: a transaction may drain its log and add to
/// it.
fn read(locked: &mut Locked<'_>, key: &RawKey, read: Read, writes: &[(RawKey, Write)]) -> Result<Reply> {
    let own: Vec<&Write> = writes.iter().filter(|(held, _)| held == key).map(|(_, write)| write).collect();
    read_through(locked as &mut dyn ReadSource, key, &own, &read)?.checked(key, &read)
}
