//! Names and addresses that people read.

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

/// Control characters, line and paragraph separators, and characters that change the direction of text.
fn is_control(c: char) -> bool {
    let changes_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    c.is_control() || changes_direction || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

/// Invisible characters that no script needs in a name.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'
            | '\u{2060}'..='\u{2064}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e001f}'
    )
}

/// Joins or shapes adjacent characters, as in emoji and in several scripts. Invisible alone.
fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '\u{200c}' | '\u{200d}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{e0020}'..='\u{e01ef}'
    )
}

/// Combining marks.
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
