//! Damage in process: the game's own operation on monsters stored as JSON, one after the other on one core.
//!
//! A monster that was killed is replaced by a fresh one in a transaction of its own, whose time counts.

use crate::measure::{Counts, nanos_per_operation, per_second, scattered};
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use crate::targets;
use anyhow::Result;
use emberkeep::games::monsters::{Monster, Monsters, rules};
use emberkeep::games::world::Tenant;
use emberkeep::hot::embedded::Embedded;
use emberkeep::hot::journal::Durability;
use emberkeep::hot::{Scope, Store};
use emberkeep::schema::{Codec, Json};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use uuid::Uuid;

const MONSTERS: u64 = 1_000;
const TENANT: Tenant = Tenant(Uuid::from_u128(0x550e_8400_e29b_41d4_a716_4466_5544_0000));

/// Monsters on an engine.
struct Field {
    runtime: Runtime,
    monsters: Monsters,
    scope: Scope<Tenant>,
    fresh: Vec<Monster>,
}

impl Field {
    fn new(engine: Embedded) -> Result<Field> {
        let store = Store::new(Arc::new(engine));
        let (runtime, scope) = (runtime()?, store.scope(TENANT));
        let fresh: Vec<Monster> = (0..MONSTERS).map(|n| targets::monster(TENANT, n, 0)).collect();
        runtime.block_on(async {
            for (number, monster) in (0..).zip(&fresh) {
                scope.put(&targets::key(number), monster.clone()).await?;
            }
            anyhow::Ok(())
        })?;
        Ok(Field { runtime, monsters: Monsters::new(store), scope, fresh })
    }

    /// Hits of all callers together, per second.
    fn rate(&self, counts: Counts, time: Duration) -> Result<f64> {
        let nanos = self.runtime.block_on(nanos_per_operation(counts, time, async |number| {
            let random = scattered(number);
            let target = (random >> 20) % MONSTERS;
            let (character, amount) = targets::blow(random);
            if self.monsters.damage(TENANT, targets::id(target), character, amount as i64).await?.killed {
                let fresh = self.fresh[target as usize].clone();
                self.scope.put(&targets::key(target), fresh).await?;
            }
            Ok(())
        }));
        nanos.map(per_second)
    }
}

/// In memory, beside the JSON work alone: the floor under every store that keeps JSON.
pub(crate) fn in_memory(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let field = Field::new(Embedded::in_memory())?;
    let mut records: Vec<Vec<u8>> = field.fresh.iter().map(targets::json).collect::<Result<_>>()?;
    let (ours, peer) = bench.take_turns(
        name,
        "hits/s",
        || field.rate(Counts::Core, bench.sample),
        || json_rate(&field, &mut records, bench.sample),
    )?;
    let row = Row::new(name, "hits/s", &ours, &peer, Goal::AtLeast(300_000.0));
    Ok(vec![row.beside("the JSON work alone (read, strike, write), without any store")])
}

fn json_rate(field: &Field, records: &mut [Vec<u8>], time: Duration) -> Result<f64> {
    let nanos = field.runtime.block_on(nanos_per_operation(Counts::Core, time, async |number| {
        let random = scattered(number);
        let target = ((random >> 20) % MONSTERS) as usize;
        let (character, amount) = targets::blow(random);
        let mut monster = Json::<Monster>::decode(&records[target])?;
        if rules::strike(&mut monster, character, amount)?.killed {
            monster.clone_from(&field.fresh[target]);
        }
        records[target].clear();
        Ok(Json::<Monster>::encode(&monster, &mut records[target])?)
    }));
    nanos.map(per_second)
}

/// With a journal that is synced every second, beside the same without.
pub(crate) fn with_journal(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let folder = bench.folder("damage");
    let options = Embedded::builder().data(&folder).durability(Durability::EverySec);
    let (journaled, plain) = (Field::new(options.open()?)?, Field::new(Embedded::in_memory())?);
    let (ours, peer) = bench.take_turns(
        name,
        "hits/s",
        || journaled.rate(Counts::Wall, bench.sample),
        || plain.rate(Counts::Wall, bench.sample),
    )?;
    drop(journaled);
    let _ = std::fs::remove_dir_all(&folder);
    let row = Row::new(name, "hits/s", &ours, &peer, Goal::RatioAtLeast(0.8));
    Ok(vec![row.beside("the same without a journal")])
}
