//! The driver alone: statements as our store prepares them, batches by partition, typed rows.

use super::IN_FLIGHT_MAX;
use super::raw_totals::TotalsStatements;
use anyhow::Result;
use emberkeep_history::testing::CombatEvent;
use emberkeep_history_cql::limits::BATCH_STATEMENTS_MAX;
use emberkeep_schema::{CqlLayout, Day, Table as _, Timestamp};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use scylla::SerializeRow;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::PagingState;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use std::collections::HashMap;
use tokio::sync::Semaphore;
use uuid::Uuid;

const COLUMNS: &str = "day_bucket, timestamp, event_id, attacker_id, target_id, damage, hit_type, ability_name, zone_id, position_x, position_y, position_z, server_instance, shard_id";
const TTL_SECONDS: i32 = 30 * 86_400;

/// A row as the driver returns it.
type Found =
    (String, CqlTimestamp, Uuid, i64, i64, i32, String, Option<String>, i32, f64, f64, f64, String, i32);

/// The values of an event.
#[derive(SerializeRow)]
struct Stored<'e> {
    day_bucket: String,
    timestamp: CqlTimestamp,
    event_id: Uuid,
    attacker_id: i64,
    target_id: i64,
    damage: i32,
    hit_type: &'e str,
    ability_name: Option<&'e str>,
    zone_id: i32,
    position_x: f64,
    position_y: f64,
    position_z: f64,
    server_instance: &'e str,
    shard_id: i32,
    #[scylla(rename = "[timestamp]")]
    written_us: i64,
    #[scylla(rename = "[ttl]")]
    ttl: i32,
}

/// The same in a table whose days are divided.
#[derive(SerializeRow)]
struct Sliced<'e> {
    #[scylla(flatten)]
    stored: Stored<'e>,
    ember_bucket: i32,
    ember_slice: i32,
}

fn stored(event: &CombatEvent) -> Stored<'_> {
    Stored {
        day_bucket: event.timestamp.day().to_string(),
        timestamp: CqlTimestamp(event.timestamp.0),
        event_id: event.event_id,
        attacker_id: event.attacker_id,
        target_id: event.target_id,
        damage: event.damage,
        hit_type: event.hit_type.text(),
        ability_name: event.ability_name.as_deref(),
        zone_id: event.zone_id,
        position_x: event.position_x,
        position_y: event.position_y,
        position_z: event.position_z,
        server_instance: &event.server_instance,
        shard_id: event.shard_id,
        written_us: event.timestamp.0 * 1_000,
        ttl: TTL_SECONDS,
    }
}

fn sliced(event: &CombatEvent) -> Sliced<'_> {
    Sliced { stored: stored(event), ember_bucket: minute(event), ember_slice: slice(event) }
}

fn minute(event: &CombatEvent) -> i32 {
    (event.timestamp.0.rem_euclid(86_400_000) / 60_000) as i32
}

fn slice(event: &CombatEvent) -> i32 {
    (event.event_id.as_u128() % 16) as i32
}

/// A session with what it has prepared.
pub(super) struct Raw {
    pub(super) session: Session,
    pub(super) in_flight: Semaphore,
    pub(super) totals: TotalsStatements,
    layout: CqlLayout,
    insert: PreparedStatement,
    /// The query tables: name of their lookup and insert.
    lookups: Vec<(&'static str, PreparedStatement)>,
    range: Option<PreparedStatement>,
    attacker: Option<PreparedStatement>,
}

impl Raw {
    pub(super) async fn connect(addresses: &[String], keyspace: &str, layout: CqlLayout) -> Result<Raw> {
        let builder = SessionBuilder::new().known_nodes(addresses).user("cassandra", "cassandra");
        let session = builder.build().await?;
        let is_scaled = layout == CqlLayout::Scaled;
        let insert = async |table: &str, more: &str, marks: &str| {
            let marks = format!("{}{marks}", vec!["?"; 14].join(", "));
            let text = format!(
                "INSERT INTO {keyspace}.{table} ({COLUMNS}{more}) VALUES ({marks}) USING TIMESTAMP ? AND TTL ?"
            );
            prepare(&session, &text).await
        };
        let declaration = CombatEvent::DECLARATION;
        let mut lookups = Vec::new();
        for lookup in
            declaration.lookups.iter().filter(|lookup| declaration.index_in(lookup, layout).is_none())
        {
            lookups.push((lookup.name, insert(&declaration.query_table(lookup), "", "").await?));
        }
        let rows = if is_scaled {
            insert("combat_events", ", ember_bucket, ember_slice", ", ?, ?").await?
        } else {
            insert("combat_events", "", "").await?
        };
        let select = async |table: &str, condition: &str| {
            let text = format!("SELECT {COLUMNS} FROM {keyspace}.{table} WHERE {condition} LIMIT ?");
            anyhow::Ok(Some(prepare(&session, &text).await?))
        };
        let by_attacker = declaration.lookups.iter().find(|lookup| lookup.name == "by_attacker");
        let (range, attacker) = match by_attacker {
            Some(lookup) if is_scaled => {
                (None, select(&declaration.query_table(lookup), "attacker_id = ? AND day_bucket = ?").await?)
            }
            _ => (select("combat_events", "day_bucket = ? AND timestamp <= ?").await?, None),
        };
        let totals = TotalsStatements::prepare(&session, keyspace).await?;
        let in_flight = Semaphore::new(IN_FLIGHT_MAX);
        Ok(Raw { session, in_flight, totals, layout, insert: rows, lookups, range, attacker })
    }

