//! Key parts: the typed values between the colons of a key.
//!
//! A part type is valid by construction, so that building a key cannot fail. Its text is
//! canonical: `parse(write(x)) == x` and `write(parse(s)) == s`, so one entity has one key.

use crate::limits::PART_BYTES_MAX;
use thiserror::Error;
use uuid::Uuid;

/// Where a part writes its text: a `Vec<u8>`, or the inline buffer of a key.
pub trait Sink {
    /// Appends `bytes`. It cannot fail: a part is at most as long as it declares.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// What texts a part type can take. Used to refuse two patterns that could both match one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Canonical decimal integers: no leading zeros, no plus sign.
    Integer,
    /// Canonical lower-case hyphenated UUIDs.
    Uuid,
    /// Any other text; it may look like an integer or a UUID.
    Text,
}

impl Shape {
    /// Whether some text is of both shapes.
    pub const fn overlaps(self, other: Shape) -> bool {
        match (self, other) {
            (Shape::Integer, Shape::Uuid) | (Shape::Uuid, Shape::Integer) => false,
            (Shape::Integer | Shape::Uuid | Shape::Text, _) => true,
        }
    }
}

/// A typed value between two colons of a key.
///
/// Contract of an implementation, relied on by [`Key`](crate::Key):
/// 1. `write` gives 1 to [`BYTES_MAX`](Part::BYTES_MAX) bytes of UTF-8 without `:`, `{`, `}` and control
///    characters;
/// 2. `parse` accepts exactly the texts that `write` gives, and gives the value back.
///
/// [`part!`](crate::part!) declares a new type over an existing part and keeps the contract by itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a key",
    label = "not a key part",
    note = "use `Name` for text, an integer or a `Uuid`, or a type of your own declared with `part!`"
)]
pub trait Part: Sized {
    /// Name of the type in the documents.
    const TYPE: &'static str;
    /// Which texts it takes.
    const SHAPE: Shape = Shape::Text;
    /// Longest text that `write` gives.
    const BYTES_MAX: usize = PART_BYTES_MAX;

    /// Appends the canonical text.
    fn write<S: Sink>(&self, out: &mut S);

    /// Reads the canonical text, and nothing else.
    fn parse(text: &str) -> Option<Self>;
}

/// What `key(…)` of a family takes for a part of type `P`: the part, by value or by reference.
#[diagnostic::on_unimplemented(
    message = "this part of the key is a `{P}`, not a `{Self}`",
    label = "expected `{P}`",
    note = "the `parts` of the family say which types its keys take; a type made by `part!` is built like `{P}(…)`"
)]
pub trait PartValue<P> {
    /// The part, borrowed.
    fn part(&self) -> &P;
}

impl<P: Part> PartValue<P> for P {
    #[inline]
    fn part(&self) -> &P {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<P: Part> PartValue<P> for &P {
    #[inline]
    fn part(&self) -> &P {
        self
    }
}

/// A text that cannot stand in a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidPart {
    /// The text has no bytes.
    #[error("a key part is empty; expected 1 to {PART_BYTES_MAX} bytes of text")]
    Empty,
    /// More than [`PART_BYTES_MAX`] bytes.
    #[error("a key part has {bytes} bytes; expected 1 to {PART_BYTES_MAX}")]
    TooLong {
        /// How many were given.
        bytes: usize,
    },
    /// A character that separates parts or marks the Cluster tag, or a control character.
    #[error(
        "a key part holds {character:?} at byte {at}; expected text without ':', '{{', '}}' and control characters"
    )]
    Character {
        /// The first character that is not allowed.
        character: char,
        /// Its offset in bytes.
        at: usize,
    },
}

/// Checks the rules for the text of a part.
pub(crate) fn check_text(text: &str) -> Result<(), InvalidPart> {
    if text.is_empty() {
        return Err(InvalidPart::Empty);
    }
    if text.len() > PART_BYTES_MAX {
        return Err(InvalidPart::TooLong { bytes: text.len() });
    }
    let refused = |c: char| matches!(c, ':' | '{' | '}') || c.is_control();
    match text.char_indices().find(|(_, c)| refused(*c)) {
        Some((at, character)) => Err(InvalidPart::Character { character, at }),
        None => Ok(()),
    }
}

/// Whether `text` may stand in a key; for constants, where only ASCII needs to be distinguished.
#[doc(hidden)]
pub const fn is_constant_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_graphic() || matches!(bytes[at], b':' | b'{' | b'}') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() <= PART_BYTES_MAX
}

macro_rules! integer_parts {
    ($($integer:ident)*) => { $(
        #[diagnostic::do_not_recommend]
        impl Part for $integer {
            const TYPE: &'static str = stringify!($integer);
            const SHAPE: Shape = Shape::Integer;
            const BYTES_MAX: usize = "-170141183460469231731687303715884105728".len();

            #[inline]
            fn write<S: Sink>(&self, out: &mut S) {
                out.put(itoa::Buffer::new().format(*self).as_bytes());
            }

            fn parse(text: &str) -> Option<Self> {
                let value = text.parse().ok()?;
                // "007", "+7" and "-0" are not the canonical text of any integer.
                (itoa::Buffer::new().format::<$integer>(value) == text).then_some(value)
            }
        }
    )* };
}

