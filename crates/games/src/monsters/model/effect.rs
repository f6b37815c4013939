//! What weighs on a monster for a time, as it is stored.

use crate::world::CharacterId;
use emberkeep_schema::record;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use uuid::Uuid;

record! {
    /// Something that weighs on a monster for a time.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StatusEffect {
        /// Its id.
        pub id: Uuid => "effectId",
        /// Where it came from.
        pub source: SourceType => "sourceType" default,
        /// Who cast it; 0 is nobody.
        pub source_character: CharacterId => "sourceCharacterId" default,
        /// The skill: a character's has more than 16 bits, a monster's is a [`SkillId`](super::SkillId).
        pub source_skill: u32 => "sourceSkillId" or 0,
        /// The skill's level.
        pub source_skill_level: u32 => "sourceSkillLevel" or 0,
        /// What it does, by name.
        pub statuses: Statuses => "statuses" default,
        /// How long it lasts.
        pub duration_ms: i64 => "durationMs" or 0,
        /// Time between two ticks; 0 is none.
        pub tick_interval_ms: i64 => "tickIntervalMs" or 0,
        /// The last tick, or when it began if it has not ticked; 0 as other services may write it, is never.
        pub last_tick_ms: i64 => "lastTickMs" or 0,
        /// When it began.
        pub created_at_ms: i64 => "createdAtMs" or 0,
        /// When it ends; 0 is as long as it lasts from its beginning.
        pub expires_at_ms: i64 => "expiresAtMs" or 0,
    }
}

impl StatusEffect {
    /// When it ends. `None` = it lasts until it is cancelled: only other services write such effects.
    pub fn ends_at(&self) -> Option<i64> {
        if self.expires_at_ms > 0 {
            return Some(self.expires_at_ms);
        }
        let known = self.created_at_ms > 0 && self.duration_ms > 0;
        known.then(|| self.created_at_ms.saturating_add(self.duration_ms))
    }

    /// Whether one of its statuses has this name.
    pub fn has(&self, status: &str) -> bool {
        self.statuses.0.contains_key(status)
    }
}

/// Where a status effect came from: free text, by which services tell effects apart. Empty where nothing was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceType(Cow<'static, str>);

impl SourceType {
    /// The skill of a character.
    pub const PLAYER_SKILL: SourceType = SourceType(Cow::Borrowed("PLAYER_SKILL"));
    /// The skill of a monster.
    pub const MONSTER_SKILL: SourceType = SourceType(Cow::Borrowed("MONSTER_SKILL"));
    /// A command of a game master.
    pub const GM_COMMAND: SourceType = SourceType(Cow::Borrowed("GM_COMMAND"));

    /// Any other.
    pub fn new(text: impl Into<String>) -> SourceType {
        SourceType(Cow::Owned(text.into()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Statuses and their values. `null`, which is Go's empty map, reads as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<BTreeMap<String, i32>>")]
pub struct Statuses(pub BTreeMap<String, i32>);

impl From<Option<BTreeMap<String, i32>>> for Statuses {
    fn from(map: Option<BTreeMap<String, i32>>) -> Self {
        Statuses(map.unwrap_or_default())
    }
}
