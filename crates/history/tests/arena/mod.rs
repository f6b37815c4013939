//! An arena whose kills go through an outbox into history: keys, tables, projection, and what a test asks of them.
#![allow(dead_code, unreachable_pub, unused_imports)] // Every test binary uses another part of it.

mod faults;

pub use faults::{Fault, Faults};

use emberkeep_history::outbox::{Consumer, Drained};
use emberkeep_history::testing::NOW;
use emberkeep_history::{
    Batch, DeadLetter, Embedded as EmbeddedHistory, History, HistorySchema, HistoryStore, Rejection,
};
use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_primitives::lease::LeaseRecord;
use emberkeep_schema::{
    Json, Log, Number, RefuseAbove, Text, Timestamp, family, partition, record, table, totals,
};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

pub const EVENTS_MAX: usize = 5_000;

partition! {
    /// An arena.
    pub struct Arena(u32) as "arena";
}
record! {
    /// A kill, as the log has it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct KillEvent {
        /// Its id.
        pub id: Uuid => "id",
        /// The killer.
        pub killer: i64 => "killer",
        /// When, in milliseconds.
        pub at: i64 => "at",
    }
}
family! {
    /// Kills of the arena, as its players were told.
    pub KILLS = "kills:{arena}" { kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}
family! {
    /// The outbox.
    pub EVENTS = "log:kills:{arena}" {
        kind: Log<Json<KillEvent>, RefuseAbove<EVENTS_MAX>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// A small outbox.
    pub FEW = "log:few:{arena}" {
        kind: Log<Json<KillEvent>, RefuseAbove<8>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// Which process drains the outbox.
    pub DRAINER = "ember:drainer:{arena}" {
        kind: Text<Json<LeaseRecord>>, partition: Arena, parts: (), ttl: persistent, owner: "test"
    }
}
table! {
    /// Kills.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Kill = "kills" {
        pub timestamp: Timestamp,
        pub event_id: Uuid,
        pub killer_id: i64,
    }
    partition: (day_bucket = day(timestamp)),
    clustering: (timestamp desc, event_id asc),
    ttl: days(30) of timestamp,
    lookups: (by_killer(killer_id, day_bucket)),
    writes: events,
    owner: "test",
}
table! {
    /// The last kill of a player.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LastKill = "last_kills" {
        pub killer_id: i64,
        pub event_id: Uuid,
    }
    partition: (killer_id),
    clustering: (),
    ttl: persistent,
    writes: versioned,
    owner: "test",
}
totals! {
    /// Kills of a player, ever.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Score = "scores" by "scores_by_source" {
        key: player_id: i64,
        sums: { kills, weight },
        owner: "test",
    }
}

totals! {
    /// Strength of a player, ever: of [`project_with_strength`] only.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Strength = "strengths" by "strengths_by_source" {
        key: player_id: i64,
        sums: { strength },
        owner: "test",
    }
}

/// Killers with a meaning to the projection.
pub const REJECTED: i64 = -1;
pub const PANICS: i64 = -2;
pub const HEAVY: i64 = -3;
pub const STRONG: i64 = 4;

pub fn project(event: &KillEvent, batch: &mut Batch) -> Result<(), Rejection> {
    assert_ne!(event.killer, PANICS, "a defect of the projection");
    if event.killer == REJECTED {
        return Err(Rejection::new("no such player"));
    }
    let timestamp = Timestamp(event.at);
    batch.insert(Kill { timestamp, event_id: event.id, killer_id: event.killer })?;
    batch.upsert_at(LastKill { killer_id: event.killer, event_id: event.id }, event.at)?;
    let weight = if event.killer == HEAVY { i64::MAX / 2 + 1 } else { 1 };
    batch.add(event.killer, timestamp, Score { kills: 1, weight })
}

/// An event with amounts in two totals.
pub fn project_with_strength(event: &KillEvent, batch: &mut Batch) -> Result<(), Rejection> {
    let strength = if event.killer == STRONG { i64::MAX / 2 + 1 } else { 1 };
    project(event, batch)?;
    batch.add(event.killer, Timestamp(event.at), Strength { strength })
}

pub fn schema() -> HistorySchema {
    HistorySchema::new().table::<Kill>().table::<LastKill>().totals::<Score>().totals::<Strength>()
}

pub fn in_memory() -> Store {
    Store::new(Arc::new(Embedded::in_memory()))
}

pub async fn on_redis(url: &str) -> Store {
    Store::new(emberkeep_hot_redis::RedisEngine::connect(url).await.unwrap())
}

pub fn store_in(folder: &Path) -> Arc<dyn HistoryStore> {
    Arc::new(EmbeddedHistory::open(folder, schema(), crate::folders::options()).unwrap())
}

pub fn history_in(folder: &Path) -> History {
    History::new(store_in(folder))
}

pub fn consumer(scope: &Scope<Arena>, history: &History) -> Consumer {
    Consumer::new(scope, EVENTS.key(), DRAINER.key(), history.clone(), project).unwrap()
}

/// A kill of a player: state and event in one commit. `Err` = nothing happened.
pub async fn kill(scope: &Scope<Arena>, killer: i64) -> Result<KillEvent, Error> {
    let event = KillEvent::new(Uuid::new_v4(), killer, NOW);
    kill_by(scope, event.clone()).await?;
    Ok(event)
}

pub async fn kill_by(scope: &Scope<Arena>, event: KillEvent) -> Result<(), Error> {
    scope
        .transact_with(event, |tx, event| {
            tx.incr_by(&KILLS.key(), 1)?;
            tx.append(&EVENTS.key(), event)
        })
        .await
}

pub async fn kills(scope: &Scope<Arena>, killers: impl IntoIterator<Item = i64>) {
    for killer in killers {
        kill(scope, killer).await.unwrap();
    }
}

/// All of the log, by a consumer of its own.
pub async fn drain(scope: &Scope<Arena>, history: &History) -> Drained {
    consumer(scope, history).drain_once().await.unwrap().expect("no other consumer has the lease")
}

/// Kills of a player in the totals and as rows. They are never different.
pub async fn kills_of(history: &History, killer: i64) -> i64 {
    let totals = history.totals::<Score>(killer).await.unwrap().map_or(0, |totals| totals.sums.kills);
    assert_eq!(rows_of(history, killer).await, totals, "rows and totals of {killer}");
    totals
}

/// The rows alone: they come after the totals while a consumer works.
pub async fn rows_of(history: &History, killer: i64) -> i64 {
    let (mut rows, mut after) = (0, None);
    let query = history.range(Kill::by_killer(killer, Timestamp(NOW).day())).rows_max(1_000);
    loop {
        let page = query.page(after.as_ref()).await.unwrap();
        rows += page.rows.len() as i64;
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

/// What an external client does to the log.
pub async fn change_log(scope: &Scope<Arena>, change: emberkeep_hot::command::Write) {
    let write =
        scope.transact_with(change, |tx, change| tx.raw_write(tx.raw_name(&EVENTS.key()), change.clone()));
    write.await.unwrap();
}

pub async fn dead_letters(history: &History, log: &str) -> Vec<DeadLetter> {
    history.range(DeadLetter::partition(log.to_owned())).page(None).await.unwrap().into_rows().unwrap()
}
