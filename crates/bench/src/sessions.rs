//! The session records of the benchmarks: 220 bytes per player, which expire an hour after the last write.

use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::{Scope, Store};
use emberkeep::schema::{Key, Raw, Text, family, partition};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a session.
pub(super) const SESSION_BYTES: usize = 220;
/// TTL of a session after its last write.
pub(super) const SESSION_TTL: Duration = Duration::from_secs(3_600);
/// The part of a session's key before the player's number.
const SESSION_PREFIX: &[u8] = b"ember:bench:session:";

partition! {
    /// All of the benchmark's keys.
    pub struct Realm = "bench";
}

family! {
    /// The session of a player, as games store one.
    pub SESSION = "ember:bench:session:{playerId}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (playerId: u64),
        ttl: refresh(SESSION_TTL),
        owner: "bench",
    }
}

family! {
    /// A value that expires at a given time.
    pub PASSING = "ember:bench:passing:{number}" {
        kind: Text<Raw>,
        partition: Realm,
        parts: (number: u64),
        ttl: given,
        owner: "bench",
    }
}

/// The scope of the benchmark's keys on an embedded engine.
pub(super) fn scope(engine: Embedded) -> Scope<Realm> {
    Store::new(Arc::new(engine)).scope(Realm)
}

/// The key of a player's session, built as a game builds it.
#[inline]
pub(super) fn session_key(player: u64) -> Key<SESSION> {
    SESSION.key(player)
}

/// The same key as bytes, built by hand as without a schema.
#[inline]
pub(super) fn with_raw_key<R>(player: u64, act: impl FnOnce(&[u8]) -> R) -> R {
    let mut key = [0; SESSION_PREFIX.len() + 20];
    key[..SESSION_PREFIX.len()].copy_from_slice(SESSION_PREFIX);
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(player).as_bytes();
    let end = SESSION_PREFIX.len() + digits.len();
    key[SESSION_PREFIX.len()..end].copy_from_slice(digits);
    act(&key[..end])
}

/// A session of [`SESSION_BYTES`].
pub(super) fn session(player: u64) -> Vec<u8> {
    let mut text = format!(
        r#"{{"player_id":{player},"account":"{:032x}","zone_id":{},"character":"Aveline","level":87,"#,
        u128::from(player) << 64 | 0x5eed,
        player % 50,
    );
    text.push_str(
        r#""login_ms":1700000000000,"last_activity":1700000123456,"address":"203.0.113.7","client":""#,
    );
    let filling = SESSION_BYTES - text.len() - 2;
    text.extend(std::iter::repeat_n('x', filling));
    text.push_str("\"}");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep::schema::KeyLayout;

    #[test]
    fn both_ways_build_the_same_keys_and_values_have_their_size() {
        for player in [0, 7, 99_999, 4_999_999, u64::MAX] {
            let ours = session_key(player).to_text(&KeyLayout::single(), &Realm);
            with_raw_key(player, |raw| assert_eq!(raw, ours.as_bytes()));
        }
        assert!([0, 4_999_999].iter().all(|player| session(*player).len() == SESSION_BYTES));
    }
}
