//! Where entities are.
//!
//! Where all shards are one partition, the session's key is the authority: it exists once, so a transaction that reads it
//! knows whether the player is logged in and where, and there is no directory. It would be a second record of the same
//! fact, and on Redis one more key in each commit.
//!
//! Where shards are partitions of their own (on a Cluster), the session's key exists once in each of them, so none of these
//! can be the authority. The directory is: an entry for each entity, in a partition of the entity's own
//! ([`primitives::directory`](emberkeep_primitives::directory)). Login, hand-off and logout change it first, by comparing.
//! Each play record carries the number under which the directory knew the player, so a session of another number is not
//! the player: operations on the entity do not find it, and the sweep closes it.
//!
//! An operation on an entity reads the entry, then runs in its shard. [`DarkAges::in_zone`] skips that read.

use super::*;
use emberkeep_primitives::directory::{self, Directory, Placement, State};
use uuid::Uuid;

/// The directory of entities.
pub(super) struct Homes;

impl Directory for Homes {
    type Entity = Entity;
    type Home = Shard;
    type Entry = DIRECTORY;
    type Admitted = ADMITTED;

    fn entry() -> emberkeep_schema::Key<DIRECTORY> {
        DIRECTORY.key()
    }

    fn admitted(entity: &Entity) -> emberkeep_schema::Key<ADMITTED> {
        ADMITTED.key(entity.0)
    }
}

/// Whose an entry is: the session, and its player if the entity is not the player's own. As text `SESSION` or
/// `SESSION PLAYER`. Entries of before players were kept have the session alone.
pub(super) struct Owner {
    pub(super) session_id: Uuid,
    pub(super) player_id: i64,
}

impl Owner {
    pub(super) fn of(play: &Play) -> Owner {
        Owner { session_id: play.session_id, player_id: play.player_id }
    }

    /// `None` = another program began the session.
    pub(super) fn parse(text: &str, entity: EntityId) -> Option<Owner> {
        let (session_id, player_id) = match text.split_once(' ') {
            Some((session_id, player_id)) => (session_id, player_id.parse().ok()?),
            None => (text, entity.0),
        };
        Some(Owner { session_id: session_id.parse().ok()?, player_id })
    }

    pub(super) fn to_text(&self, entity: EntityId) -> String {
        let Owner { session_id, player_id } = self;
        if *player_id == entity.0 { session_id.to_string() } else { format!("{session_id} {player_id}") }
    }
}

/// Whether an entry is of the session of this play record. A login has an id of its own.
pub(super) fn is_of_session(found: &Placement<Shard>, entity: EntityId, play: &Play) -> bool {
    Owner::parse(&found.owner, entity).is_some_and(|owner| owner.session_id == play.session_id)
}

/// How often an operation follows an entity that moves meanwhile.
pub(super) const FOLLOWED_MAX: usize = 8;

impl DarkAges {
    /// Whether a shard is that of [`in_zone`](DarkAges::in_zone), or there is none.
    pub(super) fn is_here(&self, shard: Shard) -> bool {
        self.home.is_none_or(|home| home == shard)
    }

    /// Whether the shards are partitions of their own, so that entities have to be found.
    pub(super) fn is_split(&self) -> bool {
        self.partitions.len() > 1
    }

    /// The partition of an entity's own, for the directory.
    pub(super) fn entry_scope(&self, entity: EntityId) -> Scope<Entity> {
        self.store.scope(Entity(entity))
    }

    /// What the directory knows of an entity.
    pub(super) async fn find(&self, entity: EntityId) -> Result<Option<Placement<Shard>>> {
        let scope = self.entry_scope(entity).named("darkages.find");
        Ok(scope.read(directory::find::<Homes>).await?)
    }

    /// The shard in which an entity is logged in, or will be when its hand-off ends.
    pub(super) async fn shard_of(&self, entity: EntityId) -> Result<Shard> {
        if let Some(shard) = self.home.filter(|_| self.is_split()) {
            return Ok(shard);
        }
        if !self.is_split() {
            return Ok(Shard(0));
        }
        let found = self.find(entity).await?.filter(|found| found.state != State::Ended);
        found.map(|found| found.home).ok_or(Error::NotLoggedIn { entity })
    }

    /// Runs a transaction where an entity is. A player on its way is [`InTransit`](Error::InTransit).
    pub(super) async fn at_home<T, F>(&self, entity: EntityId, operation: &'static str, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_, Shard>) -> Result<T> + Send + Sync + 'static,
    {
        if self.home.is_some() || !self.is_split() {
            return self.scope().named(operation).transact(body).await;
        }
        let (body, mut found) = (Arc::new(body), self.find(entity).await?);
        for _ in 0..FOLLOWED_MAX {
            let Some(place) = found.filter(|found| found.state != State::Ended) else {
                return Err(Error::NotLoggedIn { entity });
            };
            let (body, number) = (body.clone(), place.number);
            let scope = self.store.scope(place.home).named(operation);
            let scope = scope.prefetch_get(&SESSION.key(entity)).prefetch_get(&PLAY.key(entity));
            let result = scope.transact(move |tx: &mut Tx<'_, Shard>| {
                expect_number(tx, entity, number)?;
                body(tx)
            });
            let result = result.await;
            if result.as_ref().err() != Some(&Error::NotLoggedIn { entity }) {
                return result;
            }
            // It is not there: it may have gone on meanwhile.
            found = self.find(entity).await?;
            if found.as_ref().is_some_and(|found| found.number == number) {
                let is_moving = matches!(place.state, State::Moving { .. });
                return if is_moving { Err(Error::InTransit { entity }) } else { result };
            }
        }
        Err(Error::InTransit { entity })
    }
}

/// Refuses a session that the directory does not know under this number.
pub(super) fn expect_number(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64) -> Result<()> {
    match tx.get(&PLAY.key(entity))? {
        Some(play) if play.number != number => Err(Error::NotLoggedIn { entity }),
        _ => Ok(()),
    }
}
