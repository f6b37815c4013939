//! Records as the structs of a Go service: the same types, names and order. Reading is as strict as
//! `encoding/json` (a number out of range and an object in the place of a list are errors), and so is the
//! output.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoMonster {
    pub unique_id: u32,
    pub tenant_id: String,
    pub tenant_region: String,
    pub tenant_major_version: u16,
    pub tenant_minor_version: u16,
    pub world_id: u8,
    pub channel_id: u8,
    pub map_id: u32,
    pub instance: String,
    pub max_hp: u32,
    pub hp: u32,
    pub max_mp: u32,
    pub mp: u32,
    pub monster_id: u32,
    pub control_character_id: u32,
    pub x: i16,
    pub y: i16,
    pub fh: i16,
    pub stance: u8,
    pub team: i8,
    pub damage_entries: Vec<GoDamage>,
    pub status_effects: Vec<GoEffect>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoDamage {
    pub character_id: u32,
    pub damage: u32,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoEffect {
    pub effect_id: String,
    pub source_type: String,
    pub source_character_id: u32,
    pub source_skill_id: u32,
    pub source_skill_level: u32,
    pub statuses: BTreeMap<String, i32>,
    pub duration_ms: i64,
    pub tick_interval_ms: i64,
    pub last_tick_ms: i64,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoTimer {
    pub tenant_id: String,
    pub tenant_region: String,
    pub tenant_major_version: u16,
    pub tenant_minor_version: u16,
    pub unique_id: u32,
    pub monster_id: u32,
    pub field: GoField,
    pub drop_period_ms: i64,
    pub weapon_attack: u32,
    pub max_hp: u32,
    pub last_drop_at_ms: i64,
    pub last_hit_at_ms: i64,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoField {
    pub world_id: u8,
    pub channel_id: u8,
    pub map_id: u32,
    pub instance: Uuid,
}

/// The texts that must be UUIDs, as the service parses them after reading.
fn uuid(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|error| format!("{text:?} is not a UUID: {error}"))
}

impl GoMonster {
    pub fn read(json: &str) -> Result<GoMonster, String> {
        let monster: GoMonster = serde_json::from_str(json).map_err(|error| format!("{error} in {json}"))?;
        uuid(&monster.tenant_id)?;
        uuid(&monster.instance)?;
        monster.status_effects.iter().try_for_each(|effect| uuid(&effect.effect_id).map(drop))?;
        Ok(monster)
    }
}

impl GoTimer {
    pub fn read(json: &str) -> Result<GoTimer, String> {
        let timer: GoTimer = serde_json::from_str(json).map_err(|error| format!("{error} in {json}"))?;
        uuid(&timer.tenant_id).map(|_| timer)
    }
}

/// A record as the service writes it.
pub fn written(record: &impl Serialize) -> String {
    serde_json::to_string(record).expect("it is plain data")
}
