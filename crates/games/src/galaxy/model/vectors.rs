//! Vectors and quaternions, stored as JSON arrays.

use super::texts::{number_from, push_number};
use emberkeep_schema::{Codec, ValueError};
use serde::{Deserialize, Serialize};

/// A vector in metres, metres per second, radians per second or newton metre seconds. Stored as `[x, y, z]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
#[allow(missing_docs)]
pub struct Vector {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

/// An attitude. Stored as `[w, x, y, z]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
#[allow(missing_docs)]
pub struct Quaternion {
    pub w: f64,
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Vector {
    /// The origin, and the velocity of what rests.
    pub const ZERO: Vector = Vector::new(0.0, 0.0, 0.0);

    /// The vector of these coordinates.
    pub const fn new(x: f64, y: f64, z: f64) -> Vector {
        Vector { x, y, z }
    }

    /// Whether no coordinate is NaN or infinite. Only such vectors are stored.
    pub fn is_finite(&self) -> bool {
        [self.x, self.y, self.z].iter().all(|number| number.is_finite())
    }
}

impl Quaternion {
    /// No rotation.
    pub const IDENTITY: Quaternion = Quaternion::new(1.0, 0.0, 0.0, 0.0);

    /// The quaternion of these components.
    pub const fn new(w: f64, x: f64, y: f64, z: f64) -> Quaternion {
        Quaternion { w, x, y, z }
    }

    /// Whether no component is NaN or infinite. Only such quaternions are stored.
    pub fn is_finite(&self) -> bool {
        [self.w, self.x, self.y, self.z].iter().all(|number| number.is_finite())
    }
}

impl Default for Quaternion {
    fn default() -> Quaternion {
        Quaternion::IDENTITY
    }
}

impl From<[f64; 3]> for Vector {
    fn from([x, y, z]: [f64; 3]) -> Vector {
        Vector { x, y, z }
    }
}

impl From<Vector> for [f64; 3] {
    fn from(vector: Vector) -> [f64; 3] {
        [vector.x, vector.y, vector.z]
    }
}

impl From<[f64; 4]> for Quaternion {
    fn from([w, x, y, z]: [f64; 4]) -> Quaternion {
        Quaternion { w, x, y, z }
    }
}

impl From<Quaternion> for [f64; 4] {
    fn from(quaternion: Quaternion) -> [f64; 4] {
        [quaternion.w, quaternion.x, quaternion.y, quaternion.z]
    }
}

/// Writes a JSON array of finite numbers, as `[1.5, 0, -2]`.
fn encode<const N: usize>(numbers: [f64; N], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let before = out.len();
    out.push(b'[');
    for (index, number) in numbers.into_iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        if let Err(error) = push_number(number, out) {
            out.truncate(before);
            return Err(error);
        }
    }
    out.push(b']');
    Ok(())
}

/// Reads a JSON array of numbers. The standard library's parser, because it gives back the exact value.
fn decode<const N: usize>(bytes: &[u8], expected: &'static str) -> Result<[f64; N], ValueError> {
    let parse = || {
        let text = std::str::from_utf8(bytes).ok()?.trim();
        let mut parts = text.strip_prefix('[')?.strip_suffix(']')?.split(',');
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = number_from(parts.next()?.trim())?;
        }
        parts.next().is_none().then_some(numbers)
    };
    parse().ok_or(ValueError::NotCanonical { expected, bytes: bytes.len() })
}

impl Codec for Vector {
    type Value = Vector;
    const TYPE: &'static str = "[x, y, z]";

    fn encode(value: &Vector, out: &mut Vec<u8>) -> Result<(), ValueError> {
        encode(<[f64; 3]>::from(*value), out)
    }

    fn decode(bytes: &[u8]) -> Result<Vector, ValueError> {
        decode::<3>(bytes, Self::TYPE).map(Vector::from)
    }
}

impl Codec for Quaternion {
    type Value = Quaternion;
    const TYPE: &'static str = "[w, x, y, z]";

    fn encode(value: &Quaternion, out: &mut Vec<u8>) -> Result<(), ValueError> {
        encode(<[f64; 4]>::from(*value), out)
    }

    fn decode(bytes: &[u8]) -> Result<Quaternion, ValueError> {
        decode::<4>(bytes, Self::TYPE).map(Quaternion::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vectors_of_the_document_are_read() {
        assert_eq!(Vector::decode(b"[1.5e11, 0, 0]"), Ok(Vector::new(1.5e11, 0.0, 0.0)));
        assert_eq!(
            Vector::decode(b"[-2.627e10,1.445e11,-1.038e4]"),
            Ok(Vector::new(-2.627e10, 1.445e11, -1.038e4))
        );
        assert_eq!(Quaternion::decode(b"[1, 0, 0, 0]"), Ok(Quaternion::IDENTITY));
        let mut out = Vec::new();
        Vector::encode(&Vector::new(1.5, -0.0, 2.0), &mut out).unwrap();
        assert_eq!(out, b"[1.5, 0, 2]");
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for text in
            ["", "[]", "[1, 2]", "[1, 2, 3, 4]", "1, 2, 3", "[NaN, 0, 0]", "[inf, 0, 0]", "[\"1\", 0, 0]"]
        {
            assert!(Vector::decode(text.as_bytes()).is_err(), "{text}");
        }
        let mut out = b"before".to_vec();
        assert!(Vector::encode(&Vector::new(0.0, f64::NAN, 0.0), &mut out).is_err());
        assert_eq!(out, b"before");
    }

    proptest! {
        #[test]
        fn finite_vectors_are_read_back(x: f64, y in -1e300..1e300f64, z in -1.0..1.0f64) {
            prop_assume!(x.is_finite());
            let (vector, mut out) = (Vector::new(x, y, z), Vec::new());
            Vector::encode(&vector, &mut out).unwrap();
            prop_assert_eq!(Vector::decode(&out).unwrap(), vector);
            let json: [f64; 3] = serde_json::from_slice(&out).unwrap();
            prop_assert!(json.iter().all(|number| number.is_finite()), "other programs read JSON");
        }
    }
}
