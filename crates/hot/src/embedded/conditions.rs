//! Writes with a condition, turned into what they do: a deadline that is set only if the key has none, and a string that
//! is set only if its number is greater. So the journal stores only what happened. All of it runs under the locks of
//! the written keys.

use super::locks::{Locked, Lookup};
use super::shard::KeyHash;
use super::slab::NEVER;
use super::value::Value;
use crate::command::{Effects, Expiry, RawKey, Read, Reply, Write, is_greater};
use crate::error::Result;
use crate::tx::overlay::replaces;
use crate::tx::read_through;

/// Replaces every write of a transaction that has a condition. Returns how many [`Write::SetIfGreater`] were not greater.
pub(super) fn resolve(
    locked: &mut Locked<'_>,
    effects: &mut Effects,
    hashes: &mut Vec<KeyHash>,
) -> Result<usize> {
    let is_conditional = |write: &Write| matches!(write, Write::ExpireAtIfNone(_) | Write::SetIfGreater(..));
    if !effects.writes.iter().any(|(_, write)| is_conditional(write)) {
        return Ok(0);
    }
    let mut not_greater = 0;
    let mut writes = OwnWrites { list: Vec::with_capacity(hashes.len()), hashes: Vec::new() };
    for ((key, write), hashed) in std::mem::take(&mut effects.writes).into_iter().zip(hashes.iter()) {
        match write {
            Write::ExpireAtIfNone(at) => writes.expire_if_none(locked, key, at, *hashed)?,
            Write::SetIfGreater(text, expiry) => match writes.leave_less(locked, &key, &text, *hashed)? {
                true => writes.push(key, Write::Set(text, expiry), *hashed),
                false => not_greater += 1,
            },
            write => writes.push(key, write, *hashed),
        }
    }
    (effects.writes, *hashes) = (writes.list, writes.hashes);
    Ok(not_greater)
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

    /// Adds the deadline if they leave the key without one.
    fn expire_if_none(
        &mut self,
        locked: &mut Locked<'_>,
        key: RawKey,
        at: i64,
        hashed: KeyHash,
    ) -> Result<()> {
        if self.leave_no_deadline(locked, &key, hashed)? {
            match self.list.last_mut() {
                // The SET takes the deadline along: one command instead of two.
                Some((last, Write::Set(_, expiry @ Expiry::Keep))) if *last == key => {
                    *expiry = Expiry::At(at);
                }
                _ => self.push(key, Write::ExpireAt(at), hashed),
            }
        }
        Ok(())
    }

    /// Whether the key has no greater number after them, and none as great.
    fn leave_less(
        &self,
        locked: &mut Locked<'_>,
        key: &RawKey,
        text: &[u8],
        hashed: KeyHash,
    ) -> Result<bool> {
        let mut own: Vec<&Write> = self.of(key, hashed).collect();
        if own.is_empty() {
            return Ok(match locked.find(hashed, key)? {
                (shard, Lookup::Live(position)) => match &shard.at(position).value {
                    Value::Text(stored) => is_greater(text, Some(stored)),
                    Value::Many(_) => true,
                },
                _ => true,
            });
        }
        own.reverse();
        Ok(replaces(text, &read_through(locked, key, &own, &Read::Get)?))
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
