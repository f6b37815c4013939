//! A short way through JSON in the form that we write ourselves: no white space, no escapes.
//!
//! Nearly every record that we read is one that we wrote, and reading and writing it is most of what a
//! transaction costs. So such JSON has a reader and a writer of its own. They know one answer and one
//! excuse: done, or "not in my form", and then serde_json does it from the start. Everything that is refused
//! is therefore refused by serde_json, in its words. A record of 600 bytes takes about half of serde_json's
//! time.
//!
//! Invariants, each held by a test:
//! 1. What is read here, serde_json reads too, as the same value.
//! 2. What is written here, serde_json would have written, byte for byte.
//! 3. Whatever is doubtful (white space, escapes, numbers of 19 digits, `-0`, depth) is left to it.

mod cursor;
mod reader;
mod writer;

use serde::{Serialize, Serializer, de::DeserializeOwned};

/// How a record asks for the name of a field: as one of a list that begins with the name that should come
/// next. Our reader answers with a unit if it does, and with the name if not; every other one sees an enum
/// of names.
pub const NAMES: &str = "$emberkeep::Names";

/// The name of a field that is known to need no escapes. Our writer does not look at it again; for every
/// other one it is a string.
pub struct PlainName(&'static str);

impl PlainName {
    /// A name, checked while compiling.
    pub const fn new(name: &'static str) -> PlainName {
        let (bytes, mut at) = (name.as_bytes(), 0);
        while at < bytes.len() {
            let byte = bytes[at];
            assert!(
                byte >= 0x20 && byte != b'"' && byte != b'\\',
                "a field's name with characters that JSON escapes"
            );
            at += 1;
        }
        PlainName(name)
    }
}

impl Serialize for PlainName {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(writer::PLAIN_NAME, self.0)
    }
}

/// The value, if it stands there in our own form. `None` says nothing about whether it is valid.
#[inline]
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let mut reader = reader::Reader::new(bytes);
    let value = T::deserialize(&mut reader).ok()?;
    reader.is_at_end().then_some(value)
}

/// Appends the value. `false` if that is not our business; then `out` is as it was.
#[inline]
pub(crate) fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    let done = value.serialize(writer::Writer::new(out)).is_ok();
    if !done {
        out.truncate(before);
    }
    done
}

#[cfg(test)]
mod tests;
