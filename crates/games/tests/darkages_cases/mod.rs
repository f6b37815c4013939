//! The cases of DarkAges' hot state, for any store. A case has players and zones of its own.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod boards;
mod channels;
mod combat;
mod connections;
mod hand_off;
mod into_history;
mod nearby;
mod positions;
mod rate_limits;
mod realm;
mod sessions;
mod shards;
mod zones;

pub use boards::*;
pub use channels::*;
pub use combat::*;
pub use connections::*;
pub use hand_off::*;
pub use into_history::*;
pub use nearby::*;
pub use positions::*;
pub use rate_limits::*;
pub use realm::*;
pub use sessions::*;
pub use shards::*;
pub use zones::*;

use bytes::Bytes;
use emberkeep_games::darkages::archive::recorder::HitRecord;
use emberkeep_games::darkages::events::PlayEnd;
use emberkeep_games::darkages::{
    ARRIVAL, COMBAT_LOG, DarkAges, EntityId, HANDOFFS_OUT, HandOff, HandOffRequest, LoginRequest, PLAYS_LOG,
    Point, SESSION, SESSIONS_DUE, Session, Shard, Shards, ZoneId,
};
use emberkeep_hot::command::{Expiry, Write, ZSlice};
use emberkeep_hot::{self as hot, Scope, Store, Tx};
use emberkeep_schema::{Family, Json, Key, Log, RefuseAbove};
use std::sync::atomic::{AtomicI64, Ordering};

/// Where players of the cases stand.
#[allow(non_snake_case)]
pub fn HERE() -> Point {
    Point::new(1234.5, 0.0, 6789.0)
}

/// Ids that no other case of this process uses.
static NEXT: AtomicI64 = AtomicI64::new(1);

/// A city with ids of its own.
#[derive(Clone)]
pub struct City {
    pub game: DarkAges,
    pub scope: Scope<Shard>,
    pub first: i64,
}

impl City {
    pub fn of(store: &Store) -> City {
        let game = DarkAges::new(store.clone(), "zone-1").unwrap();
        let first =
            NEXT.fetch_add(1, Ordering::Relaxed) * 1_000_000 + i64::from(std::process::id() % 1_000) * 1_000;
        City { scope: game.scope(), game, first }
    }

    /// A city of three shards with ten zones each: `zone(1)` is in the first, `zone(11)` in the second, `zone(21)` in the third.
    pub fn of_shards(store: &Store) -> City {
        let city = City::of(store);
        let ranges = (0..3).map(|number| {
            let first = city.zone(number * 10);
            (first.0..=first.0 + 9, Shard(u16::try_from(number).unwrap() + 1))
        });
        let game = city.game.clone().with_shards(Shards::new(ranges).unwrap());
        City { scope: game.scope_of(city.zone(1)), game, ..city }
    }

    /// Whether a hand-off to another shard is one between partitions.
    pub fn is_split(&self) -> bool {
        self.game.scopes().len() > 1
    }

    /// Hands a player off and accepts it.
    pub async fn hand_over(&self, entity: EntityId, zone: ZoneId) -> Session {
        match self.game.hand_off(self.to(entity, zone)).await.unwrap() {
            HandOff::Done(session) => session,
            HandOff::InTransit { .. } => self.game.accept(entity, zone).await.unwrap(),
        }
    }

    pub fn to(&self, entity: EntityId, zone: ZoneId) -> HandOffRequest {
        HandOffRequest { entity, zone, position: Point::new(1.0, 2.0, 3.0) }
    }

    /// How often a player exists, as a session, an arrival or a letter, in all shards.
    pub async fn copies(&self, entity: EntityId) -> usize {
        let mut copies = 0;
        for scope in self.game.scopes() {
            copies += usize::from(scope.exists(&SESSION.key(entity)).await.unwrap());
            copies += usize::from(scope.exists(&ARRIVAL.key(entity)).await.unwrap());
            let letters = scope.zrange(&HANDOFFS_OUT.key(), ZSlice::Rank(0, -1), false).await.unwrap();
            let names = |body: &[u8]| {
                String::from_utf8_lossy(body).starts_with(&format!(r#"{{"entity_id":{},"#, entity.0))
            };
            copies += letters.iter().filter(|(letter, _)| names(&letter.body)).count();
        }
        copies
    }

    pub fn player(&self, number: i64) -> EntityId {
        EntityId(self.first + number)
    }

    pub fn zone(&self, number: i32) -> ZoneId {
        ZoneId(i32::try_from(self.first % 1_000_000_000).unwrap() + number)
    }

    pub fn request(&self, number: i64) -> LoginRequest {
        LoginRequest::new(self.player(number).0, "player_abc123", self.zone(1), HERE())
    }

    pub async fn login(&self, number: i64) -> (EntityId, Session) {
        (self.player(number), self.game.login(self.request(number)).await.unwrap())
    }

    /// Who is in a zone, in order.
    pub async fn members(&self, zone: ZoneId) -> Vec<i64> {
        let listing = self.game.members(zone).await.unwrap();
        let mut ids: Vec<i64> = listing.living.iter().map(|session| session.entity_id).collect();
        ids.sort_unstable();
        ids
    }

    /// The events of a log that wait.
    pub async fn waiting<F, E, const MAX: usize>(&self, log: Key<F>) -> Vec<E>
    where
        F: Family<Partition = Shard, Kind = Log<Json<E>, RefuseAbove<MAX>>>,
        E: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        let mut events = Vec::new();
        for scope in self.game.scopes() {
            let mut after = 0;
            loop {
                let page = scope.log_after(&log, after, 200).await.unwrap();
                let Some(last) = page.entries.last() else { break };
                after = last.sequence;
                events.extend(page.entries.into_iter().map(|entry| entry.event.unwrap()));
            }
        }
        events
    }

    /// Play sessions of a player that have ended and wait for history.
    pub async fn play_ends(&self, player: i64) -> Vec<PlayEnd> {
        let ends = self.waiting(PLAYS_LOG.key()).await;
        ends.into_iter().filter(|end: &PlayEnd| end.play.player_id == player).collect()
    }

    /// Hits on a player that wait for history.
    pub async fn hits_on(&self, target: EntityId) -> Vec<HitRecord> {
        let hits = self.waiting(COMBAT_LOG.key()).await;
        hits.into_iter().filter(|hit: &HitRecord| hit.target_id == target.0).collect()
    }

    /// A write as another program does it.
    pub async fn external<F: Family<Partition = Shard>>(&self, key: &Key<F>, write: Write) {
        let key = Bytes::from(key.to_text(self.scope.store().key_layout(), self.scope.partition()));
        let transaction = move |tx: &mut Tx<'_, Shard>| tx.raw_write(key.clone(), write.clone());
        self.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }

    pub async fn external_set<F: Family<Partition = Shard>>(&self, key: &Key<F>, text: &str) {
        self.external(key, Write::Set(Bytes::from(text.to_owned()), Expiry::Never)).await;
    }

    /// Makes the sweep look at a session now.
    pub async fn make_due(&self, entity: EntityId) {
        let transaction = move |tx: &mut Tx<'_, Shard>| tx.zadd(&SESSIONS_DUE.key(), &entity, 1.0);
        self.scope.transact::<(), hot::Error, _>(transaction).await.unwrap();
    }
}
