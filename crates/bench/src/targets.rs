//! Monsters to hit: about 600 bytes of JSON on average, dead after about ten hits and then whole again.
//!
//! A fresh monster is [`FRESH_BYTES`] long and each hit adds an entry of about 38 bytes, so between its first hit
//! and its last the record has about 600 bytes on average; a test holds that.

use emberkeep::games::monsters::{DamageEntry, MONSTER, Monster, MonsterId, rules};
use emberkeep::games::world::{CharacterId, Tenant};
use emberkeep::hot::{Error, Tx};
use emberkeep::schema::{Codec, Json, Key};
use uuid::Uuid;

/// Health of a monster that dies after about ten hits.
pub(super) const HP: u32 = 1_000;
/// Entries that a monster with a long memory keeps when it is made whole.
pub(super) const LONG_MEMORY: usize = 496;
/// Bytes of a monster that was never hit.
#[cfg(test)]
const FRESH_BYTES: std::ops::Range<usize> = 370..430;

/// The id of the monster with this number.
pub(super) fn id(number: u64) -> MonsterId {
    MonsterId(1_000_000_000 + number as u32)
}

/// The key of the monster with this number.
pub(super) fn key(number: u64) -> Key<MONSTER> {
    MONSTER.key(id(number))
}

/// Who hits, and how hard: 50 to 150, so 100 on average.
pub(super) fn blow(random: u64) -> (CharacterId, u64) {
    (CharacterId(1_000_000 + (random >> 40) as u32 % 1_000), 50 + random % 101)
}

/// A monster that remembers `entries` hits.
pub(super) fn monster(tenant: Tenant, number: u64, entries: usize) -> Monster {
    let entry = |n: usize| {
        let (character, damage) = blow(crate::measure::scattered(n as u64));
        DamageEntry::new(character, damage as u32)
    };
    Monster {
        tenant_id: Some(tenant.0),
        region: "GMS".into(),
        major_version: 83,
        minor_version: 1,
        max_mp: 200,
        mp: 200,
        controller: CharacterId(1_000_042),
        x: -1_204,
        y: 356,
        fh: 12,
        stance: 5,
        damage: (0..entries).map(entry).collect(),
        ..Monster::new(id(number), 0, 3, 100_000_000, Uuid::nil(), HP, HP, 9_300_018)
    }
}

/// The monster as JSON, as the other program stores it.
pub(super) fn json(monster: &Monster) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    Json::<Monster>::encode(monster, &mut out)?;
    Ok(out)
}

/// What a blow came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blow {
    /// Health that it took.
    pub(super) dealt: u64,
    /// Whether the hit killed.
    pub(super) killed: bool,
}

/// One hit as a transaction: the game's own rule, and a monster that it killed is whole again in the same transaction.
pub(super) fn hit(
    tx: &mut Tx<'_, Tenant>,
    key: &Key<MONSTER>,
    (character, amount): (CharacterId, u64),
    keep: usize,
) -> Result<Blow, Error> {
    let Some(mut monster) = tx.get(key)? else {
        return Err(Error::Invalid { what: "monster", problem: "gone, expected one to hit".into() });
    };
    let Ok(hit) = rules::strike(&mut monster, character, amount) else {
        return Err(Error::Invalid { what: "monster", problem: "dead, expected a living one".into() });
    };
    if hit.killed {
        monster.hp = monster.max_hp;
        monster.damage.truncate(keep);
    }
    tx.put(key, &monster)?;
    Ok(Blow { dealt: u64::from(hit.actual), killed: hit.killed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_about_600_bytes_on_average() {
        let mut monster = monster(Tenant(Uuid::from_u128(7)), 12, 0);
        assert!(FRESH_BYTES.contains(&json(&monster).unwrap().len()), "{}", json(&monster).unwrap().len());
        let (mut bytes, mut hits) = (0, 0);
        while monster.hp > 0 {
            let (character, amount) = blow(crate::measure::scattered(hits));
            bytes += json(&monster).unwrap().len();
            rules::strike(&mut monster, character, amount).unwrap();
            hits += 1;
        }
        let average = bytes as u64 / hits;
        assert!((8..=13).contains(&hits) && (560..=640).contains(&average), "{hits} hits, {average} bytes");
    }
}
