//! Deadlines that are set only if the key has none, turned into what they do: a plain deadline, or nothing.
//! So the journal stores only what happened. All of it runs under the locks of the written keys.

use super::locks::{Locked, Lookup};
use super::shard::KeyHash;
use super::slab::NEVER;
use crate::command::{Effects, Expiry, RawKey, Read, Reply, Write};
use crate::error::Result;
use crate::tx::read_through;

/// Replaces every [`Write::ExpireAtIfNone`] of a transaction.
pub(super) fn resolve(
    locked: &mut Locked<'_>,
    effects: &mut Effects,
    hashes: &mut Vec<KeyHash>,
) -> Result<()> {
    if !effects.writes.iter().any(|(_, write)| matches!(write, Write::ExpireAtIfNone(_))) {
        return Ok(());
    }
    let mut writes = OwnWrites { list: Vec::with_capacity(hashes.len()), hashes: Vec::new() };
    for ((key, write), hashed) in std::mem::take(&mut effects.writes).into_iter().zip(hashes.iter()) {
        let Write::ExpireAtIfNone(at) = write else {
            writes.push(key, write, *hashed);
            continue;
        };
        if !writes.leave_no_deadline(locked, &key, *hashed)? {
            continue;
        }
        match writes.list.last_mut() {
            // The SET takes the deadline along: one command instead of two.
            Some((last, Write::Set(_, expiry @ Expiry::Keep))) if *last == key => *expiry = Expiry::At(at),
            _ => writes.push(key, Write::ExpireAt(at), *hashed),
        }
    }
    (effects.writes, *hashes) = (writes.list, writes.hashes);
    Ok(())
}

/// The writes so far. Their hashes are compared before their keys: a transaction may have thousands.
struct OwnWrites {
    list: Vec<(RawKey, Write)>,
    hashes: Vec<KeyHash>,
}

impl OwnWrites {
    fn push(&mut self, key: RawKey, write: Write, hashed: KeyHash) {
        self.list.push((key, write));
        self.hashes.push(hashed);
    }

    /// The writes of a key, the last one first.
    fn of<'a>(&'a self, key: &'a RawKey, hashed: KeyHash) -> impl Iterator<Item = &'a Write> {
        let all = self.list.iter().zip(&self.hashes).rev();
        all.filter(move |((held, _), hash)| **hash == hashed && held == key).map(|((_, write), _)| write)
    }

    /// Whether the key has no deadline after them. Where it is absent, either answer will do.
    fn leave_no_deadline(&self, locked: &mut Locked<'_>, key: &RawKey, hashed: KeyHash) -> Result<bool> {
        let mut own = self.of(key, hashed).peekable();
        while let Some(write) = own.next() {
            match write {
                Write::Set(_, Expiry::Never) | Write::Persist | Write::Del => return Ok(true),
                Write::Set(_, Expiry::At(_)) => return Ok(false),
                Write::ExpireAt(_) if own.peek().is_some_and(|before| before.leaves_key()) => {
                    return Ok(false);
                }
                write if write.leaves_key() => {}
                // It may have removed the key, or set the deadline of none.
                _ => return self.read_deadline(locked, key, hashed),
            }
        }
        Ok(match locked.find(hashed, key)? {
            (shard, Lookup::Live(position)) => shard.at(position).deadline == NEVER,
            _ => true,
        })
    }

    fn read_deadline(&self, locked: &mut Locked<'_>, key: &RawKey, hashed: KeyHash) -> Result<bool> {
        let mut own: Vec<&Write> = self.of(key, hashed).collect();
        own.reverse();
        Ok(read_through(locked, key, &own, &Read::ExpireTime)? == Reply::Int(-1))
    }
}
