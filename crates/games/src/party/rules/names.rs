//! Names and addresses that people read.

use crate::party::error::{Error, Result};
use crate::party::limits::{NAME_CHARS_MAX, URL_BYTES_MAX};

/// A name without space around it: 1 to 64 characters, none of which controls anything.
pub fn checked_name(name: &str) -> Result<String> {
    let name = name.trim();
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS_MAX {
        return Err(Error::invalid("name", format!("{chars} characters, expected 1 to {NAME_CHARS_MAX}")));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid("name", "a control character in it, expected none"));
    }
    Ok(name.to_owned())
}

/// An address: not empty, not endless, nothing in it that controls anything. Whether it leads anywhere is not asked.
pub fn checked_url(url: &str) -> Result<String> {
    if url.is_empty() || url.len() > URL_BYTES_MAX {
        let problem = format!("{} bytes, expected 1 to {URL_BYTES_MAX}", url.len());
        return Err(Error::invalid("address", problem));
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Error::invalid("address", "space or a control character in it, expected none"));
    }
    Ok(url.to_owned())
}
