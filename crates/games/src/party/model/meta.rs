//! The meta record of a room, and its master key.

use super::RoomCode;
use crate::party::error::{Error, Result};
use crate::party::limits::MASTER_KEY_BYTES;
use emberkeep_schema::record;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

record! {
    /// Creation and expiry of a room, and the digest of its master key.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Meta {
        /// The code of the room.
        pub room_code: RoomCode => "room_code",
        /// When it was created.
        pub created_at: i64 => "created_at",
        /// When it expires unless it is used before.
        pub expires_at: i64 => "expires_at",
        /// `sha256:` and the digest of the master key in hex. No other room has it.
        pub master_hash: String => "master_hash",
        /// The protocol version of the room.
        pub protocol_version: u32 => "protocol_version",
        /// `true` if a known device must send its reconnect token to join again; otherwise absent.
        pub strict_devices: Option<bool> => "strict_devices" optional,
    }
}

/// The key that proves the master. Returned once, when the room is created; the store has only its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(String);

/// The alphabet of base64url.
const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl MasterKey {
    /// Checks a key that a client sends.
    pub fn new(text: &str) -> Result<MasterKey> {
        let expected = MASTER_KEY_BYTES / 3 * 4;
        if text.len() != expected || !text.bytes().all(|byte| BASE64URL.contains(&byte)) {
            let problem = format!("expected {expected} characters of base64url");
            return Err(Error::invalid("master key", problem));
        }
        Ok(MasterKey(text.to_owned()))
    }

    pub(crate) fn of_random(bytes: [u8; MASTER_KEY_BYTES]) -> MasterKey {
        let text = bytes.chunks_exact(3).flat_map(|three| {
            let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            [18, 12, 6, 0].map(|shift| char::from(BASE64URL[(bits >> shift) as usize & 63]))
        });
        MasterKey(text.collect())
    }

    /// The key as text, for the client that created the room.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest that is stored.
    pub(crate) fn hash(&self) -> String {
        digest(&self.0)
    }
}

/// The stored form of a secret: `sha256:` and its digest in hex.
pub(crate) fn digest(secret: &str) -> String {
    let hex = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{hex}")
}

/// A key must not appear in a log.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

impl Meta {
    /// Whether a known device must send its reconnect token.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict_devices == Some(true)
    }

    /// Whether a digest is that of the room's master key. Compares in constant time.
    pub(crate) fn is_of(&self, hash: &str) -> bool {
        self.master_hash.as_bytes().ct_eq(hash.as_bytes()).into()
    }
}

const _: () = assert!(MASTER_KEY_BYTES.is_multiple_of(3), "base64 without padding");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_base64url_of_its_bytes() {
        let mut bytes = [0; MASTER_KEY_BYTES];
        bytes[..3].copy_from_slice(&[0xfb, 0xff, 0xbf]);
        let key = MasterKey::of_random(bytes);
        assert_eq!(key.as_str(), format!("-_-_{}", "A".repeat(28)));
        assert_eq!(MasterKey::new(key.as_str()).unwrap(), key);
        for text in ["", "short", &"+".repeat(32), &"ä".repeat(16)] {
            assert_eq!(MasterKey::new(text).unwrap_err().code(), "invalid_payload");
        }
    }

    #[test]
    fn the_stored_digest_is_that_of_the_text() {
        // printf %s AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA | sha256sum
        let stored = "sha256:22a48051594c1949deed7040850c1f0f8764537f5191be56732d16a54c1d8153";
        assert_eq!(MasterKey::of_random([0; MASTER_KEY_BYTES]).hash(), stored);
    }

    #[test]
    fn a_key_is_not_printed() {
        let shown = format!("{:?}", MasterKey::of_random([7; MASTER_KEY_BYTES]));
        assert_eq!(shown, "MasterKey(…)");
    }
}