integer_parts! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize }

impl Part for Uuid {
    const TYPE: &'static str = "uuid";
    const SHAPE: Shape = Shape::Uuid;
    const BYTES_MAX: usize = uuid::fmt::Hyphenated::LENGTH;

    #[inline]
    fn write<S: Sink>(&self, out: &mut S) {
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        out.put(self.as_hyphenated().encode_lower(&mut buffer).as_bytes());
    }

    fn parse(text: &str) -> Option<Self> {
        let value = Uuid::try_parse(text).ok()?;
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        // Upper case, braces and the form without hyphens would be a second key of one entity.
        (value.as_hyphenated().encode_lower(&mut buffer) == text).then_some(value)
    }
}

/// Declares a type of its own over an existing [`Part`], so that a monster's id cannot be given
/// where a map's is wanted. In JSON it is what the inner type is.
///
/// ```
/// emberkeep_schema::part! {
///     /// Unique id of one living monster.
///     #[derive(Copy)]
///     pub struct MonsterId(u32);
/// }
/// assert_eq!(MonsterId(7).to_string(), "7");
/// ```
#[macro_export]
macro_rules! part {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident($inner:ty);) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(
            /// The value that becomes the part's text.
            pub $inner,
        );

        impl $crate::Part for $name {
            const TYPE: &'static str = stringify!($name);
            const SHAPE: $crate::Shape = <$inner as $crate::Part>::SHAPE;
            const BYTES_MAX: usize = <$inner as $crate::Part>::BYTES_MAX;

            #[inline]
            fn write<S: $crate::Sink>(&self, out: &mut S) {
                $crate::Part::write(&self.0, out);
            }

            fn parse(text: &str) -> ::core::option::Option<Self> {
                <$inner as $crate::Part>::parse(text).map($name)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::core::convert::From<$inner> for $name {
            fn from(value: $inner) -> Self {
                $name(value)
            }
        }

        impl $crate::macro_support::serde::Serialize for $name {
            fn serialize<S: $crate::macro_support::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::macro_support::serde::Serialize::serialize(&self.0, serializer)
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::macro_support::serde::Deserialize::deserialize(deserializer).map($name)
            }
        }

        $crate::part_openapi! { $name, $inner }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    part! {
        /// Unique id of one living monster.
        #[derive(Copy)]
        pub(crate) struct MonsterId(u32);
    }

    fn written(part: &impl Part) -> String {
        let mut out = Vec::new();
        part.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_canonical_text_of_an_integer_is_read() {
        assert_eq!(i16::parse("-7"), Some(-7));
        for text in ["007", "+7", "-0", "", " 7", "7 ", "7.0", "1e3", "40000"] {
            assert_eq!(i16::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_the_canonical_text_of_a_uuid_is_read() {
        let text = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(written(&Uuid::parse(text).unwrap()), text);
        assert_eq!(Uuid::parse(&text.to_uppercase()), None);
        assert_eq!(Uuid::parse(&text.replace('-', "")), None);
        assert_eq!(Uuid::parse(&format!("{{{text}}}")), None);
    }

    #[test]
    fn a_declared_part_behaves_like_its_inner_type() {
        assert_eq!(written(&MonsterId(9)), "9");
        assert_eq!(MonsterId::parse("9"), Some(MonsterId(9)));
        assert_eq!(MonsterId::parse("x"), None);
        assert_eq!(serde_json::to_string(&MonsterId(9)).unwrap(), "9");
        assert_eq!(serde_json::from_str::<MonsterId>("9").unwrap(), MonsterId::from(9));
    }

    #[test]
    fn a_constant_part_follows_the_same_rules() {
        assert!(is_constant_part("galaxy"));
        for text in ["", "a:b", "{", "a}", "a b", "\n", "ä"] {
            assert!(!is_constant_part(text), "{text:?}");
        }
    }

    #[test]
    fn the_longest_integer_fits_its_bound() {
        assert!(written(&i128::MIN).len() <= i128::BYTES_MAX);
    }

    proptest! {
        #[test]
        fn an_integer_survives(value: i64, unsigned: u128) {
            prop_assert_eq!(i64::parse(&written(&value)), Some(value));
            prop_assert_eq!(u128::parse(&written(&unsigned)), Some(unsigned));
        }

        #[test]
        fn a_text_that_is_an_integer_is_written_back_the_same(text in "[-+0-9]{1,6}") {
            if let Some(value) = i32::parse(&text) {
                prop_assert_eq!(written(&value), text);
            }
        }

        #[test]
        fn a_uuid_survives(bits: u128) {
            let value = Uuid::from_u128(bits);
            prop_assert_eq!(Uuid::parse(&written(&value)), Some(value));
        }
    }
}
