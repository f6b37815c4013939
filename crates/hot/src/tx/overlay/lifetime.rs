//! Whether a key lives, and until when, after writes.

use super::*;

/// Exists and deadline, by walking the writes one by one: a collection that lost its last member is gone with
/// its deadline, also if a later write of the same body makes it anew.
///
/// The source is asked only where it shows: a guess of what a commit leaves behind has no other reply to go
/// by.
pub(super) fn lifetime(
    source: &mut dyn ReadSource,
    key: &RawKey,
    writes: &[&Write],
    read: &Read,
) -> Result<Reply> {
    if *read == Read::Exists
        && let Some(exists) = existence(writes)
    {
        return Ok(Reply::Int(exists as i64));
    }
    let settles =
        |write: &&&Write| matches!(write, Write::Del | Write::Set(_, Expiry::Never | Expiry::At(_)));
    let settled = writes.len() - writes.iter().rev().take_while(|write| !settles(write)).count();
    let mut life = match settled {
        0 => Life::of_base(source, key)?,
        _ => Life { exists: false, deadline: None },
    };
    for done in settled.saturating_sub(1)..writes.len() {
        life.apply(source, key, &writes[..=done], writes[done])?;
    }
    Ok(Reply::Int(match (read, life.exists) {
        (Read::Exists, exists) => exists as i64,
        (_, false) => -2,
        (_, true) => life.deadline.unwrap_or(-1),
    }))
}

/// Whether the key lives for certain or is gone for certain, whatever the source says.
fn existence(writes: &[&Write]) -> Option<bool> {
    let last = writes.iter().rev().find(|write| !write.is_of_deadline())?;
    match last {
        Write::Del => Some(false),
        last => last.leaves_key().then_some(true),
    }
}

struct Life {
    exists: bool,
    deadline: Option<i64>,
}

impl Life {
    fn of_base(source: &mut dyn ReadSource, key: &RawKey) -> Result<Life> {
        let at = int(source, key, Read::ExpireTime)?;
        Ok(Life { exists: at != -2, deadline: (at >= 0).then_some(at) })
    }

    fn apply(
        &mut self,
        source: &mut dyn ReadSource,
        key: &RawKey,
        so_far: &[&Write],
        write: &Write,
    ) -> Result<()> {
        match write {
            Write::Set(_, expiry) => self.set(*expiry),
            Write::SetIfGreater(text, expiry) => {
                let before = &so_far[..so_far.len() - 1];
                if replaces(text, &crate::tx::read_through(source, key, before, &Read::Get)?) {
                    self.set(*expiry);
                }
            }
            Write::Del => *self = Life { exists: false, deadline: None },
            Write::ExpireAt(at) => self.deadline = self.exists.then_some(*at),
            Write::ExpireAtIfNone(at) => self.deadline = self.deadline.or(Some(*at)).filter(|_| self.exists),
            Write::Persist => self.deadline = None,
            // It replaces an element of a list that is there.
            Write::LSet(..) => {}
            write if write.leaves_key() => {
                self.deadline = self.deadline.filter(|_| self.exists);
                self.exists = true;
            }
            _ => self.end_if_empty(source, key, so_far, write)?,
        }
        Ok(())
    }

    fn set(&mut self, expiry: Expiry) {
        self.deadline = match expiry {
            Expiry::Keep => self.deadline.filter(|_| self.exists),
            Expiry::Never => None,
            Expiry::At(at) => Some(at),
        };
        self.exists = true;
    }

    fn end_if_empty(
        &mut self,
        source: &mut dyn ReadSource,
        key: &RawKey,
        so_far: &[&Write],
        write: &Write,
    ) -> Result<()> {
        let count = match write {
            Write::HDel(_) => Read::HLen,
            Write::SRem(_) => Read::SCard,
            Write::ZRem(_) => Read::ZCard,
            _ => Read::LLen,
        };
        if self.exists && read(source, key, so_far, &count)?.checked(key, &count)? == Reply::Int(0) {
            *self = Life { exists: false, deadline: None };
        }
        Ok(())
    }
}

/// Whether a string is set if it is greater than what GET returned.
pub(crate) fn replaces(text: &[u8], stored: &Reply) -> bool {
    is_greater(text, if let Reply::Blob(stored) = stored { Some(stored) } else { None })
}
