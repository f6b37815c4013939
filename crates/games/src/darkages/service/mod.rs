//! The operations on hot state. Each is one atomic transaction, or a loop of them that its documentation describes.

mod combat;
mod positions;
mod sessions;
mod sweep;
mod zones;

pub use combat::{Damage, DamageRequest, Fighter};
pub use positions::Positioned;
pub use sessions::{Existing, LoginRequest, SessionChange};
pub use sweep::SessionsClosed;

use super::error::{Error, Result};
use super::events::PlayEnd;
use super::limits::{SESSION_LIFE, TEXT_BYTES_MAX};
use super::model::{EntityId, Play, Session, ZoneId};
use super::schema::*;
use super::shards::Shards;
use crate::world::word_problem;
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_primitives::DueQueue;
use std::sync::Arc;

/// The hot state of DarkAges on a store. Cheap to clone.
///
/// An operation on a zone runs in the zone's shard. An operation on an entity runs where the entity is; a zone server,
/// which knows that, uses [`in_zone`](DarkAges::in_zone).
#[derive(Clone)]
pub struct DarkAges {
    store: Store,
    server_instance: Arc<str>,
    shards: Arc<Shards>,
    /// Where entities are, if the caller knows it.
    home: Option<Shard>,
}

impl DarkAges {
    /// The hot state on a store, as this server (at most 128 bytes, in play sessions and events) changes it.
    pub fn new(store: Store, server_instance: impl Into<String>) -> Result<DarkAges> {
        let server_instance = server_instance.into();
        check_text("server instance", &server_instance)?;
        Ok(DarkAges { store, server_instance: server_instance.into(), shards: Arc::default(), home: None })
    }

    /// The shards of the game.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// The same for entities in the shard of this zone: their operations do not look up where they are. An entity that
    /// is elsewhere is not logged in there.
    pub fn in_zone(&self, zone: ZoneId) -> DarkAges {
        DarkAges { home: Some(self.shards.of(zone)), ..self.clone() }
    }

    /// The partition of a zone.
    pub fn scope_of(&self, zone: ZoneId) -> Scope<Shard> {
        self.scope_of_shard(self.shards.of(zone))
    }

    /// The partitions of all zones.
    pub fn scopes(&self) -> Vec<Scope<Shard>> {
        let partitions = self.shards.partitions(self.store.key_layout());
        partitions.into_iter().map(|shard| self.store.scope(shard)).collect()
    }

    /// The partition of the zone that [`in_zone`](DarkAges::in_zone) named; without it, that of shard 0.
    pub fn scope(&self) -> Scope<Shard> {
        self.scope_of_shard(self.home.unwrap_or_default())
    }

    fn scope_of_shard(&self, shard: Shard) -> Scope<Shard> {
        self.store.scope(Shards::partition(shard, self.store.key_layout()))
    }

    /// Runs a transaction where an entity is.
    async fn at_home<T, F>(&self, entity: EntityId, operation: &'static str, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_, Shard>) -> Result<T> + Send + Sync + 'static,
    {
        let _ = entity;
        self.scope().named(operation).transact(body).await
    }
}

/// The living session of an entity with its play record.
fn logged_in(tx: &mut Tx<'_, Shard>, entity: EntityId) -> Result<(Session, Play)> {
    let (session, play) = tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity))))?;
    let session = session.ok_or(Error::NotLoggedIn { entity })?;
    let play = play_of(tx, entity, play, &session)?;
    Ok((session, play))
}

/// The play record of a living session. One that another program began has a play record from now on, and its end is
/// noticed. Another program may have changed the zone, too.
fn play_of(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    play: Option<Play>,
    session: &Session,
) -> hot::Result<Play> {
    let Session { entity_id, login_time, last_activity, zone_id, .. } = *session;
    let Some(play) = play else {
        let end = session_end(tx.now());
        sessions_due().set(tx, &entity, end)?;
        return Ok(Play::new(super::events::event_id(tx), entity_id, login_time, last_activity, zone_id));
    };
    Ok(Play { zone_id, ..play })
}

/// Writes a session and its play record as active now.
fn put_active(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    session: &mut Session,
    play: &mut Play,
) -> hot::Result<()> {
    let now = tx.now();
    session.entity_id = entity.0;
    session.last_activity = now;
    (play.last_activity, play.zone_id) = (now, session.zone_id);
    tx.put(&SESSION.key(entity), session)?;
    tx.put(&PLAY.key(entity), play)
}

/// Records the play session and removes all that is left of the session.
fn close(tx: &mut Tx<'_, Shard>, entity: EntityId, play: Play, ended_at: i64) -> hot::Result<()> {
    tx.del(&SESSION.key(entity))?;
    tx.del(&POSITION.key(entity))?;
    tx.del(&PLAYER_ZONE.key(entity))?;
    tx.srem(&ZONE_PLAYERS.key(ZoneId(play.zone_id)), &entity)?;
    tx.del(&PLAY.key(entity))?;
    tx.zrem(&SESSIONS_DUE.key(), &entity)?;
    tx.append(&PLAYS_LOG.key(), &PlayEnd::new(play, ended_at))
}

fn sessions_due() -> DueQueue<SESSIONS_DUE> {
    DueQueue::new(SESSIONS_DUE.key())
}

/// The first millisecond in which a session that is active now can be gone.
fn session_end(now: i64) -> i64 {
    now + SESSION_LIFE.as_millis() as i64 + 1
}

fn check_text(what: &'static str, text: &str) -> Result<()> {
    match word_problem(text, TEXT_BYTES_MAX) {
        Some(problem) => Err(Error::invalid(what, problem)),
        None => Ok(()),
    }
}
