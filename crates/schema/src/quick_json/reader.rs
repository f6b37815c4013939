//! serde's view of the cursor. Each method takes what serde_json takes there, or less.

use super::NAMES;
use super::cursor::{Cursor, Number, Unusual};
use serde::de::value::MapDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, Visitor};
use std::fmt;

/// As deep as serde_json goes.
const DEPTH_MAX: u32 = 127;
/// How serde_json asks for the text of a value as it stands.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// A reader over one text.
pub(super) struct Reader<'de> {
    cursor: Cursor<'de>,
    depth: u32,
}

impl fmt::Display for Unusual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not in our own form")
    }
}

impl std::error::Error for Unusual {}

impl de::Error for Unusual {
    // The words are serde_json's: it reads the text again.
    fn custom<T: fmt::Display>(_: T) -> Unusual {
        Unusual
    }
}

type Result<T> = std::result::Result<T, Unusual>;

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Reader<'de> {
        Reader { cursor: Cursor::new(bytes), depth: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.cursor.is_at_end()
    }

    #[inline]
    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        match self.cursor.number()? {
            Number::Natural(number) => visitor.visit_u64(number),
            Number::Negative(number) => visitor.visit_i64(number),
            Number::Float(number) => visitor.visit_f64(number),
        }
    }

    /// The text of a value, as serde_json hands it over: an object of one field with a name of its own.
    fn raw<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let start = self.cursor.place();
        IgnoredAny::deserialize(&mut *self)?;
        let text = self.cursor.since(start)?;
        visitor.visit_map(MapDeserializer::new(std::iter::once((RAW_VALUE, text))))
    }

    /// Opens a bracket, lets `inside` read, and wants the other one.
    #[inline]
    fn nested<T>(
        &mut self,
        brackets: [u8; 2],
        inside: impl FnOnce(&mut Items<'_, 'de>) -> Result<T>,
    ) -> Result<T> {
        self.cursor.eat(brackets[0])?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Unusual);
        }
        let mut items = Items { reader: self, close: brackets[1], first: true };
        let value = inside(&mut items)?;
        self.cursor.eat(brackets[1])?;
        self.depth -= 1;
        Ok(value)
    }
}

/// Methods that take a number.
macro_rules! numbers {
    ($($method:ident)*) => { $(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.visit_number(visitor)
        }
    )* };
}

/// Methods that leave the text to serde_json.
macro_rules! refused {
    ($($method:ident($($argument:ty),*))*) => { $(
        fn $method<V: Visitor<'de>>(self, $(_: $argument,)* _: V) -> Result<V::Value> {
            Err(Unusual)
        }
    )* };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unusual;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.cursor.peek() {
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b'"' => self.deserialize_str(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => self.deserialize_unit(visitor),
            _ => self.visit_number(visitor),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f64
    }

    // A short float is rounded once, from its digits, not twice.
    refused! { deserialize_f32() deserialize_bytes() deserialize_byte_buf() }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let yes = self.cursor.peek() == b't';
        self.cursor.eat_all(if yes { b"true" } else { b"false" })?;
        visitor.visit_bool(yes)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_str(self.cursor.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.cursor.eat_all(b"null")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.cursor.peek() == b'n' {
            self.cursor.eat_all(b"null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if name == RAW_VALUE { self.raw(visitor) } else { visitor.visit_newtype_struct(self) }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.nested([b'[', b']'], |items| visitor.visit_seq(items))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.nested([b'{', b'}'], |items| visitor.visit_map(items))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        // A variant without content; one with content is an object.
        visitor.visit_enum(self.cursor.text()?.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }
}

/// The elements of a list, or the fields of an object.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    close: u8,
    first: bool,
}

impl Items<'_, '_> {
    /// Whether there is another one; the cursor stands before it.
    #[inline]
    fn goes_on(&mut self) -> Result<bool> {
        let cursor = &mut self.reader.cursor;
        if cursor.peek() == self.close {
            return Ok(false);
        }
        if !std::mem::replace(&mut self.first, false) {
            cursor.eat(b',')?;
            // A comma before the end is a mistake.
            if cursor.peek() == self.close {
                return Err(Unusual);
            }
        }
        Ok(true)
    }
}

impl<'de> de::SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.goes_on()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> de::MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if self.goes_on()? { seed.deserialize(Name(&mut self.reader.cursor)).map(Some) } else { Ok(None) }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.reader.cursor.eat(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The name of a field.
struct Name<'r, 'de>(&'r mut Cursor<'de>);

impl<'de> Deserializer<'de> for Name<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_borrowed_str(self.0.text()?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if name == RAW_VALUE { Err(Unusual) } else { visitor.visit_newtype_struct(self) }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if name != NAMES {
            return visitor.visit_enum(self.0.text()?.into_deserializer());
        }
        match variants.first() {
            Some(expected) if self.0.eat_quoted(expected.as_bytes()) => visitor.visit_unit(),
            _ => visitor.visit_borrowed_str(self.0.text()?),
        }
    }

    // serde_json reads numbers out of names; we leave that to it.
    refused! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_f32()
        deserialize_f64() deserialize_bytes() deserialize_byte_buf() deserialize_option()
    }

    serde::forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
