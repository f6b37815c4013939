//! The damage entries of a monster: 32-bit values, as other services expect.

use crate::monsters::limits::{DAMAGE_SPLIT_ENTRIES_MAX, DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX};
use crate::world::CharacterId;
use emberkeep_schema::{Extra, read_list, record};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

record! {
    /// One hit, or several of one character that were merged.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct DamageEntry {
        /// The character; 0 is none.
        #[openapi(example = 7)]
        pub character: CharacterId => "characterId",
        /// Health that was taken. More than 4294967295 of one character is split into several entries.
        #[openapi(example = 15)]
        pub damage: u32 => "damage",
    }
}

record! {
    /// An entry as an earlier version wrote it: sums of merged hits had 64 bits.
    struct WideEntry {
        character: CharacterId => "characterId",
        damage: u64 => "damage",
    }
}

/// The damage entries of a monster, oldest first. Reads every JSON form that
/// [`Array`](emberkeep_schema::Array) reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DamageEntries(pub Vec<DamageEntry>);

impl DamageEntries {
    /// Appends a sum of damage, split into as many entries as 32 bits need. The first entry gets `extra`. The
    /// sum of existing entries never needs more entries than it was made of.
    pub(in crate::monsters) fn add(
        entries: &mut Vec<DamageEntry>,
        character: CharacterId,
        sum: u64,
        extra: Extra,
    ) {
        let (mut left, mut extra) = (sum, Some(extra));
        loop {
            let damage = u32::try_from(left).unwrap_or(u32::MAX);
            entries.push(DamageEntry { character, damage, extra: extra.take().unwrap_or_default() });
            left -= u64::from(damage);
            if left == 0 {
                break;
            }
        }
    }
}

impl<'de> Deserialize<'de> for DamageEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (split, too_large) = (Cell::new(0), Cell::new(None));
        let add = |entries: &mut Vec<DamageEntry>, wide: WideEntry| match u32::try_from(wide.damage) {
            Ok(damage) => entries.push(DamageEntry { character: wide.character, damage, extra: wide.extra }),
            Err(_) => {
                // Checked before the split, so that a corrupt value cannot allocate more memory than it has
                // bytes.
                let needed = wide.damage.div_ceil(u64::from(u32::MAX));
                split.set(needed.saturating_add(split.get()));
                if needed > DAMAGE_SPLIT_ENTRIES_MAX as u64
                    || split.get() > DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX as u64
                {
                    too_large.set(Some(wide.damage));
                } else {
                    DamageEntries::add(entries, wide.character, wide.damage, wide.extra);
                }
            }
        };
        let entries = read_list(deserializer, add)?;
        match too_large.get() {
            None => Ok(DamageEntries(entries)),
            Some(damage) => Err(D::Error::custom(format!(
                "damage of {damage}, expected at most {DAMAGE_SPLIT_ENTRIES_MAX} times 32 bits in an entry, and \
                 {DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX} times in all"
            ))),
        }
    }
}

impl Deref for DamageEntries {
    type Target = Vec<DamageEntry>;

    fn deref(&self) -> &Vec<DamageEntry> {
        &self.0
    }
}

impl DerefMut for DamageEntries {
    fn deref_mut(&mut self) -> &mut Vec<DamageEntry> {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a DamageEntries {
    type Item = &'a DamageEntry;
    type IntoIter = std::slice::Iter<'a, DamageEntry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<DamageEntry> for DamageEntries {
    fn from_iter<I: IntoIterator<Item = DamageEntry>>(entries: I) -> Self {
        DamageEntries(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Codec, Json};

    fn rewritten(json: &str) -> String {
        let entries = Json::<DamageEntries>::decode(json.as_bytes()).unwrap();
        let mut out = Vec::new();
        Json::<DamageEntries>::encode(&entries, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_entry_of_more_than_32_bits_is_read_as_several() {
        assert_eq!(
            rewritten(r#"[{"characterId":7,"damage":8589934593,"skill":[]},{"characterId":8,"damage":0}]"#),
            concat!(
                r#"[{"characterId":7,"damage":4294967295,"skill":[]},{"characterId":7,"damage":4294967295},"#,
                r#"{"characterId":7,"damage":3},{"characterId":8,"damage":0}]"#
            )
        );
        assert_eq!(
            rewritten(r#"[{"characterId":7,"damage":4294967295}]"#),
            r#"[{"characterId":7,"damage":4294967295}]"#
        );
    }

    #[test]
    fn damage_beyond_the_bound_is_corrupt_and_the_bound_is_written_again() {
        let wide = |damage: u64| format!(r#"{{"characterId":7,"damage":{damage}}}"#);
        let most = DAMAGE_SPLIT_ENTRIES_MAX as u64 * u64::from(u32::MAX);
        let read = |json: &str| Json::<DamageEntries>::decode(json.as_bytes());
        let once = rewritten(&format!("[{}]", wide(most)));
        assert_eq!(read(&once).unwrap().len(), DAMAGE_SPLIT_ENTRIES_MAX);
        assert_eq!(rewritten(&once), once);
        for damage in [most + 1, u64::MAX] {
            assert!(read(&format!("[{}]", wide(damage))).is_err());
        }
        let many = |count: usize| format!("[{}]", vec![wide(most); count].join(","));
        let fit = DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX / DAMAGE_SPLIT_ENTRIES_MAX;
        assert_eq!(read(&many(fit)).unwrap().len(), DAMAGE_SPLIT_ENTRIES_PER_MONSTER_MAX);
        assert!(read(&many(fit + 1)).is_err());
    }

    #[test]
    fn what_a_script_leaves_of_an_empty_list_is_an_empty_list() {
        for json in ["[]", "{}", "null"] {
            assert_eq!(rewritten(json), "[]");
        }
    }
}
