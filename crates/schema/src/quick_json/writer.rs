//! serde's view of a buffer: compact JSON, byte for byte what serde_json writes.

use super::cursor::{Unusual, needs_no_escape};
use super::reader::RAW_VALUE;
use serde::ser::{self, Impossible, Serialize, Serializer};
use std::fmt;

type Result<T = ()> = std::result::Result<T, Unusual>;

impl ser::Error for Unusual {
    // The words are serde_json's: it writes the value again.
    fn custom<T: fmt::Display>(_: T) -> Unusual {
        Unusual
    }
}

/// How a [`PlainName`](super::PlainName) makes itself known.
pub(super) const PLAIN_NAME: &str = "$emberkeep::PlainName";

/// What is known of the next string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// It can have any characters.
    Any,
    /// It needs no escapes.
    Plain,
    /// It is JSON already.
    Raw,
}

/// Writes one value at the end of a buffer.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    text: Text,
}

impl<'a> Writer<'a> {
    #[inline]
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, text: Text::Any }
    }

    #[inline]
    fn word(self, word: &[u8]) -> Result {
        self.out.extend_from_slice(word);
        Ok(())
    }
}

/// A string with its quotes. Strings that need escapes are written by serde_json.
#[inline]
fn quote(out: &mut Vec<u8>, text: &str) -> Result {
    if !needs_no_escape(text.as_bytes()) {
        return serde_json::to_writer(out, text).map_err(|_| Unusual);
    }
    quote_plain(out, text)
}

#[inline]
fn quote_plain(out: &mut Vec<u8>, text: &str) -> Result {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// The serializer's methods for integers, in decimal.
macro_rules! integers {
    ($($method:ident($integer:ty))*) => { $(
        #[inline]
        fn $method(self, number: $integer) -> Result {
            self.word(itoa::Buffer::new().format(number).as_bytes())
        }
    )* };
}

/// Methods that leave the value to serde_json.
macro_rules! refused {
    ($($method:ident($($argument:ty),*) -> $result:ty;)*) => { $(
        fn $method(self, $(_: $argument),*) -> Result<$result> {
            Err(Unusual)
        }
    )* };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Unusual;
    type SerializeSeq = List<'a>;
    type SerializeTuple = List<'a>;
    type SerializeTupleStruct = List<'a>;
    type SerializeTupleVariant = Impossible<(), Unusual>;
    type SerializeMap = List<'a>;
    type SerializeStruct = Struct<'a>;
    type SerializeStructVariant = Impossible<(), Unusual>;

    integers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    refused! {
        serialize_i128(i128) -> ();
        serialize_u128(u128) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result {
        Err(Unusual)
    }

    fn serialize_bool(self, yes: bool) -> Result {
        self.word(if yes { b"true" } else { b"false" })
    }

    fn serialize_f32(self, number: f32) -> Result {
        serde_json::to_writer(self.out, &number).map_err(|_| Unusual)
    }

    fn serialize_f64(self, number: f64) -> Result {
        serde_json::to_writer(self.out, &number).map_err(|_| Unusual)
    }

    fn serialize_char(self, character: char) -> Result {
        quote(self.out, character.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result {
        match self.text {
            Text::Any => quote(self.out, text),
            Text::Plain => quote_plain(self.out, text),
            Text::Raw => self.word(text.as_bytes()),
        }
    }

    fn serialize_none(self) -> Result {
        self.word(b"null")
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result {
        self.word(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.word(b"null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        quote(self.out, variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result {
        let text = if name == PLAIN_NAME { Text::Plain } else { Text::Any };
        value.serialize(Writer { text, ..self })
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<List<'a>> {
        Ok(List::open(self.out, [b'[', b']']))
    }

    fn serialize_tuple(self, _: usize) -> Result<List<'a>> {
        Ok(List::open(self.out, [b'[', b']']))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List<'a>> {
        Ok(List::open(self.out, [b'[', b']']))
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<List<'a>> {
        Ok(List::open(self.out, [b'{', b'}']))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'a>> {
        Ok(match name {
            RAW_VALUE => Struct::Raw(self.out),
            _ => Struct::Fields(List::open(self.out, [b'{', b'}'])),
        })
    }
}

/// A list or an object under construction.
pub(super) struct List<'a> {
    out: &'a mut Vec<u8>,
    close: u8,
    first: bool,
}

impl<'a> List<'a> {
    #[inline]
    fn open(out: &'a mut Vec<u8>, brackets: [u8; 2]) -> List<'a> {
        out.push(brackets[0]);
        List { out, close: brackets[1], first: true }
    }

    #[inline]
    fn next(&mut self) -> &mut Vec<u8> {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
        self.out
    }

    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        value.serialize(Writer::new(self.next()))
    }

    #[inline]
    fn close(self) -> Result {
        self.out.push(self.close);
        Ok(())
    }
}

impl ser::SerializeSeq for List<'_> {
    type Ok = ();
    type Error = Unusual;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.item(value)
    }

    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeTuple for List<'_> {
    type Ok = ();
    type Error = Unusual;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.item(value)
    }

    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeTupleStruct for List<'_> {
    type Ok = ();
    type Error = Unusual;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.item(value)
    }

    fn end(self) -> Result {
        self.close()
    }
}

impl ser::SerializeMap for List<'_> {
    type Ok = ();
    type Error = Unusual;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        let out = self.next();
        let start = out.len();
        key.serialize(Writer::new(out))?;
        // serde_json writes other names as strings too; we leave that to it.
        if out.get(start) == Some(&b'"') { Ok(()) } else { Err(Unusual) }
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        self.out.push(b':');
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result {
        self.close()
    }
}

/// A struct: an object, or the text of a value as it stands.
pub(super) enum Struct<'a> {
    Fields(List<'a>),
    Raw(&'a mut Vec<u8>),
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = Unusual;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result {
        match self {
            Struct::Fields(list) => {
                quote(list.next(), name)?;
                ser::SerializeMap::serialize_value(list, value)
            }
            // Its only field is its text.
            Struct::Raw(out) => value.serialize(Writer { out, text: Text::Raw }),
        }
    }

    fn end(self) -> Result {
        match self {
            Struct::Fields(list) => list.close(),
            Struct::Raw(_) => Ok(()),
        }
    }
}
