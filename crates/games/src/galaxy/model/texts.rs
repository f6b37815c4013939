//! Texts of the document: booleans as `true` and `false`, and decimal numbers.

use emberkeep_schema::{Codec, Float, ValueError};

/// A boolean, stored as `true` or `false`. Any other text is refused.
pub struct TrueFalse;

/// A finite decimal number, written with a fraction as the document does: `1.0`, `15.3`.
pub struct DecimalText;

impl Codec for TrueFalse {
    type Value = bool;
    const TYPE: &'static str = "true or false";

    fn encode(value: &bool, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(if *value { b"true" } else { b"false" });
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<bool, ValueError> {
        match bytes {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => Err(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() }),
        }
    }
}

impl Codec for DecimalText {
    type Value = f64;
    const TYPE: &'static str = "decimal number";

    fn encode(value: &f64, out: &mut Vec<u8>) -> Result<(), ValueError> {
        if !value.is_finite() {
            return Err(ValueError::NotFinite);
        }
        out.extend_from_slice(format!("{:?}", *value + 0.0).as_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<f64, ValueError> {
        let number = std::str::from_utf8(bytes).ok().and_then(number_from);
        number.ok_or(ValueError::NotCanonical { expected: Self::TYPE, bytes: bytes.len() })
    }
}

/// Appends a finite number as the shortest text that gives it back.
pub(super) fn push_number(number: f64, out: &mut Vec<u8>) -> Result<(), ValueError> {
    Float::<f64>::encode(&number, out)
}

/// A finite number.
pub(super) fn number_from(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_document() {
        let written = |number: f64| {
            let mut out = Vec::new();
            DecimalText::encode(&number, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!((written(1.0).as_deref(), written(15.3).as_deref()), (Ok("1.0"), Ok("15.3")));
        assert_eq!(written(f64::NAN), Err(ValueError::NotFinite));
        assert_eq!((TrueFalse::decode(b"true"), TrueFalse::decode(b"false")), (Ok(true), Ok(false)));
        assert!(TrueFalse::decode(b"1").is_err() && DecimalText::decode(b"nan").is_err());
    }
}
