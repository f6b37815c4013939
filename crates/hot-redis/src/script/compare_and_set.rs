//! The commonest shape of a group: one string, read whole and set whole. It has a script of its own, `swap.lua`.

use super::request::{Request, digest};
use crate::limits::DIGEST_ABOVE_BYTES;
use bytes::Bytes;
use emberkeep_hot::command::*;

/// One string that is compared and set.
pub(crate) struct CompareAndSet<'a> {
    key: &'a RawKey,
    /// What the bodies saw; `None` = nothing there.
    expected: Option<&'a Bytes>,
    value: &'a Bytes,
    expiry: Expiry,
    ask_lease: bool,
}

impl<'a> CompareAndSet<'a> {
    /// A group as a swap, if it is one.
    pub(crate) fn of(
        reads: &'a [(RawKey, Read, Reply)],
        effects: &'a Effects,
        ask_lease: bool,
    ) -> Option<CompareAndSet<'a>> {
        let ([(key, Read::Get, reply)], [(written, Write::Set(value, expiry))]) =
            (reads, &effects.writes[..])
        else {
            return None;
        };
        let expected = match reply {
            Reply::Nil => None,
            Reply::Blob(blob) => Some(blob),
            _ => return None,
        };
        let quiet = effects.log.is_empty() && effects.messages.is_empty();
        (key == written && quiet).then_some(CompareAndSet {
            key,
            expected,
            value,
            expiry: *expiry,
            ask_lease,
        })
    }

    /// Whether it is of this key.
    pub(crate) fn is_of(&self, key: &RawKey) -> bool {
        self.key == key
    }

    /// Tag and expectation, as the script reads them.
    fn expectation(&self, process: &str) -> (&'static [u8], Bytes) {
        let tag = |plain, asking| if self.ask_lease { asking } else { plain };
        match self.expected {
            None => (tag(b"n", b"N"), Bytes::new()),
            Some(blob) if blob.len() > DIGEST_ABOVE_BYTES => {
                (tag(b"d", b"D"), Bytes::from(digest(process, blob)))
            }
            Some(blob) => (tag(b"s", b"S"), blob.clone()),
        }
    }
}

impl Request {
    /// A call of swaps, each of another key, and of strings that transactions miss. `None` if they miss something else.
    pub(crate) fn of_swaps(
        swaps: &[CompareAndSet<'_>],
        fetches: &[(RawKey, Read)],
        process: &str,
    ) -> Option<Request> {
        let mut call = Request::default();
        call.swaps = true;
        call.words.push(swaps.len().to_string().as_bytes());
        for (key, read) in fetches {
            match read {
                Read::Get => call.fetched.push(key.clone()),
                _ => return None,
            }
        }
        for swap in swaps {
            call.keys.push(swap.key.clone());
            let (tag, expected) = swap.expectation(process);
            let words = &mut call.words;
            words.push(tag);
            words.push(&expected);
            words.push(swap.value);
            match swap.expiry {
                Expiry::Never => words.push(b""),
                Expiry::Keep => words.push(b"KEEPTTL"),
                Expiry::At(at) => words.push(at.to_string().as_bytes()),
            };
        }
        call.with_leases = swaps.len();
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_string_that_is_read_and_set_is_a_swap() {
        let key = RawKey::from_static(b"k");
        let set = |key: &RawKey| (key.clone(), Write::Set(Bytes::from_static(b"2"), Expiry::Keep));
        let reads = [(key.clone(), Read::Get, Reply::Blob(Bytes::from_static(b"1")))];
        let mut effects = Effects { writes: vec![set(&key)], ..Effects::default() };
        assert!(CompareAndSet::of(&reads, &effects, false).is_some());
        assert!(CompareAndSet::of(&[], &effects, false).is_none(), "a blind write has nothing to compare");
        let elsewhere = Effects { writes: vec![set(&RawKey::from_static(b"other"))], ..Effects::default() };
        assert!(CompareAndSet::of(&reads, &elsewhere, false).is_none());
        let external = [(key.clone(), Read::Get, Reply::WrongType(KindFound::External))];
        assert!(CompareAndSet::of(&external, &effects, false).is_none());
        effects.messages.push((Bytes::from_static(b"channel"), Bytes::new()));
        assert!(CompareAndSet::of(&reads, &effects, false).is_none());
    }
}
