//! Codecs: the encoding of stored values, chosen per family.
//!
//! Marker types, never instantiated. Callers use the plain value: a family of `Text<Json<Monster>>` reads
//! and writes `Monster`.

use crate::{part::Part, quick_json, value_error::ValueError};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// Encodes and decodes a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how its values are stored",
    label = "not a codec",
    note = "write `Json<{Self}>` for a record or anything that serde knows, `Number<{Self}>` for an integer, \
            `Id<{Self}>` for a key part; `Utf8` is text, `Raw` is bytes"
)]
pub trait Codec: 'static {
    /// The plain value.
    type Value: Send + 'static;
    /// The name of the encoding in the documents.
    const TYPE: &'static str;

    /// Appends the bytes of `value`. After an error `out` is as it was.
    fn encode(value: &Self::Value, out: &mut Vec<u8>) -> Result<(), ValueError>;

    /// Reads a value back.
    fn decode(bytes: &[u8]) -> Result<Self::Value, ValueError>;
}

/// JSON. Use [`record!`](crate::record!) for `T` to keep unknown fields.
pub struct Json<T>(PhantomData<fn() -> T>);

/// A canonical decimal integer: what `INCR` reads and writes.
pub struct Number<T>(PhantomData<fn() -> T>);

/// Text.
pub struct Utf8;

/// Any bytes.
pub struct Raw;

/// The canonical text of a key part: a member of an index is the text in the record's key.
pub struct Id<P>(PhantomData<fn() -> P>);

impl<T: Serialize + DeserializeOwned + Send + 'static> Codec for Json<T> {
    type Value = T;
    const TYPE: &'static str = "JSON";

    fn encode(value: &T, out: &mut Vec<u8>) -> Result<(), ValueError> {
        if quick_json::write(value, out) {
            return Ok(());
        }
        let before = out.len();
        serde_json::to_writer(&mut *out, value).map_err(|error| {
            out.truncate(before);
            ValueError::writing_json(&error)
        })
    }

    fn decode(bytes: &[u8]) -> Result<T, ValueError> {
        match quick_json::read(bytes) {
            Some(value) => Ok(value),
            None => {
                serde_json::from_slice(bytes).map_err(|error| ValueError::reading_json(&error, bytes.len()))
            }
        }
    }
}

/// Reads the canonical text of a part.
fn decode_part<P: Part>(bytes: &[u8]) -> Result<P, ValueError> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(P::parse).ok_or(ValueError::NotCanonical { expected: P::TYPE, bytes: bytes.len() })
}

macro_rules! number_codecs {
    ($($integer:ident)*) => { $(
        #[diagnostic::do_not_recommend]
        impl Codec for Number<$integer> {
            type Value = $integer;
            const TYPE: &'static str = "integer";

            fn encode(value: &$integer, out: &mut Vec<u8>) -> Result<(), ValueError> {
                value.write(out);
                Ok(())
            }

            fn decode(bytes: &[u8]) -> Result<$integer, ValueError> {
                decode_part(bytes)
            }
        }
    )* };
}

number_codecs! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 }

impl Codec for Utf8 {
    type Value = String;
    const TYPE: &'static str = "text";

    fn encode(value: &String, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<String, ValueError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(ValueError::NotUtf8 { at: error.valid_up_to(), bytes: bytes.len() }),
        }
    }
}

impl Codec for Raw {
    type Value = Vec<u8>;
    const TYPE: &'static str = "bytes";

    fn encode(value: &Vec<u8>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(value);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Vec<u8>, ValueError> {
        Ok(bytes.to_vec())
    }
}

impl<P: Part + Send + 'static> Codec for Id<P> {
    type Value = P;
    const TYPE: &'static str = P::TYPE;

    fn encode(value: &P, out: &mut Vec<u8>) -> Result<(), ValueError> {
        value.write(out);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<P, ValueError> {
        decode_part(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn encoded<C: Codec>(value: &C::Value) -> Vec<u8> {
        let mut out = b"before".to_vec();
        C::encode(value, &mut out).unwrap();
        out.split_off(b"before".len())
    }

    #[test]
    fn text_that_is_not_utf8_is_a_typed_error() {
        assert_eq!(Utf8::decode(b"ab\xff"), Err(ValueError::NotUtf8 { at: 2, bytes: 3 }));
        assert_eq!(Raw::decode(b"ab\xff"), Ok(b"ab\xff".to_vec()));
    }

    #[test]
    fn only_canonical_numbers_are_read() {
        assert_eq!(Number::<i64>::decode(b"-12"), Ok(-12));
        let refused = Number::<i64>::decode(b"012").unwrap_err();
        assert_eq!(refused, ValueError::NotCanonical { expected: "i64", bytes: 3 });
        assert_eq!(Id::<u32>::decode(b"7"), Ok(7));
        assert!(Id::<u32>::decode(b"\xff").is_err());
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        let no_json = BTreeMap::from([(vec![1u8], 2)]);
        assert!(Json::<BTreeMap<Vec<u8>, i32>>::encode(&no_json, &mut out).is_err());
        assert_eq!(out, b"before");
    }

    proptest! {
        #[test]
        fn values_survive(number: i64, text: String, bytes: Vec<u8>, float: f64) {
            prop_assert_eq!(Number::<i64>::decode(&encoded::<Number<i64>>(&number)), Ok(number));
            prop_assert_eq!(Utf8::decode(&encoded::<Utf8>(&text)), Ok(text.clone()));
            prop_assert_eq!(Raw::decode(&encoded::<Raw>(&bytes)), Ok(bytes));
            prop_assert_eq!(Json::<f64>::decode(&encoded::<Json<f64>>(&float)), Ok(float));
            prop_assert_eq!(Json::<String>::decode(&encoded::<Json<String>>(&text)), Ok(text));
        }
    }
}
