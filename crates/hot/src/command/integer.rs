//! Integers as Redis stores them: strings.

use super::{Kind, KindFound, wrong_type};
use crate::error::{Error, Result, show};

/// Digits of the least integer, and its sign.
const INTEGER_BYTES_MAX: usize = 20;

/// The integer that Redis would accept: canonical decimal of 64 bits.
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    if text.len() > INTEGER_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let number: i64 = text.parse().ok()?;
    let canonical = !text.starts_with('+') && (text == "0" || !text.trim_start_matches('-').starts_with('0'));
    canonical.then_some(number)
}

/// The number that [`SetIfGreater`](super::Write::SetIfGreater) compares: the integer after the last comma of a string,
/// such as the time in `x,y,z,time`, or the whole string if it has no comma. `None` = there is none in the form in which
/// Redis writes integers.
pub fn number_after_comma(text: &[u8]) -> Option<i64> {
    parse_integer(text.rsplit(|byte| *byte == b',').next().unwrap_or(text))
}

/// Whether [`SetIfGreater`](super::Write::SetIfGreater) replaces what is stored; `None` = no string is.
pub(crate) fn is_greater(text: &[u8], stored: Option<&[u8]>) -> bool {
    stored.and_then(number_after_comma) < number_after_comma(text)
}

/// The error for INCRBY on something else.
pub(crate) fn not_an_integer(key: &[u8]) -> Error {
    wrong_type(key, Kind::Text, KindFound::NotAnInteger)
}

/// The error for HINCRBY on something else.
pub fn not_an_integer_field(key: &[u8], field: &[u8]) -> Error {
    Error::Corrupt { key: show(key), reason: format!("its field {} is not a 64-bit integer", show(field)) }
}

/// A sum, or the error of one that leaves 64 bits.
pub(crate) fn sum_of(key: &[u8], value: i64, by: i64) -> Result<i64> {
    value.checked_add(by).ok_or_else(|| Error::Overflow { key: show(key), value, by })
}
