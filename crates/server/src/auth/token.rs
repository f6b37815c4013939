//! Tokens and their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// The prefix of every token, so that secret scanners find leaked ones.
const TOKEN_PREFIX: &str = "ek_";
const HASH_PREFIX: &str = "sha256:";

/// A token. It is shown once, when it is created.
pub struct Token(String);

impl Token {
    /// A new random token.
    pub fn new() -> Result<Token, getrandom::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Token(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The text of the token.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The hash that the token file stores; the token cannot be computed from it.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

/// The stored form of a token: `sha256:` and 64 hex digits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token's text.
    pub fn of(token: &str) -> TokenHash {
        TokenHash(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares in constant time.
    pub fn is(&self, other: &TokenHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> String {
        hash.to_string()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HASH_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for TokenHash {
    type Error = String;

    fn try_from(text: String) -> Result<TokenHash, String> {
        let bytes = text.strip_prefix(HASH_PREFIX).and_then(unhex);
        bytes.map(TokenHash).ok_or_else(|| {
            format!("a token's hash of {} characters, expected sha256: and 64 hex digits", text.len())
        })
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_its_text_and_knows_its_token_only() {
        let (ours, other) = (Token::new().unwrap(), Token::new().unwrap());
        let read = TokenHash::try_from(ours.hash().to_string()).unwrap();
        assert!(read.is(&TokenHash::of(ours.reveal())));
        assert!(!read.is(&other.hash()));
        assert_eq!(ours.reveal().len(), TOKEN_PREFIX.len() + 43);
    }

    #[test]
    fn a_text_that_is_no_hash_is_refused_and_not_repeated() {
        for text in ["", "sha256:", "sha256:12", &format!("sha256:{}", "g".repeat(64)), &"a".repeat(71)] {
            let error = TokenHash::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("64 hex digits"), "{error}");
        }
    }
}
