//! Recording for servers that compute damage themselves: hits and deltas of statistics, through a durable local spool.
//!
//! 1. A call returns when its events are as safe as the spool's mode promises, whether or not history can be reached.
//! 2. What was recorded reaches history once, also after a crash: it counts by the spool's source and position.
//! 3. An event is recorded once per id: a recorder recognises the last 131,072 ids of its process. A caller that repeats a
//!    call after a restart of the recorder may count twice; a transaction of hot state has no such gap.
//! 4. An event takes one way only. Damage that was applied through hot state is recorded there.

use super::super::history::{CombatEvent, HitType, Kill, PlayerStats};
use super::error::{Error, Result, check_text};
use super::limits::{
    ABILITY_NAME_BYTES_MAX, RECENT_IDS_MAX, RECORD_EVENTS_MAX, SERVER_INSTANCE_BYTES_MAX, STATS_DELTA_MAX,
};
use super::recent_ids::RecentIds;
use super::{Answer, hit_type_text};
use emberkeep_history::spool::{Spool, SpoolConsumer, SpoolMode, SpoolOptions, SpoolStats};
use emberkeep_history::{Batch, History, Rejection};
use emberkeep_schema::{Json, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Mutex;
use uuid::Uuid;

/// A hit that a zone server computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitRecord {
    /// When it happened, in milliseconds since 1970.
    pub timestamp: i64,
    /// Its id; a repeated call has the same.
    pub event_id: Uuid,
    /// The attacker.
    pub attacker_id: i64,
    /// Whether the attacker is a player, who has statistics.
    pub attacker_is_player: bool,
    /// The target.
    pub target_id: i64,
    /// Whether the target is a player.
    pub target_is_player: bool,
    /// Health taken, 0 or more.
    pub damage: i32,
    /// How it landed.
    #[serde(with = "hit_type_text")]
    pub hit_type: HitType,
    /// Whether the target died of it.
    pub is_kill: bool,
    /// The ability, at most 128 bytes.
    pub ability_name: Option<String>,
    /// The zone.
    pub zone_id: i32,
    /// Position in the zone: x, y, z.
    pub position: [f64; 3],
    /// The server, at most 128 bytes.
    pub server_instance: String,
    /// Its shard.
    pub shard_id: i32,
}

/// What is added to the statistics of a player: all ten columns, each 0 or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatsDelta {
    /// Kills.
    pub kills: i64,
    /// Deaths.
    pub deaths: i64,
    /// Kills by others that the player helped with.
    pub assists: i64,
    /// Damage dealt.
    pub damage_dealt: i64,
    /// Damage taken.
    pub damage_taken: i64,
    /// Damage blocked.
    pub damage_blocked: i64,
    /// Healing done.
    pub healing_done: i64,
    /// Milliseconds; statistics show whole minutes.
    pub playtime_ms: i64,
    /// Matches played.
    pub matches: i64,
    /// Matches won.
    pub wins: i64,
}

impl From<StatsDelta> for PlayerStats {
    fn from(delta: StatsDelta) -> PlayerStats {
        PlayerStats {
            total_kills: delta.kills,
            total_deaths: delta.deaths,
            total_assists: delta.assists,
            total_damage_dealt: delta.damage_dealt,
            total_damage_taken: delta.damage_taken,
            total_damage_blocked: delta.damage_blocked,
            total_healing_done: delta.healing_done,
            total_playtime_minutes: delta.playtime_ms,
            total_matches: delta.matches,
            total_wins: delta.wins,
        }
    }
}

/// An entry of the spool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A hit.
    Hit(HitRecord),
    /// A delta of statistics: player, when, what.
    Stats(i64, i64, StatsDelta),
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Events that were recorded.
    pub recorded: usize,
    /// Events that had been recorded before.
    pub repeated: usize,
    /// How safe they are.
    pub mode: SpoolMode,
}

/// Takes events into a spool. Cheap to clone. A [`consumer`](Self::consumer) brings them into history.
#[derive(Clone)]
pub struct Recorder {
    spool: Spool<Json<Record>>,
    mode: SpoolMode,
    recent: Arc<Mutex<RecentIds>>,
}

impl Recorder {
    /// A recorder with its spool in a folder.
    pub fn open(folder: impl AsRef<Path>, options: SpoolOptions) -> Result<Recorder> {
        let mode = options.mode;
        let recent = Arc::new(Mutex::new(RecentIds::new(RECENT_IDS_MAX)));
        Ok(Recorder { spool: Spool::open(folder, options)?, mode, recent })
    }

    /// Delivers what was recorded into a history; a recorder needs one that runs.
    pub fn consumer(&self, history: History) -> SpoolConsumer {
        SpoolConsumer::new(&self.spool, history, project)
    }

    /// How much waits for history.
    pub fn stats(&self) -> SpoolStats {
        self.spool.stats()
    }

