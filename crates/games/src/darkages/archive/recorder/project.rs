//! What a record becomes in history: the event, its kill, and what it adds to statistics.

use super::record::{HitRecord, Record, StatsDelta};
use crate::darkages::history::{CombatEvent, Kill, PlayerStats};
use emberkeep_history::{Batch, Rejection};
use emberkeep_schema::Timestamp;

/// Adds the rows and amounts of a record to a batch.
pub(super) fn project(record: &Record, batch: &mut Batch) -> Result<(), Rejection> {
    match record {
        Record::Stats(player_id, at, delta) => {
            batch.add(*player_id, Timestamp(*at), PlayerStats::from(*delta))
        }
        Record::Hit(hit) => project_hit(hit, batch),
    }
}

/// Adds the event of a hit, its kill and its statistics. Every way of a hit into history uses it.
pub fn project_hit(hit: &HitRecord, batch: &mut Batch) -> Result<(), Rejection> {
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
