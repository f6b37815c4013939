//! Codecs: the encoding of stored values, chosen per family.
//!
//! Marker types, never instantiated. Callers use the plain value: a family of `Text<Json<Monster>>` reads
//! and writes `Monster`.

use crate::{part::Part, quick_json, value_error::ValueError};
use serde::{Serialize, de::DeserializeOwned};
use std::io::Write as _;
use std::marker::PhantomData;

/// Encodes and decodes a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how its values are stored",
    label = "not a codec",
    note = "write `Json<{Self}>` for a record or anything that serde knows, `Number<{Self}>` for an integer, \
            `Id<{Self}>` for a key part; `Utf8` is text, `Raw` is bytes"
)]
pub trait Codec: 'static {
    /// What callers put and get. Its stored bytes are the codec's business.
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

/// A decimal number of `f64` or `f32`: the shortest text that gives back the same value. NaN and infinities
/// are refused, and -0 is stored as 0.
pub struct Float<T>(PhantomData<fn() -> T>);

/// A boolean, stored as `1` or `0`. Any other text is refused.
pub struct Bool;

/// UTF-8 text, stored as it is. Bytes that are not UTF-8 are refused.
pub struct Utf8;

/// Bytes, stored as they are. Every value is accepted.
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

/// Numbers from here on, and below the inverse, are written with an exponent: they would be long otherwise.
const LONG_FLOAT: f64 = 1e17;

macro_rules! float_codecs {
    ($($float:ident)*) => { $(
        impl Codec for Float<$float> {
            type Value = $float;
            const TYPE: &'static str = "decimal number";

            fn encode(value: &$float, out: &mut Vec<u8>) -> Result<(), ValueError> {
                if !value.is_finite() {
                    return Err(ValueError::NotFinite);
                }
                // Adding 0 makes a 0 of -0.
                let (value, size) = (*value + 0.0, f64::from(*value).abs());
                let is_long = size != 0.0 && !(LONG_FLOAT.recip()..LONG_FLOAT).contains(&size);
                let written = if is_long { write!(out, "{value:e}") } else { write!(out, "{value}") };
                written.map_err(|_| ValueError::NotFinite)
            }

            fn decode(bytes: &[u8]) -> Result<$float, ValueError> {
                let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<$float>().ok());
                let wrong = ValueError::NotCanonical { expected: stringify!($float), bytes: bytes.len() };
                number.filter(|number| number.is_finite()).ok_or(wrong)
            }
        }
    )* };
}

float_codecs! { f32 f64 }

impl Codec for Bool {
    type Value = bool;
    const TYPE: &'static str = "0 or 1";

    fn encode(value: &bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.push(if *value { b'1' } else { b'0' });
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<bool, ValueError> {
        match bytes {
            b"1" => Ok(true),
            b"0" => Ok(false),
            _ => Err(ValueError::NotCanonical { expected: "bool", bytes: bytes.len() }),
        }
    }
}

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
    fn floats_are_finite_and_short() {
        let texts =
            [(1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (-2.5, "-2.5"), (1e300, "1e300"), (5e-324, "5e-324")];
        for (number, text) in texts {
            assert_eq!(encoded::<Float<f64>>(&number), text.as_bytes());
        }
        assert_eq!(encoded::<Float<f32>>(&0.1), b"0.1");
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut out = b"before".to_vec();
            assert_eq!(Float::<f64>::encode(&number, &mut out), Err(ValueError::NotFinite));
            assert_eq!(out, b"before");
        }
        for text in ["", "inf", "NaN", "1e999", "1,5", "x", " 1"] {
            let wrong = ValueError::NotCanonical { expected: "f64", bytes: text.len() };
            assert_eq!(Float::<f64>::decode(text.as_bytes()), Err(wrong), "{text}");
        }
        assert_eq!(Float::<f64>::decode(b"1.50"), Ok(1.5), "as other programs may write it");
    }

    #[test]
    fn booleans_are_one_or_zero() {
        assert_eq!((encoded::<Bool>(&true), encoded::<Bool>(&false)), (b"1".to_vec(), b"0".to_vec()));
        assert_eq!((Bool::decode(b"1"), Bool::decode(b"0")), (Ok(true), Ok(false)));
        assert_eq!(Bool::decode(b"true"), Err(ValueError::NotCanonical { expected: "bool", bytes: 4 }));
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
            if float.is_finite() {
                prop_assert_eq!(Float::<f64>::decode(&encoded::<Float<f64>>(&float)), Ok(float));
                let narrow = (float as f32).clamp(f32::MIN, f32::MAX);
                prop_assert_eq!(Float::<f32>::decode(&encoded::<Float<f32>>(&narrow)), Ok(narrow));
            }
            prop_assert_eq!(Utf8::decode(&encoded::<Utf8>(&text)), Ok(text.clone()));
            prop_assert_eq!(Raw::decode(&encoded::<Raw>(&bytes)), Ok(bytes));
            prop_assert_eq!(Json::<f64>::decode(&encoded::<Json<f64>>(&float)), Ok(float));
            prop_assert_eq!(Json::<String>::decode(&encoded::<Json<String>>(&text)), Ok(text));
        }
    }
}
