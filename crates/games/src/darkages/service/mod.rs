//! The operations on hot state. Each is one atomic transaction, or a loop of them that its documentation describes.

mod arrivals;
mod channels;
mod combat;
mod connections;
mod hand_off;
mod homes;
mod moderation;
mod nearby;
mod positions;
mod rate_limits;
mod sessions;
mod sessions_split;
mod sweep;
mod sweep_directory;
mod sweep_shards;
mod zones;

pub use combat::{Damage, DamageRequest, Fighter};
pub use connections::{Connection, ConnectionRequest};
pub use hand_off::{HandOff, HandOffRequest};
pub use nearby::{Nearby, NearbyRequest};
pub use positions::PositionsReport;
pub use rate_limits::RateCheck;
pub use sessions::{LoginPolicy, LoginRequest, SessionChange};
pub use sweep::SessionSweep;
pub use sweep_directory::DirectoryChecked;
pub use sweep_shards::HandOffsSwept;
pub use zones::Heartbeat;

use super::boards::Boards;
use super::error::{Error, Result};
use super::events::PlayEnd;
use super::limits::{DIRECTORY_CHECK_EVERY, SESSION_LIFE, TEXT_BYTES_MAX};
use super::model::{EntityId, Play, Session, ZoneId};
use super::schema::*;
use super::shards::Shards;
use crate::world::word_problem;
use emberkeep_history::outbox::{Consumer, DrainError};
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_primitives::DueQueue;
use emberkeep_schema::Key;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The hot state of DarkAges on a store. Cheap to clone.
///
/// An operation on a zone runs in the zone's shard. An operation on an entity runs where the entity is; a zone server,
/// which knows that, uses [`in_zone`](DarkAges::in_zone).
///
/// Hits, play sessions and audit entries wait in logs until history has them, so consumers must run
/// ([`consumers`](DarkAges::consumers)). A log that is full refuses what would be lost, with
/// [`LogFull`](hot::Error::LogFull); the limits are in [`limits`](super::limits).
#[derive(Clone)]
pub struct DarkAges {
    store: Store,
    server_instance: Arc<str>,
    shards: Arc<Shards>,
    /// The partitions of the shards.
    partitions: Arc<[Shard]>,
    /// The partition in which entities are, if the caller knows it.
    home: Option<Shard>,
    /// One for each partition: held while the mail of one is delivered.
    couriers: Arc<[Mutex<()>]>,
}

impl DarkAges {
    /// The hot state on a store, as this server (at most 128 bytes, in play sessions and events) changes it.
    pub fn new(store: Store, server_instance: impl Into<String>) -> Result<DarkAges> {
        let server_instance = server_instance.into();
        check_text("server instance", &server_instance)?;
        let game = DarkAges {
            store,
            server_instance: server_instance.into(),
            shards: Arc::default(),
            partitions: Arc::default(),
            home: None,
            couriers: Arc::default(),
        };
        Ok(game.with_shards(Shards::default()))
    }

    /// The same with these shards instead of one. All services on a store are given the same.
    pub fn with_shards(self, shards: Shards) -> DarkAges {
        let partitions: Arc<[Shard]> = shards.partitions(self.store.key_layout()).into();
        let couriers = partitions.iter().map(|_| Mutex::default()).collect();
        DarkAges { shards: Arc::new(shards), partitions, couriers, home: None, ..self }
    }

    /// The shards of the game.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// The same for entities in the shard of this zone: their operations do not look up where they are. An entity that
    /// is elsewhere is not logged in there.
    pub fn in_zone(&self, zone: ZoneId) -> DarkAges {
        DarkAges { home: Some(self.partition_of(zone)), ..self.clone() }
    }

    /// The partition of a zone.
    pub fn scope_of(&self, zone: ZoneId) -> Scope<Shard> {
        self.store.scope(self.partition_of(zone))
    }

    /// The partitions of all zones.
    pub fn scopes(&self) -> Vec<Scope<Shard>> {
        self.partitions.iter().map(|shard| self.store.scope(*shard)).collect()
    }

    /// The partition of the zone that [`in_zone`](DarkAges::in_zone) named; without it, that of shard 0.
    pub fn scope(&self) -> Scope<Shard> {
        self.store.scope(self.home.unwrap_or_default())
    }

