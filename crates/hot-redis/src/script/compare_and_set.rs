//! The commonest shape of a group: one string, read whole and set whole. `compare_and_set.lua` serves it in
//! less than half of the time of the general script.

use super::commit_request::{HEADER_BYTES_USUAL, LEASE_KEY_BYTES_USUAL, digest};
use super::layout::{COMPARE_AND_SET_ARGUMENTS, COMPARE_AND_SET_STRING};
use super::request::{Arguments, Header, add_engine_keys, add_keys};
use super::words::Words;
use crate::limits::{DIGEST_ABOVE_BYTES, RECEIPT_TTL};
use bytes::Bytes;
use emberkeep_hot::command::*;
use redis::Cmd;

/// One string that is compared and set.
pub(crate) struct CompareAndSet<'a> {
    key: &'a RawKey,
    /// What the bodies read; `None` = the key was absent.
    expected: Option<&'a Bytes>,
    value: &'a Bytes,
    expiry: Expiry,
    /// The deadline that the key gets if it has none.
    if_none: Option<i64>,
    ask_lease: bool,
}

impl<'a> CompareAndSet<'a> {
    /// A group in this shape; `None` if it does more.
    pub(crate) fn of(
        reads: &'a [(RawKey, Read, Reply)],
        effects: &'a Effects,
        ask_lease: bool,
    ) -> Option<CompareAndSet<'a>> {
        let ([(key, Read::Get, reply)], [(written, Write::Set(value, expiry)), more @ ..]) =
            (reads, &effects.writes[..])
        else {
            return None;
        };
        let if_none = match more {
            [] => None,
            [(same, Write::ExpireAtIfNone(at))] if same == written && *expiry == Expiry::Keep => Some(*at),
            _ => return None,
        };
        let expected = match reply {
            Reply::Nil => None,
            Reply::Blob(blob) => Some(blob),
            _ => return None,
        };
        let has_no_events = effects.log.is_empty() && effects.woken.is_empty() && effects.messages.is_empty();
        (key == written && has_no_events).then_some(CompareAndSet {
            key,
            expected,
            value,
            expiry: *expiry,
            if_none,
            ask_lease,
        })
    }

    pub(crate) fn is_of(&self, key: &RawKey) -> bool {
        self.key == key
    }

    /// The words TAG and EXPECTED.
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

/// A call of the script that compares and sets strings.
#[derive(Default)]
pub(crate) struct CompareAndSetRequest {
    keys: Vec<RawKey>,
    /// Strings that transactions still miss.
    fetched: Vec<RawKey>,
    words: Words,
}

impl CompareAndSetRequest {
    /// A call that sets these strings, each of another key, then makes the reads. `None` if one is not of a
    /// string.
    pub(crate) fn new(
        strings: &[CompareAndSet<'_>],
        fetches: &[(RawKey, Read)],
        process: &str,
    ) -> Option<CompareAndSetRequest> {
        let mut request = CompareAndSetRequest::default();
        for (key, read) in fetches {
            match read {
                Read::Get => request.fetched.push(key.clone()),
                _ => return None,
            }
        }
        for string in strings {
            request.keys.push(string.key.clone());
            let (tag, expected) = string.expectation(process);
            let expiry = match (string.expiry, string.if_none, string.expected) {
                (Expiry::Keep, Some(at), Some(_)) => format!("+{at}"),
                // The key is absent, so it has no deadline.
                (Expiry::Keep, Some(at), None) | (Expiry::At(at), ..) => at.to_string(),
                (Expiry::Keep, None, _) => "KEEPTTL".into(),
                (Expiry::Never, ..) => String::new(),
            };
            let words: [(&str, &[u8]); 4] = [
                ("TAG", tag),
                ("EXPECTED", &expected),
                ("VALUE", string.value),
                ("EXPIRY", expiry.as_bytes()),
            ];
            debug_assert!(words.iter().map(|(name, _)| name).eq(COMPARE_AND_SET_STRING.names));
            words.iter().for_each(|(_, word)| {
                request.words.push(word);
            });
        }
        Some(request)
    }

    pub(super) fn command(&self, verb: &str, script: &str, header: &Header<'_>) -> Cmd {
        let keys_bytes: usize = self.keys.iter().map(|key| 2 * key.len() + LEASE_KEY_BYTES_USUAL).sum();
        let fetched_bytes: usize = self.fetched.iter().map(|key| key.len()).sum();
        let bytes = self.words.bytes() + keys_bytes + fetched_bytes + script.len() + HEADER_BYTES_USUAL;
        let arguments = self.words.len() + 2 * self.keys.len() + self.fetched.len() + 14;
        let (declared, hidden) = header.divide(&self.fetched, 0);
        let mut cmd = Cmd::with_capacity(arguments, bytes);
        let engine_keys = if header.receipt.is_some() { self.keys.len() + 1 } else { 0 };
        cmd.arg(verb).arg(script).arg(self.keys.len() + engine_keys + declared.len());
        add_keys(&mut cmd, &self.keys);
        add_engine_keys(&mut cmd, &self.keys, header);
        add_keys(&mut cmd, declared);
        Arguments::new(&mut cmd, &COMPARE_AND_SET_ARGUMENTS)
            .add("SEQUENCE", header.sequence())
            .add("TIME", header.time())
            .add("PROCESS", header.process)
            .add("LEASE_MS", header.lease.as_millis() as u64)
            .add("RECEIPT_MS", RECEIPT_TTL.as_millis() as u64)
            .add("ALLOWANCE_MS", header.allowance.as_millis() as u64)
            .add("COUNT", self.keys.len())
            .add("HIDDEN", hidden.len())
            .add("PROBE", header.probe())
            .end();
        self.words.iter().for_each(|word| {
            cmd.arg(word);
        });
        add_keys(&mut cmd, hidden);
        cmd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_string_that_is_read_and_set_has_this_shape() {
        let key = RawKey::from_static(b"k");
        let set = |key: &RawKey| (key.clone(), Write::Set(Bytes::from_static(b"2"), Expiry::Keep));
        let reads = [(key.clone(), Read::Get, Reply::Blob(Bytes::from_static(b"1")))];
        let mut effects = Effects { writes: vec![set(&key)], ..Effects::default() };
        assert!(CompareAndSet::of(&reads, &effects, false).is_some());
        let mut fixed = effects.clone();
        fixed.writes.push((key.clone(), Write::ExpireAtIfNone(7)));
        assert!(CompareAndSet::of(&reads, &fixed, false).is_some());
        assert!(CompareAndSet::of(&[], &effects, false).is_none(), "a blind write has nothing to compare");
        let elsewhere = Effects { writes: vec![set(&RawKey::from_static(b"other"))], ..Effects::default() };
        assert!(CompareAndSet::of(&reads, &elsewhere, false).is_none());
        let external = [(key.clone(), Read::Get, Reply::WrongType(KindFound::External))];
        assert!(CompareAndSet::of(&external, &effects, false).is_none());
        effects.messages.push((Bytes::from_static(b"channel"), Bytes::new()));
        assert!(CompareAndSet::of(&reads, &effects, false).is_none());
    }
}
