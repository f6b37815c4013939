//! The outbox: what an event that is recorded with each hit costs the hit, and whether history keeps up with it.
//!
//! A hit is the game's own rule on a monster of JSON. Recorded, its transaction also appends a combat event to a log
//! that refuses when it is full. After each sample the log must have exactly as many entries as there were hits.

mod damage;
mod drain;

pub(super) use damage::{embedded, redis};
pub(super) use drain::drain;

use crate::measure::scattered;
use crate::targets::{self, Blow};
use anyhow::{Result, ensure};
use emberkeep::games::world::Tenant;
use emberkeep::hot::{Error, Scope, Tx};
use emberkeep::primitives::lease::LeaseRecord;
use emberkeep::schema::{Json, Log, RefuseAbove, Text, Timestamp, family, record};
use emberkeep_history::testing::{CombatEvent, HitType, PlayerStats};
use emberkeep_history::{Batch, Rejection};
use uuid::Uuid;

/// Monsters that are hit.
const MONSTERS: u64 = 1_000;
/// Entries that the log takes before it refuses.
const ENTRIES_MAX: usize = 2_000_000;

record! {
    /// A hit, as it stands in the outbox.
    struct Hit {
        id: Uuid => "id", attacker: i64 => "attacker", target: i64 => "target", damage: i32 => "damage",
        killed: bool => "killed", zone: i32 => "zone", at: i64 => "at",
    }
}
family! {
    /// The outbox of the measured hits.
    HITS = "log:bench-hits:{tenantId}" {
        kind: Log<Json<Hit>, RefuseAbove<ENTRIES_MAX>>, partition: Tenant, parts: (), ttl: persistent, owner: "bench"
    }
}
family! {
    /// Who drains the outbox.
    DRAINER = "bench-drainer:{tenantId}" {
        kind: Text<Json<LeaseRecord>>, partition: Tenant, parts: (), ttl: persistent, owner: "bench"
    }
}

/// One hit; recorded, it appends its event in the same commit.
fn strike(tx: &mut Tx<'_, Tenant>, random: u64, at: i64, is_recorded: bool) -> Result<Blow, Error> {
    let number = (random >> 20) % MONSTERS;
    let (character, amount) = targets::blow(random);
    let blow = targets::hit(tx, &targets::key(number), (character, amount), 0)?;
    if is_recorded {
        let id = Uuid::from_u64_pair(random, scattered(random));
        let (attacker, damage) = (i64::from(character.0), blow.dealt as i32);
        let zone = (number % 200) as i32;
        tx.append(&HITS.key(), &Hit::new(id, attacker, number as i64, damage, blow.killed, zone, at))?;
    }
    Ok(blow)
}

/// What a hit becomes in history: a row with three lookups, and a part of the attacker's totals.
fn project(hit: &Hit, batch: &mut Batch) -> Result<(), Rejection> {
    batch.insert(CombatEvent {
        timestamp: Timestamp(hit.at),
        event_id: hit.id,
        attacker_id: hit.attacker,
        target_id: hit.target,
        damage: hit.damage,
        hit_type: HitType::Normal,
        ability_name: None,
        zone_id: hit.zone,
        position_x: 0.0,
        position_y: 0.0,
        position_z: 0.0,
        server_instance: "bench-1".into(),
        shard_id: 1,
    })?;
    let amounts = PlayerStats {
        total_kills: i64::from(hit.killed),
        total_damage_dealt: i64::from(hit.damage),
        ..PlayerStats::default()
    };
    batch.add(hit.attacker, Timestamp(hit.at), amounts)
}

/// Makes all monsters whole.
async fn place_monsters(scope: &Scope<Tenant>) -> Result<()> {
    for number in 0..MONSTERS {
        scope.put(&targets::key(number), targets::monster(*scope.partition(), number, 0)).await?;
    }
    Ok(())
}

/// The last sequence of the log.
async fn last(scope: &Scope<Tenant>) -> Result<u64> {
    Ok(scope.read(|tx| tx.log_last(&HITS.key())).await?.sequence)
}

/// Empties the log, which must have grown by as many entries as there were hits.
async fn check_and_empty(scope: &Scope<Tenant>, before: u64, hits: u64) -> Result<()> {
    let now = last(scope).await?;
    ensure!(now - before == hits, "{hits} hits were answered, {} are in the log", now - before);
    scope.transact(move |tx| tx.log_trim(&HITS.key(), now)).await?;
    Ok(())
}