    /// The consumers of the outboxes of all shards and of the leaderboards: they bring hits, play sessions, audit entries and
    /// scores into history, and put scores on the boards.
    pub fn consumers(
        &self,
        history: &emberkeep_history::History,
    ) -> std::result::Result<Vec<Consumer>, DrainError> {
        let mut all = Vec::new();
        for scope in self.scopes() {
            all.extend(super::events::consumers(&scope, history)?);
        }
        all.push(self.boards().consumer(history)?);
        Ok(all)
    }

    /// The leaderboards, which the logs of hits and play sessions feed.
    pub fn boards(&self) -> Boards {
        Boards::new(&self.store)
    }

    fn partition_of(&self, zone: ZoneId) -> Shard {
        Shards::partition(self.shards.of(zone), self.store.key_layout())
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
/// noticed; the session that it replaced has ended at its last activity. Another program may have changed the zone, too.
fn play_of(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    play: Option<Play>,
    session: &Session,
) -> hot::Result<Play> {
    let Session { entity_id, login_time, last_activity, zone_id, .. } = *session;
    let former = match play {
        Some(play) if play.login_time == login_time => return Ok(Play { zone_id, ..play }),
        former => former,
    };
    // The directory goes on to name the entity's session here by this number.
    let number = former.as_ref().map_or(0, |former| former.number);
    if let Some(former) = former {
        let ended_at = former.last_activity;
        tx.append(&PLAYS_LOG.key(), &PlayEnd::new(former, ended_at))?;
    }
    let now = tx.now();
    sessions_due().set(tx, &entity, if number == 0 { session_end(now) } else { next_check(now) })?;
    let session_id = super::events::event_id(tx);
    Ok(Play { number, ..Play::new(session_id, entity_id, login_time, last_activity, zone_id) })
}

/// From when on a position is one of this session, and not of an earlier one. A session of a player begins after the last one,
/// so after a clock that went back its start is yet to come: then the last activity is the better bound.
fn position_since(session: &Session) -> i64 {
    session.login_time.min(session.last_activity)
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
    tx.touch(&PLAYER_ZONE.key(entity))?;
    tx.put(&PLAY.key(entity), play)
}

/// Writes a session and its play record after what its player did not do: the session ends when it would have.
fn put_passive(tx: &mut Tx<'_, Shard>, entity: EntityId, session: &Session, play: &Play) -> hot::Result<()> {
    tx.put_keep_ttl(&SESSION.key(entity), session)?;
    tx.put(&PLAY.key(entity), play)
}

/// Records the play session and removes all that is left of the session.
fn close(tx: &mut Tx<'_, Shard>, entity: EntityId, play: Play, ended_at: i64) -> hot::Result<()> {
    remove(tx, entity, ZoneId(play.zone_id), ZoneId::NONE)?;
    tx.append(&PLAYS_LOG.key(), &PlayEnd::new(play, ended_at))
}

/// Removes all that a shard has of a player, who goes on to a zone of another shard or, without a zone, nowhere.
fn remove(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId, next: ZoneId) -> hot::Result<()> {
    tx.del(&SESSION.key(entity))?;
    tx.del(&POSITION.key(entity))?;
    zones::leave(tx, entity, zone, next)?;
    connections::of_entity(entity).leave_all(tx)?;
    tx.del(&PLAY.key(entity))?;
    tx.zrem(&SESSIONS_DUE.key(), &entity)
}

fn sessions_due() -> DueQueue<SESSIONS_DUE> {
    DueQueue::new(SESSIONS_DUE.key())
}

/// The first millisecond in which a session that is active now can be gone.
fn session_end(now: i64) -> i64 {
    now + SESSION_LIFE.as_millis() as i64 + 1
}

/// When the sweep compares a session with the directory next.
fn next_check(now: i64) -> i64 {
    now + DIRECTORY_CHECK_EVERY.as_millis() as i64
}

/// `None` = what another program left at the key cannot be read.
fn readable<T>(value: hot::Result<T>) -> hot::Result<Option<T>> {
    match value {
        Err(error) if error.is_corrupt() => Ok(None),
        value => value.map(Some),
    }
}

pub(super) fn check_text(what: &'static str, text: &str) -> Result<()> {
    match word_problem(text, TEXT_BYTES_MAX) {
        Some(problem) => Err(Error::invalid(what, problem)),
        None => Ok(()),
    }
}
