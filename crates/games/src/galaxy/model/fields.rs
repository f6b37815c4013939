//! The fields of a hash, read as typed values.

use super::texts::number_from;
use super::vectors::{Quaternion, Vector};
use emberkeep_hot::Error;
use emberkeep_schema::{Codec, Part};

/// Fields and texts that a hash gets.
pub(crate) type Pairs = Vec<(String, String)>;

/// The fields of one hash, and its key for errors.
pub(crate) struct Fields<'a> {
    key: String,
    pairs: &'a [(String, String)],
}

impl<'a> Fields<'a> {
    /// The fields of a hash at a key.
    pub(crate) fn new(key: impl Into<String>, pairs: &'a [(String, String)]) -> Fields<'a> {
        Fields { key: key.into(), pairs }
    }

    /// The text of a field.
    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| name == field).map(|(_, text)| text.as_str())
    }

    /// The text of a field, or another one.
    pub(crate) fn text_or(&self, field: &str, default: &str) -> String {
        self.text(field).unwrap_or(default).to_owned()
    }

    /// A number, or its default.
    pub(crate) fn number(&self, field: &str, default: f64) -> Result<f64, Error> {
        self.parsed(field, "a finite number", number_from).map(|found| found.unwrap_or(default))
    }

    /// An integer, or its default.
    pub(crate) fn integer(&self, field: &str, default: i64) -> Result<i64, Error> {
        self.parsed(field, "an integer", |text| text.parse().ok()).map(|found| found.unwrap_or(default))
    }

    /// `true` or `false`, or its default.
    pub(crate) fn flag(&self, field: &str, default: bool) -> Result<bool, Error> {
        self.parsed(field, "true or false", |text| text.parse().ok()).map(|found| found.unwrap_or(default))
    }

    /// A vector, or zero.
    pub(crate) fn vector(&self, field: &str) -> Result<Vector, Error> {
        let found = self.parsed(field, Vector::TYPE, |text| Vector::decode(text.as_bytes()).ok())?;
        Ok(found.unwrap_or_default())
    }

    /// A quaternion, or the identity.
    pub(crate) fn quaternion(&self, field: &str) -> Result<Quaternion, Error> {
        let found = self.parsed(field, Quaternion::TYPE, |text| Quaternion::decode(text.as_bytes()).ok())?;
        Ok(found.unwrap_or_default())
    }

    /// A part of a key.
    pub(crate) fn part<P: Part>(&self, field: &str) -> Result<Option<P>, Error> {
        self.parsed(field, P::TYPE, P::parse)
    }

    /// A value that `parse` reads; `None` if the field is absent.
    pub(crate) fn parsed<T>(
        &self,
        field: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = self.text(field) else { return Ok(None) };
        let reason = || format!("its field {field} is not {expected}");
        parse(text).map(Some).ok_or_else(|| Error::Corrupt { key: self.key.clone(), reason: reason() })
    }
}

/// The text of a value in a hash. NaN and infinities are refused.
pub(crate) fn text_of<C: Codec>(what: &'static str, value: &C::Value) -> Result<String, Error> {
    let mut out = Vec::with_capacity(64);
    let invalid = |problem: String| Error::Invalid { what, problem };
    C::encode(value, &mut out).map_err(|error| invalid(error.to_string()))?;
    String::from_utf8(out).map_err(|error| invalid(error.to_string()))
}

/// A number as it stands in a hash: the shortest text.
pub(crate) fn number_text(what: &'static str, number: f64) -> Result<String, Error> {
    text_of::<emberkeep_schema::Float<f64>>(what, &number)
}
