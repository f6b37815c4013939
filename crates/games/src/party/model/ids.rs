//! Ids of players, senders, devices, rounds and items: short texts that clients choose.

use crate::party::error::Error;
use crate::party::limits::ID_BYTES_MAX;
use emberkeep_schema::{Codec, Name, Part, Sink, ValueError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, sync::Arc};

/// Checks a stored or new id. Quotes and backslashes are refused because they grow in JSON.
fn check(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > ID_BYTES_MAX {
        return Err(format!("{} bytes, expected 1 to {ID_BYTES_MAX}", text.len()));
    }
    match text.chars().find(|c| c.is_control() || matches!(c, '"' | '\\')) {
        Some(c) => {
            Err(format!("contains {c:?}, expected text without quotes, backslashes and control characters"))
        }
        None => Ok(()),
    }
}

/// Checks a new id further. Ids become keys of JSON objects, so names with a meaning in JavaScript objects
/// are refused. A stored id may have such a name, because earlier versions accepted it.
fn check_new(text: &str) -> Result<(), String> {
    if matches!(text, "__proto__" | "constructor" | "prototype") {
        return Err(format!("{text:?}, expected a name that is not a property of JavaScript objects"));
    }
    Ok(())
}

macro_rules! ids {
    ($($(#[$attribute:meta])* $name:ident: $what:literal, $inner:ty, $make:expr;)*) => { $(
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// Checks the text: 1 to 64 bytes without quotes, backslashes and control characters.
            pub fn new(text: impl AsRef<str>) -> Result<$name, Error> {
                let id = $name::stored(text.as_ref())?;
                id.check_new()?;
                Ok(id)
            }

            /// Refuses an id that was read and that a room must not start to use.
            pub(in crate::party) fn check_new(&self) -> Result<(), Error> {
                check_new(self.as_str()).map_err(|problem| Error::invalid($what, problem))
            }

            /// An id from the store, or from a request that names something existing.
            fn stored(text: &str) -> Result<$name, Error> {
                check(text).map_err(|problem| Error::invalid($what, problem))?;
                let make: fn(&str) -> Result<$inner, Error> = $make;
                make(text).map($name)
            }

            /// The text that the client chose.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                $name::stored(&text).map_err(D::Error::custom)
            }
        }
    )* };
}

ids! {
    /// The id of a player.
    PlayerId: "player id", Arc<str>, |text| Ok(Arc::from(text));
    /// The id of a sender.
    SenderId: "sender id", Arc<str>, |text| Ok(Arc::from(text));
    /// The id of a device: a random secret of a phone or browser.
    DeviceId: "device id", Arc<str>, |text| Ok(Arc::from(text));
    /// The id of a round; part of a key.
    RoundId: "round id", Name, part_text;
    /// The id of an item; part of a key.
    ItemId: "item id", Name, part_text;
}

fn part_text(text: &str) -> Result<Name, Error> {
    Name::new(text).map_err(|error| Error::invalid("id", error.to_string()))
}

macro_rules! parts {
    ($($name:ident)*) => { $(
        impl Part for $name {
            const TYPE: &'static str = stringify!($name);
            const BYTES_MAX: usize = ID_BYTES_MAX;

            fn write<S: Sink>(&self, out: &mut S) {
                self.0.write(out);
            }

            fn parse(text: &str) -> Option<Self> {
                $name::stored(text).ok()
            }
        }
    )* };
}

parts! { RoundId ItemId }

macro_rules! codecs {
    ($($name:ident)*) => { $(
        /// Encodes the id as its text.
        impl Codec for $name {
            type Value = $name;
            const TYPE: &'static str = stringify!($name);

            fn encode(value: &$name, out: &mut Vec<u8>) -> Result<(), ValueError> {
                out.extend_from_slice(value.as_str().as_bytes());
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<$name, ValueError> {
                let text = std::str::from_utf8(bytes).ok();
                let id = text.and_then(|text| $name::stored(text).ok());
                id.ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
            }
        }
    )* };
}

codecs! { PlayerId DeviceId }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_short_text() {
        assert_eq!(DeviceId::new("ios:7/ä").unwrap().as_str(), "ios:7/ä");
        let long = "x".repeat(ID_BYTES_MAX + 1);
        for text in ["", "a\"b", "a\\b", "a\nb", "__proto__", "constructor", "prototype", long.as_str()] {
            assert_eq!(PlayerId::new(text).unwrap_err().code(), "invalid_payload", "{text}");
        }
        assert!(RoundId::new("a:b").is_err() && RoundId::new("a{b").is_err() && RoundId::new("r1").is_ok());
    }

    #[test]
    fn a_name_that_a_new_id_must_not_have_is_read_from_the_store() {
        for text in ["__proto__", "constructor", "prototype"] {
            let json = format!("{text:?}");
            let (player, round): (PlayerId, RoundId) =
                (serde_json::from_str(&json).unwrap(), serde_json::from_str(&json).unwrap());
            assert_eq!((player.as_str(), round.as_str()), (text, text));
            assert_eq!(DeviceId::decode(text.as_bytes()).unwrap().as_str(), text);
            assert!(ItemId::parse(text).is_some());
            assert_eq!(player.check_new().unwrap_err().code(), "invalid_payload");
        }
    }
}
