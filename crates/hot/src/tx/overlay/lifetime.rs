//! Whether a key lives, and until when, after writes.

use super::*;

/// Exists and deadline, by walking the writes one by one: a collection that lost its last member is gone with
/// its deadline, also if a later write of the same body makes it anew.
pub(super) fn lifetime(base: &mut dyn Base, key: &RawKey, writes: &[&Write], read: &Read) -> Result<Reply> {
    let mut life = Life::of_base(base, key)?;
    for (done, write) in writes.iter().enumerate() {
        life.apply(base, key, &writes[..=done], write)?;
    }
    Ok(Reply::Int(match (read, life.exists) {
        (Read::Exists, exists) => exists as i64,
        (_, false) => -2,
        (_, true) => life.deadline.unwrap_or(-1),
    }))
}

struct Life {
    exists: bool,
    deadline: Option<i64>,
}

impl Life {
    fn of_base(base: &mut dyn Base, key: &RawKey) -> Result<Life> {
        let at = int(base, key, Read::ExpireTime)?;
        Ok(Life { exists: at != -2, deadline: (at >= 0).then_some(at) })
    }

    fn apply(&mut self, base: &mut dyn Base, key: &RawKey, so_far: &[&Write], write: &Write) -> Result<()> {
        match write {
            Write::Set(_, expiry) => {
                self.deadline = match expiry {
                    Expiry::Keep => self.deadline.filter(|_| self.exists),
                    Expiry::Never => None,
                    Expiry::At(at) => Some(*at),
                };
                self.exists = true;
            }
            Write::Del => *self = Life { exists: false, deadline: None },
            Write::ExpireAt(at) => self.deadline = self.exists.then_some(*at),
            Write::Persist => self.deadline = None,
            Write::IncrBy(_)
            | Write::HSet(_)
            | Write::SAdd(_)
            | Write::ZAdd(_)
            | Write::LPush(_)
            | Write::RPush(_) => {
                self.deadline = self.deadline.filter(|_| self.exists);
                self.exists = true;
            }
            Write::HDel(_) | Write::SRem(_) | Write::ZRem(_) => {
                self.end_if_empty(base, key, so_far, write)?
            }
            Write::LPop(_) | Write::RPop(_) | Write::LTrim(..) => {
                self.end_if_empty(base, key, so_far, write)?
            }
        }
        Ok(())
    }

    fn end_if_empty(
        &mut self,
        base: &mut dyn Base,
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
        if self.exists && read(base, key, so_far, &count)?.checked(key, &count)? == Reply::Int(0) {
            *self = Life { exists: false, deadline: None };
        }
        Ok(())
    }
}