    /// Records hits, at most 1,000 in a call: all of them or none.
    pub fn record_events(&self, hits: Vec<HitRecord>) -> Answer<'_, Recorded> {
        Box::pin(async move {
            if hits.len() > RECORD_EVENTS_MAX {
                let problem = format!("{}, at most {RECORD_EVENTS_MAX} are allowed in a call", hits.len());
                return Err(Error::invalid("number of events", problem));
            }
            hits.iter().try_for_each(check_hit)?;
            self.record(hits.into_iter().map(|hit| (hit.event_id, Record::Hit(hit))).collect()).await
        })
    }

    /// Adds to the statistics of a player, once per event id.
    pub fn record_stats(
        &self,
        player_id: i64,
        delta: StatsDelta,
        event_id: Uuid,
        at: Timestamp,
    ) -> Answer<'_, Recorded> {
        Box::pin(async move {
            check_time(at)?;
            let StatsDelta { kills, deaths, assists, damage_dealt, damage_taken, .. } = delta;
            let StatsDelta { damage_blocked, healing_done, playtime_ms, matches, wins, .. } = delta;
            let amounts = [kills, deaths, assists, damage_dealt, damage_taken];
            let others = [damage_blocked, healing_done, playtime_ms, matches, wins];
            if !amounts.iter().chain(&others).all(|amount| (0..=STATS_DELTA_MAX).contains(amount)) {
                let problem = format!("expected amounts from 0 to {STATS_DELTA_MAX}");
                return Err(Error::invalid("delta of statistics", problem));
            }
            self.record(vec![(event_id, Record::Stats(player_id, at.0, delta))]).await
        })
    }

    /// Ids are known before their events are safe, so the next call waits until this one has ended.
    async fn record(&self, records: Vec<(Uuid, Record)>) -> Result<Recorded> {
        let mut recent = self.recent.lock().await;
        let count = records.len();
        let mut seen = HashSet::new();
        let mut is_new = |id: &Uuid| !recent.contains(id) && seen.insert(*id);
        let (ids, new): (Vec<_>, Vec<_>) = records.into_iter().filter(|(id, _)| is_new(id)).unzip();
        if !new.is_empty() {
            self.spool.record_events(&new).await?;
            ids.into_iter().for_each(|id| recent.insert(id));
        }
        Ok(Recorded { recorded: new.len(), repeated: count - new.len(), mode: self.mode })
    }

    /// Syncs and closes the spool. What was not delivered waits for the next opening.
    pub fn close(&self) -> Result<()> {
        Ok(self.spool.close()?)
    }
}

fn check_time(at: Timestamp) -> Result<()> {
    if at.is_valid() {
        return Ok(());
    }
    Err(Error::invalid("time of an event", format!("{}, expected milliseconds from 1970 to 9999", at.0)))
}

fn check_hit(hit: &HitRecord) -> Result<()> {
    check_time(Timestamp(hit.timestamp))?;
    check_text("server instance", &hit.server_instance, SERVER_INSTANCE_BYTES_MAX)?;
    if let Some(name) = &hit.ability_name {
        check_text("ability name", name, ABILITY_NAME_BYTES_MAX)?;
    }
    if hit.damage < 0 {
        return Err(Error::invalid("damage", format!("{}, expected 0 or more", hit.damage)));
    }
    if !hit.position.iter().all(|number| number.is_finite()) {
        return Err(Error::invalid("position", "a number that is infinite or not a number"));
    }
    Ok(())
}

/// What a record becomes in history.
fn project(record: &Record, batch: &mut Batch) -> Result<(), Rejection> {
    match record {
        Record::Stats(player_id, at, delta) => {
            batch.add(*player_id, Timestamp(*at), PlayerStats::from(*delta))
        }
        Record::Hit(hit) => project_hit(hit, batch),
    }
}

pub(in crate::darkages) fn project_hit(hit: &HitRecord, batch: &mut Batch) -> Result<(), Rejection> {
    let (timestamp, [position_x, position_y, position_z]) = (Timestamp(hit.timestamp), hit.position);
    let HitRecord { event_id, attacker_id, target_id, damage, zone_id, .. } = *hit;
    batch.insert(CombatEvent {
        timestamp,
        event_id,
        attacker_id,
        target_id,
        damage,
        hit_type: hit.hit_type,
        ability_name: hit.ability_name.clone(),
        zone_id,
        position_x,
        position_y,
        position_z,
        server_instance: hit.server_instance.clone(),
        shard_id: hit.shard_id,
    })?;
    if hit.is_kill {
        let (ability_name, server_instance) = (hit.ability_name.clone(), hit.server_instance.clone());
        batch.insert(Kill {
            timestamp,
            event_id,
            attacker_id,
            target_id,
            damage,
            ability_name,
            zone_id,
            server_instance,
        })?;
    }
    let (kills, dealt) = (i64::from(hit.is_kill), i64::from(damage));
    if hit.attacker_is_player {
        let delta = StatsDelta { kills, damage_dealt: dealt, ..StatsDelta::default() };
        batch.add(attacker_id, timestamp, PlayerStats::from(delta))?;
    }
    if hit.target_is_player {
        let delta = StatsDelta { deaths: kills, damage_taken: dealt, ..StatsDelta::default() };
        batch.add(target_id, timestamp, PlayerStats::from(delta))?;
    }
    Ok(())
}