    /// Writes events to the table and to the tables of its lookups.
    pub(super) async fn insert(&self, events: &[CombatEvent]) -> Result<()> {
        let day = |event: &CombatEvent| event.timestamp.day();
        let mut sent: Vec<std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send + '_>>> = Vec::new();
        for (name, statement) in &self.lookups {
            let key = |event: &CombatEvent| match *name {
                "by_attacker" => (event.attacker_id, day(event)),
                "by_target" => (event.target_id, day(event)),
                _ => (i64::from(event.zone_id), day(event)),
            };
            for group in groups(events, key) {
                sent.push(Box::pin(self.send(statement, group.into_iter().map(stored).collect())));
            }
        }
        if self.layout == CqlLayout::Scaled {
            for group in groups(events, |event| (day(event), minute(event), slice(event))) {
                sent.push(Box::pin(self.send(&self.insert, group.into_iter().map(sliced).collect())));
            }
        } else {
            for group in groups(events, day) {
                sent.push(Box::pin(self.send(&self.insert, group.into_iter().map(stored).collect())));
            }
        }
        stream::iter(sent).buffer_unordered(IN_FLIGHT_MAX).try_collect::<()>().await
    }

    async fn send<V: SerializeRow>(&self, statement: &PreparedStatement, mut rows: Vec<V>) -> Result<()> {
        let _place = self.in_flight.acquire().await?;
        if rows.len() == 1 {
            self.session.execute_unpaged(statement, rows.remove(0)).await?;
            return Ok(());
        }
        let all = rows.iter().map(|_| BatchStatement::PreparedStatement(statement.clone())).collect();
        let mut batch = Batch::new_with_statements(BatchType::Unlogged, all);
        batch.set_is_idempotent(true);
        self.session.batch(&batch, rows).await?;
        Ok(())
    }

    /// How many rows of a day there are from a time backwards, at most so many and one.
    pub(super) async fn range(&self, at: Timestamp, rows: usize) -> Result<usize> {
        let values = (at.day().to_string(), CqlTimestamp(at.0), rows as i32 + 1);
        self.select(self.range.as_ref(), values, rows).await
    }

    pub(super) async fn by_attacker(&self, attacker: i64, day: Day, rows: usize) -> Result<usize> {
        let values = (attacker, day.to_string(), rows as i32 + 1);
        self.select(self.attacker.as_ref(), values, rows).await
    }

    async fn select(
        &self,
        statement: Option<&PreparedStatement>,
        values: impl SerializeRow,
        rows: usize,
    ) -> Result<usize> {
        let Some(statement) = statement else { anyhow::bail!("not a read of this layout") };
        let mut statement = statement.clone();
        statement.set_page_size(rows as i32 + 1);
        let page = self.session.execute_single_page(&statement, values, PagingState::start()).await?;
        let found = page.0.into_rows_result()?;
        let found: Vec<Found> = found.rows::<Found>()?.take(rows).collect::<Result<_, _>>()?;
        Ok(std::hint::black_box(found).len())
    }
}

pub(super) async fn prepare(session: &Session, text: &str) -> Result<PreparedStatement> {
    let mut prepared = session.prepare(text).await?;
    prepared.set_is_idempotent(true);
    Ok(prepared)
}

/// Events of one partition, at most a batch of them in a group.
fn groups<K: Eq + std::hash::Hash>(
    events: &[CombatEvent],
    key: impl Fn(&CombatEvent) -> K,
) -> Vec<Vec<&CombatEvent>> {
    let mut groups: Vec<Vec<&CombatEvent>> = Vec::new();
    let mut open: HashMap<K, usize> = HashMap::new();
    for event in events {
        let place = open.entry(key(event)).or_insert(usize::MAX);
        if groups.get(*place).is_none_or(|group| group.len() >= BATCH_STATEMENTS_MAX) {
            *place = groups.len();
            groups.push(Vec::new());
        }
        groups[*place].push(event);
    }
    groups
}
