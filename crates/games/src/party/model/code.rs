//! Room codes: short enough to read aloud.

use crate::party::error::Error;
use emberkeep_schema::{Part, Sink, partition};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// Characters of a code.
const LENGTH: usize = 6;
/// The alphabet: no characters that look alike. It has 32 characters, so that five random bits select one.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// The code of a room: 6 characters of A–Z without I and O, and of 2–9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomCode([u8; LENGTH]);

partition! {
    /// One room. All its keys, its log and its channel are in this partition.
    #[derive(Copy)]
    pub struct Room(RoomCode) as "code";
}

impl RoomCode {
    /// Random bytes that a code needs.
    pub(crate) const RANDOM_BYTES: usize = LENGTH;

    /// Parses a code as people type it: lower case and surrounding spaces are accepted.
    pub fn new(typed: &str) -> Result<RoomCode, Error> {
        RoomCode::exact(&typed.trim().to_ascii_uppercase()).ok_or_else(|| {
            let problem = "expected 6 characters of A-Z without I and O and of 2-9";
            Error::invalid("room code", problem)
        })
    }

    /// A code from random bytes. Each character uses five bits of a byte, so that all codes are equally
    /// likely.
    pub(crate) fn of_random(bytes: [u8; LENGTH]) -> RoomCode {
        RoomCode(bytes.map(|byte| ALPHABET[usize::from(byte & 31)]))
    }

    fn exact(text: &str) -> Option<RoomCode> {
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|byte| ALPHABET.contains(byte)).then_some(RoomCode(bytes))
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a code is made of ASCII")
    }
}

impl Part for RoomCode {
    const TYPE: &'static str = "room code";
    const BYTES_MAX: usize = LENGTH;

    fn write<S: Sink>(&self, out: &mut S) {
        out.put(&self.0);
    }

    fn parse(text: &str) -> Option<Self> {
        RoomCode::exact(text)
    }
}

impl FromStr for RoomCode {
    type Err = Error;

    fn from_str(text: &str) -> Result<RoomCode, Error> {
        RoomCode::new(text)
    }
}

impl fmt::Display for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RoomCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RoomCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        RoomCode::new(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        assert_eq!(RoomCode::new(" ab23cd ").unwrap().to_string(), "AB23CD");
        for text in ["", "AB23C", "AB23CDE", "AB12CD", "AB0CDE", "IBCDEF", "OBCDEF", "ÄB23C", "AB 23C"] {
            assert_eq!(RoomCode::new(text).unwrap_err().code(), "invalid_payload", "{text}");
        }
    }

    #[test]
    fn only_one_text_is_a_key_part() {
        assert_eq!(RoomCode::parse("AB23CD"), Some(RoomCode::new("ab23cd").unwrap()));
        assert_eq!(RoomCode::parse("ab23cd"), None);
    }

    proptest! {
        #[test]
        fn random_bytes_always_make_a_code(bytes: [u8; 6]) {
            let code = RoomCode::of_random(bytes);
            prop_assert_eq!(RoomCode::parse(code.as_str()), Some(code));
        }
    }
}
