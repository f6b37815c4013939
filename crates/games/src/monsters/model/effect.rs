//! Status effects as they are stored.

use crate::world::CharacterId;
use emberkeep_schema::record;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use uuid::Uuid;

record! {
    /// A status effect of a monster.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[openapi]
    pub struct StatusEffect {
        /// The id of this application of the effect; applying it again gives another one.
        pub id: Uuid => "effectId",
        /// What kind of source caused it, such as PLAYER_SKILL.
        #[openapi(example = "PLAYER_SKILL")]
        pub source: SourceType => "sourceType" default,
        /// The casting character; 0 is none.
        pub source_character: CharacterId => "sourceCharacterId" default,
        /// The number of the skill that caused it; 0 is none.
        // A character's skill needs more than 16 bits; a monster's is a `SkillId`.
        pub source_skill: u32 => "sourceSkillId" or 0,
        /// The level of that skill.
        pub source_skill_level: u32 => "sourceSkillLevel" or 0,
        /// Statuses and their values.
        #[openapi(example = json!({"POISON": 10}))]
        pub statuses: Statuses => "statuses" default,
        /// How long it lasts from its beginning, in milliseconds.
        pub duration_ms: i64 => "durationMs" or 0,
        /// Milliseconds between two ticks; 0 is none.
        pub tick_interval_ms: i64 => "tickIntervalMs" or 0,
        /// The last tick, in milliseconds since 1970; before the first one, when it began.
        // Other services may write 0 for "never".
        pub last_tick_ms: i64 => "lastTickMs" or 0,
        /// When it began, in milliseconds since 1970.
        pub created_at_ms: i64 => "createdAtMs" or 0,
        /// When it ends, in milliseconds since 1970; 0 means that the duration counts.
        pub expires_at_ms: i64 => "expiresAtMs" or 0,
    }
}

impl StatusEffect {
    /// The time of expiry. `None` means that it lasts until it is cancelled; only other services write such
    /// effects.
    pub fn ends_at(&self) -> Option<i64> {
        if self.expires_at_ms > 0 {
            return Some(self.expires_at_ms);
        }
        let known = self.created_at_ms > 0 && self.duration_ms > 0;
        known.then(|| self.created_at_ms.saturating_add(self.duration_ms))
    }

    /// Whether the effect has a status of this name.
    pub fn has(&self, status: &str) -> bool {
        self.statuses.0.contains_key(status)
    }
}

/// The kind of source of a status effect: free text, empty if unknown.
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

    /// A source that has no constant here, as another service or the game names it.
    pub fn new(text: impl Into<String>) -> SourceType {
        SourceType(Cow::Owned(text.into()))
    }

    /// The text that is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Values by status name. Reads `null`, Go's empty map, as an empty map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<BTreeMap<String, i32>>")]
pub struct Statuses(pub BTreeMap<String, i32>);

impl From<Option<BTreeMap<String, i32>>> for Statuses {
    fn from(map: Option<BTreeMap<String, i32>>) -> Self {
        Statuses(map.unwrap_or_default())
    }
}
