//! What all URLs have in common: scheme, folder, options.

use super::OpenError;
use std::path::PathBuf;

/// Splits a URL behind its scheme.
pub(super) fn scheme<'u>(text: &'u str, understood: &'static str) -> Result<(&'u str, &'u str), OpenError> {
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let found = text.split_once(':');
    // What is not a scheme may be a password.
    found
        .filter(|(scheme, _)| !scheme.is_empty() && scheme.bytes().all(is_scheme))
        .ok_or(OpenError::NoScheme { understood })
}

/// The folder of a `file:` URL: `DIR`, or `///DIR` as browsers write it.
pub(super) fn folder(place: &str) -> Result<PathBuf, OpenError> {
    let path = match place.strip_prefix("//") {
        Some(path) if path.is_empty() || path.starts_with('/') => path,
        Some(_) => {
            let problem = "names a host; write file:DIR, or file:///DIR for a folder of this machine";
            return Err(OpenError::Place { scheme: "file", problem });
        }
        None => place,
    };
    if path.is_empty() { Err(OpenError::MissingFolder) } else { Ok(path.into()) }
}

/// The options behind `?`.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The error of an option that a scheme does not have.
pub(super) fn unknown(name: &str, scheme: &'static str, known: &'static str) -> OpenError {
    OpenError::UnknownOption { option: name.to_owned(), scheme, known }
}
