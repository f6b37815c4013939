//! Staging a tick: its chunks, the mark that they are complete, and the documented hashes.

use super::change::Change;
use super::chunk::Chunk;
use super::commit::{NextTick, running};
use super::records::{StagedTick, TickHead, label};
use super::world::{Entity, World, chunks_of_systems};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{
    CHUNK_ENTITIES_MAX, COMMITS_AT_ONCE, HASHES_PER_COMMIT, TICK_LEASE as LEASE_LIFE,
};
use crate::galaxy::model::{Pairs, body_motion, structure_motion};
use crate::galaxy::schema::{BODY, CHUNK, Galaxy, HEAD, JUMPGATE, KEPT, SHIP, STAGED, STATION, TICK_LEASE};
use crate::galaxy::service::Physics;
use crate::galaxy::services::STAGE;
use emberkeep_hot::command::{RawKey, Read, Reply, Write};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{self as hot, Scope, Tx};
use emberkeep_primitives::lease::Lease;
use emberkeep_schema::{Array, Declaration, Family};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

/// A tick that was staged.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    /// What [`TickRun::switch`](super::TickRun::switch) makes the present tick.
    pub head: TickHead,
    /// Removals of entities of the tick that exist no more. The next tick is without them.
    pub gone: Vec<Change>,
}

impl Physics {
    /// Writes a step as chunks, marks it as staged, and updates the hashes of its entities. `epoch` is that of the engine
    /// that began the step ([`TickRun::epoch`](super::TickRun::epoch)).
    ///
    /// Of an entity that exists no more no hash is written.
    pub fn stage<'a>(
        &'a self,
        epoch: i64,
        step: &'a NextTick,
        world: &'a World,
    ) -> Pending<'a, Result<Staged>> {
        Box::pin(async move {
            world.check()?;
            let entities = world.entities();
            let head = head_of(step, &entities);
            self.begin_stage(epoch, &head).await?;
            self.write_chunks(epoch, &head, &entities).await?;
            self.mark_staged(epoch, &head).await?;
            let gone = write_hashes(self.scope(), epoch, &head, entities).await?;
            Ok(Staged { head, gone })
        })
    }

    fn staging(&self) -> Scope<Galaxy> {
        self.scope().for_operation(&STAGE)
    }

    /// Notes how many chunks there will be, so that they are removed one day, whatever happens.
    async fn begin_stage(&self, epoch: i64, head: &TickHead) -> Result<()> {
        let (lease, head) = (lease()?, head.clone());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            check_next(tx, &head)?;
            let name = head.label();
            let before = tx.hget(&KEPT.key(), &name)?.unwrap_or(0);
            Ok(tx.hset(&KEPT.key(), &name, &head.chunks.max(before))?)
        };
        self.staging().named("galaxy.begin_stage").transact::<_, Error, _>(transaction).await
    }

    async fn write_chunks(&self, epoch: i64, head: &TickHead, entities: &[Entity]) -> Result<()> {
        let (lease, scope) = (lease()?, self.staging().named("galaxy.write_chunk"));
        let commits: Vec<Pending<'_, Result<()>>> = entities
            .chunks(CHUNK_ENTITIES_MAX)
            .zip(0..)
            .map(|(entities, number)| write_chunk(&scope, &lease, epoch, head, (number, entities)))
            .collect();
        stream::iter(commits).buffer_unordered(COMMITS_AT_ONCE).try_collect().await
    }

    async fn mark_staged(&self, epoch: i64, head: &TickHead) -> Result<()> {
        let (lease, head) = (lease()?, head.clone());
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            check_next(tx, &head)?;
            Ok(tx.put(&STAGED.key(), &StagedTick::new(epoch, head.clone()))?)
        };
        self.staging().named("galaxy.mark_staged").transact::<_, Error, _>(transaction).await
    }
}

/// Updates the hashes of the entities that exist. Returns removals of the others.
pub(super) async fn write_hashes(
    scope: Scope<Galaxy>,
    epoch: i64,
    head: &TickHead,
    entities: Vec<Entity>,
) -> Result<Vec<Change>> {
    let (lease, scope, tick) = (lease()?, scope.named("galaxy.write_hashes"), head.tick);
    let commits: Vec<Pending<'_, Result<Vec<Change>>>> = entities
        .chunks(HASHES_PER_COMMIT)
        .map(|entities| write_group(&scope, &lease, epoch, tick, entities))
        .collect();
    let gone: Vec<Vec<Change>> =
        stream::iter(commits).buffer_unordered(COMMITS_AT_ONCE).try_collect().await?;
    Ok(gone.into_iter().flatten().collect())
}

/// Writes one chunk.
fn write_chunk<'a>(
    scope: &'a Scope<Galaxy>,
    lease: &'a Lease<TICK_LEASE>,
    epoch: i64,
    head: &'a TickHead,
    (number, entities): (i64, &'a [Entity]),
) -> Pending<'a, Result<()>> {
    Box::pin(async move {
        let TickHead { generation, tick, .. } = *head;
        let chunk = Chunk { generation, tick, number, entities: entities.to_vec() };
        let lease = lease.clone();
        let transaction = move |tx: &mut Tx<'_, Galaxy>| {
            lease.check(tx, epoch)?;
            Ok(tx.put(&CHUNK.key(generation, tick, number), &chunk)?)
        };
        scope.transact::<(), Error, _>(transaction).await
    })
}

