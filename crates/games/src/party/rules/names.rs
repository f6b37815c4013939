//! Names and addresses that people read.

use crate::invisible::{is_control, is_invisible, is_joiner};
use crate::party::error::{Error, Result};
use crate::party::limits::{NAME_CHARS_MAX, URL_BYTES_MAX};

/// Trims and checks a name: 1 to 64 characters, at least one of them visible. Control characters, characters
/// that change the direction of text, and invisible characters are refused: with them two names could look
/// the same.
pub fn checked_name(name: &str) -> Result<String> {
    let name = name.trim();
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS_MAX {
        return Err(Error::invalid("name", format!("{chars} characters, expected 1 to {NAME_CHARS_MAX}")));
    }
    if name.chars().any(is_control) {
        return Err(Error::invalid("name", "contains a control character, expected none"));
    }
    if let Some(c) = name.chars().find(|c| is_invisible(*c)) {
        let problem = format!("contains the invisible character U+{:04X}, expected none", u32::from(c));
        return Err(Error::invalid("name", problem));
    }
    if name.chars().all(|c| c.is_whitespace() || is_joiner(c) || is_mark(c)) {
        return Err(Error::invalid(
            "name",
            "contains nothing visible, expected at least one visible character",
        ));
    }
    Ok(name.to_owned())
}

/// Whether a character is drawn over the one before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}')
}

/// Checks an address: `http` or `https`, with a host, without control characters. A page would execute
/// others, such as `javascript:`. Whether the address is reachable is not checked.
pub fn checked_url(url: &str) -> Result<String> {
    if url.is_empty() || url.len() > URL_BYTES_MAX {
        let problem = format!("{} bytes, expected 1 to {URL_BYTES_MAX}", url.len());
        return Err(Error::invalid("address", problem));
    }
    if url.chars().any(|c| is_control(c) || c.is_whitespace()) {
        return Err(Error::invalid("address", "contains a space or a control character, expected none"));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let is_web = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !is_web || rest.is_empty() || rest.starts_with(['/', '?', '#', '\\']) {
        return Err(Error::invalid(
            "address",
            "expected an address that begins with http:// or https:// and a host",
        ));
    }
    Ok(url.to_owned())
}
