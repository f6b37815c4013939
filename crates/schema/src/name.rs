//! `Name`: text that is allowed in a key.

use crate::part::{InvalidPart, Part, Sink, check_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, ops::Deref, str::FromStr, sync::Arc};

/// Text that is allowed in a key: 1 to 256 bytes without `:`, `{`, `}` and control characters.
///
/// Cloning is cheap, because names are also partitions and travel with every transaction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// Checks `text` and keeps it.
    pub fn new(text: impl AsRef<str>) -> Result<Name, InvalidPart> {
        let text = text.as_ref();
        check_text(text)?;
        Ok(Name(Arc::from(text)))
    }

    /// The text as it stands in keys.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Part for Name {
    const TYPE: &'static str = "name";

    #[inline]
    fn write<S: Sink>(&self, out: &mut S) {
        out.put(self.0.as_bytes());
    }

    fn parse(text: &str) -> Option<Self> {
        Name::new(text).ok()
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl FromStr for Name {
    type Err = InvalidPart;

    fn from_str(text: &str) -> Result<Name, InvalidPart> {
        Name::new(text)
    }
}

impl TryFrom<&str> for Name {
    type Error = InvalidPart;

    fn try_from(text: &str) -> Result<Name, InvalidPart> {
        Name::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidPart;

    fn try_from(text: String) -> Result<Name, InvalidPart> {
        Name::new(text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        // Cow, because a JSON string with escapes cannot be borrowed.
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Name::new(text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_refusal_says_what_was_wrong_and_what_was_expected() {
        let refused = |text: &str| Name::new(text).unwrap_err().to_string();
        assert_eq!(refused(""), "a key part is empty; expected 1 to 256 bytes of text");
        assert_eq!(refused(&"x".repeat(257)), "a key part has 257 bytes; expected 1 to 256");
        assert_eq!(
            refused("a:b"),
            "a key part holds ':' at byte 1; expected text without ':', '{', '}' and control characters"
        );
        for text in ["{", "}", "a\n", "\0", "\u{85}"] {
            assert!(matches!(Name::new(text), Err(InvalidPart::Character { .. })), "{text:?}");
        }
    }

    #[test]
    fn unicode_and_spaces_are_names() {
        assert_eq!(Name::new("Proxima Centauri β").unwrap(), "Proxima Centauri β");
    }

    #[test]
    fn json_is_checked_too() {
        assert_eq!(serde_json::from_str::<Name>(r#""a\u0062""#).unwrap(), "ab");
        assert!(serde_json::from_str::<Name>(r#""a:b""#).is_err());
    }

    proptest! {
        #[test]
        fn a_name_survives(text in "[^:{}\\p{Cc}]{1,60}") {
            let name = Name::new(&text).unwrap();
            let mut out = Vec::new();
            name.write(&mut out);
            prop_assert_eq!(&out, text.as_bytes());
            prop_assert_eq!(Name::parse(&text), Some(name));
        }
    }
}