/// Updates some hashes in one commit. If a key of another type stands in the place of one, once more with a look at each
/// type. Returns removals of the entities that do not exist.
fn write_group<'a>(
    scope: &'a Scope<Galaxy>,
    lease: &'a Lease<TICK_LEASE>,
    epoch: i64,
    tick: i64,
    entities: &'a [Entity],
) -> Pending<'a, Result<Vec<Change>>> {
    Box::pin(async move {
        let hashes: hot::Result<Vec<HashUpdate>> =
            entities.iter().map(|entity| HashUpdate::of(entity, tick)).collect();
        let hashes = Arc::new(hashes?);
        let run = |read: Read| {
            let (lease, hashes) = (lease.clone(), hashes.clone());
            scope.transact::<_, Error, _>(move |tx: &mut Tx<'_, Galaxy>| {
                lease.check(tx, epoch)?;
                Ok(update_existing(tx, &hashes, &read)?)
            })
        };
        match run(Read::Exists).await {
            Err(Error::Store(hot::Error::WrongType { .. })) => run(Read::HLen).await,
            result => result,
        }
    })
}

/// A hash that a tick updates.
struct HashUpdate {
    name: fn(&Tx<'_, Galaxy>, &Entity) -> RawKey,
    family: &'static Declaration,
    entity: Entity,
    pairs: Pairs,
    gone: Change,
}

impl HashUpdate {
    fn of(entity: &Entity, tick: i64) -> hot::Result<HashUpdate> {
        let (family, pairs, gone) = match entity {
            Entity::Ship(ship_id, ship) => {
                (SHIP::DECLARATION, ship.motion.pairs(tick)?, Change::ShipRemoved { ship_id: *ship_id })
            }
            Entity::Body(name, state) => {
                let pairs = body_motion(&state.position, &state.velocity)?;
                (BODY::DECLARATION, pairs, Change::BodyRemoved { name: name.clone() })
            }
            Entity::Station(station_id, state) => {
                let pairs = structure_motion(&state.position, &state.velocity)?;
                (STATION::DECLARATION, pairs, Change::StationRemoved { station_id: *station_id })
            }
            Entity::Jumpgate(jumpgate_id, state) => {
                let pairs = structure_motion(&state.position, &state.velocity)?;
                (JUMPGATE::DECLARATION, pairs, Change::JumpgateRemoved { jumpgate_id: *jumpgate_id })
            }
        };
        let name = |tx: &Tx<'_, Galaxy>, entity: &Entity| match entity {
            Entity::Ship(id, _) => tx.raw_name(&SHIP.key(id)),
            Entity::Body(name, _) => tx.raw_name(&BODY.key(name)),
            Entity::Station(id, _) => tx.raw_name(&STATION.key(id)),
            Entity::Jumpgate(id, _) => tx.raw_name(&JUMPGATE.key(id)),
        };
        Ok(HashUpdate { name, family, entity: entity.clone(), pairs, gone })
    }

    fn write(&self) -> Write {
        let bytes = |text: &String| bytes::Bytes::copy_from_slice(text.as_bytes());
        Write::HSet(self.pairs.iter().map(|(field, text)| (bytes(field), bytes(text))).collect())
    }
}

/// Updates the hashes that `read` finds, and returns removals of the others.
fn update_existing(tx: &mut Tx<'_, Galaxy>, hashes: &[HashUpdate], read: &Read) -> hot::Result<Vec<Change>> {
    let reads: Vec<_> = hashes.iter().map(|hash| ((hash.name)(tx, &hash.entity), read.clone())).collect();
    let replies = tx.raw_read_many(&reads)?;
    let mut gone = Vec::new();
    for ((hash, (key, _)), reply) in hashes.iter().zip(reads).zip(replies) {
        match reply {
            Ok(Reply::Int(0)) | Err(hot::Error::WrongType { .. }) => gone.push(hash.gone.clone()),
            Ok(_) => tx.raw_write_of(hash.family, key, hash.write())?,
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}

pub(super) fn lease() -> Result<Lease<TICK_LEASE>> {
    Ok(Lease::new(TICK_LEASE.key(), LEASE_LIFE)?)
}

fn head_of(step: &NextTick, entities: &[Entity]) -> TickHead {
    let chunks = entities.len().div_ceil(CHUNK_ENTITIES_MAX) as i64;
    TickHead {
        drift: step.drift,
        chunks,
        entities: entities.len() as i64,
        changes: step.through,
        systems: Array::from(chunks_of_systems(entities, CHUNK_ENTITIES_MAX)),
        ..TickHead::new(step.generation, step.tick, step.time.micros())
    }
}

/// Refuses a step that is not the next one: a reset or another tick came between, or a tick is staged.
fn check_next(tx: &mut Tx<'_, Galaxy>, head: &TickHead) -> Result<()> {
    running(tx)?;
    let (present, staged) = tx.together(|tx| (tx.get(&HEAD.key()), tx.get(&STAGED.key())))?;
    let next = present.map_or((0, 0), |present| (present.generation, present.tick + 1));
    if staged.is_none() && next == (head.generation, head.tick) {
        return Ok(());
    }
    let next = staged.map_or(next, |staged| (staged.head.generation, staged.head.tick));
    Err(Error::StaleStep { step: head.label(), next: label(next.0, next.1) })
}
