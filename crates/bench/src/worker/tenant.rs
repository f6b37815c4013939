//! Brings a tenant's monsters to life in an embedded engine, and tells what they cost and how fast they are.

use super::memory::resident_bytes;
use crate::measure::{Counts, nanos_per_operation, per_second, scattered};
use crate::runtime::runtime;
use crate::targets;
use crate::worker_processes::{print_line, wait_for_go};
use anyhow::{Result, ensure};
use emberkeep::games::monsters::{Monsters, SpawnRequest};
use emberkeep::games::world::{CharacterId, Field, Tenant};
use emberkeep::hot::Store;
use emberkeep::hot::embedded::Embedded;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

const PER_FIELD: u64 = 200;
/// More than all hits of a sample take.
const HP: u32 = u32::MAX;

/// What the worker counted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) spawns_per_second: f64,
    pub(crate) hits_per_second: f64,
    pub(crate) fields_per_second: f64,
    pub(crate) bytes_per_monster: f64,
}

pub(super) fn run(count: u64, seconds: f64) -> Result<()> {
    let monsters = Monsters::new(Store::new(Arc::new(Embedded::in_memory())));
    wait_for_go()?;
    let found = runtime()?.block_on(work(&monsters, count, Duration::from_secs_f64(seconds)))?;
    print_line(serde_json::to_string(&found)?)
}

async fn work(monsters: &Monsters, count: u64, time: Duration) -> Result<Found> {
    let tenant = Tenant(Uuid::new_v4());
    let (before, started) = (resident_bytes()?, Instant::now());
    for number in 0..count {
        monsters.spawn(tenant, SpawnRequest::new(field(number), 100_100, HP)).await?;
    }
    let spawns_per_second = count as f64 / started.elapsed().as_secs_f64();
    let bytes_per_monster = resident_bytes()?.saturating_sub(before) as f64 / count as f64;
    let hit = async |number: u64| {
        let random = scattered(number);
        let (character, amount) = targets::blow(random);
        monsters.damage(tenant, targets::id(random % count), CharacterId(character.0), amount as i64).await?;
        Ok(())
    };
    let hits = nanos_per_operation(Counts::Core, time, hit).await?;
    let list = async |number: u64| {
        let found = monsters.in_field(tenant, field(scattered(number) % count)).await?.living.len() as u64;
        ensure!(found == PER_FIELD.min(count), "a field of {found}, expected {PER_FIELD}");
        Ok(())
    };
    let fields = nanos_per_operation(Counts::Core, time, list).await?;
    Ok(Found {
        spawns_per_second,
        hits_per_second: per_second(hits),
        fields_per_second: per_second(fields),
        bytes_per_monster,
    })
}

fn field(number: u64) -> Field {
    Field { world: 0, channel: 1, map: (number / PER_FIELD) as u32, instance: Uuid::nil() }
}
