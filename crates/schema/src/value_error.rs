//! Why a stored value could not be read, or a value not be stored.

use crate::limits::PROBLEM_BYTES_MAX;
use thiserror::Error;

/// A value that is not what its family declares.
///
/// The text never holds the value itself: values may be long, or a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Not the JSON that was expected.
    #[error("not the expected JSON: {problem}, at line {line} column {column} of {bytes} bytes")]
    Json {
        /// What serde found wrong, without the value.
        problem: String,
        /// The line, from 1.
        line: usize,
        /// Column, from 1; 0 is before the first byte.
        column: usize,
        /// Size of the whole value.
        bytes: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("not UTF-8 text: byte {at} of {bytes} does not continue a character")]
    NotUtf8 {
        /// Offset of the first wrong byte.
        at: usize,
        /// Size of the whole value.
        bytes: usize,
    },
    /// Not the canonical text of the declared type.
    #[error("{bytes} bytes that are not the canonical text of a value of type {expected}")]
    NotCanonical {
        /// The declared type, such as `u32` or `bool`.
        expected: &'static str,
        /// Size of the whole value.
        bytes: usize,
    },
    /// NaN or an infinity, which no family stores.
    #[error("not a finite number; NaN and infinities are not stored")]
    NotFinite,
    /// A value that has no JSON form, such as a map whose keys are not texts.
    #[error("cannot be written as JSON: {problem}")]
    NotJson {
        /// What serde refused, without the value.
        problem: String,
    },
}

impl ValueError {
    /// Describes what serde_json found wrong with a value of `bytes` bytes.
    pub(crate) fn reading_json(error: &serde_json::Error, bytes: usize) -> ValueError {
        ValueError::Json { problem: without_value(error), line: error.line(), column: error.column(), bytes }
    }

    /// Describes why serde_json refused to write a value.
    pub(crate) fn writing_json(error: &serde_json::Error) -> ValueError {
        ValueError::NotJson { problem: without_value(error) }
    }
}

/// The message of `error` without its position and without the offending value, which serde
/// quotes in full: ``invalid type: string "…", expected u32`` becomes `invalid type: string, expected u32`.
fn without_value(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    let quotes_value =
        ["invalid type: ", "invalid value: ", "unknown variant "].iter().any(|start| text.starts_with(start));
    if !quotes_value {
        return shortened(text);
    }
    let found = text.split(['"', '`']).next().unwrap_or_default().trim_end();
    let found = found.strip_suffix(',').unwrap_or(found);
    match text.rfind(", expected ") {
        // Without a quote the head already holds the expectation.
        Some(at) if at >= found.len() => shortened(&format!("{found}{}", &text[at..])),
        _ => shortened(found),
    }
}

/// At most [`PROBLEM_BYTES_MAX`] bytes of `text`.
fn shortened(text: &str) -> String {
    if text.len() <= PROBLEM_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(PROBLEM_BYTES_MAX - "…".len());
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;

    fn problem<T: DeserializeOwned>(json: &str) -> String {
        match serde_json::from_str::<T>(json) {
            Ok(_) => panic!("{json} was read"),
            Err(error) => ValueError::reading_json(&error, json.len()).to_string(),
        }
    }

    #[test]
    fn the_place_is_reported_and_the_value_is_not() {
        assert_eq!(
            problem::<Vec<u32>>("[1,\n\"secret, expected token\"]"),
            "not the expected JSON: invalid type: string, expected u32, at line 2 column 24 of 29 bytes"
        );
        assert_eq!(
            problem::<u8>("300"),
            "not the expected JSON: invalid value: integer, expected u8, at line 1 column 3 of 3 bytes"
        );
        assert!(problem::<u8>("null").contains("invalid type: null, expected u8,"));
        assert!(problem::<u8>("").contains("EOF while parsing a value"));
        assert!(problem::<Vec<u8>>("[1").contains("EOF while parsing a list"));
    }

    #[test]
    fn a_long_problem_is_cut_at_a_character() {
        let text = shortened(&"ä".repeat(200));
        assert!(text.len() <= PROBLEM_BYTES_MAX && text.ends_with("ä…"));
    }
}
