//! The same tables in SQLite: bundled, write-ahead log, prepared statements, one transaction per batch.

use super::load::BATCH_ROWS;
use anyhow::Result;
use emberkeep_history::testing::CombatEvent;
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

const TABLES: &str = "
    CREATE TABLE combat_events (
        day_bucket TEXT, timestamp INTEGER, event_id BLOB, attacker_id INTEGER, target_id INTEGER, damage INTEGER,
        hit_type TEXT, ability_name TEXT, zone_id INTEGER, position_x REAL, position_y REAL, position_z REAL,
        server_instance TEXT, shard_id INTEGER, expires INTEGER,
        PRIMARY KEY (day_bucket, timestamp DESC, event_id)
    ) WITHOUT ROWID;
    CREATE INDEX by_attacker ON combat_events (attacker_id, day_bucket, timestamp DESC, event_id);
    CREATE INDEX by_target ON combat_events (target_id, day_bucket, timestamp DESC, event_id);
    CREATE INDEX by_zone ON combat_events (zone_id, day_bucket, timestamp DESC, event_id);
    CREATE TABLE stats_by_source (
        player_id INTEGER, source TEXT, position INTEGER, total_kills INTEGER, total_deaths INTEGER,
        total_assists INTEGER, total_damage_dealt INTEGER, total_damage_taken INTEGER, total_damage_blocked INTEGER,
        total_healing_done INTEGER, total_playtime_minutes INTEGER, total_matches INTEGER, total_wins INTEGER,
        last_updated INTEGER, PRIMARY KEY (player_id, source)
    ) WITHOUT ROWID;
";
const INSERT: &str = "INSERT OR REPLACE INTO combat_events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
const ADD: &str = "INSERT INTO stats_by_source VALUES (?1, ?2, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?4)
    ON CONFLICT DO UPDATE SET position = ?3, last_updated = max(last_updated, ?4), total_kills = total_kills + ?5,
    total_deaths = total_deaths + ?6, total_assists = total_assists + ?7, total_damage_dealt = total_damage_dealt + ?8,
    total_damage_taken = total_damage_taken + ?9, total_damage_blocked = total_damage_blocked + ?10,
    total_healing_done = total_healing_done + ?11, total_playtime_minutes = total_playtime_minutes + ?12,
    total_matches = total_matches + ?13, total_wins = total_wins + ?14
    WHERE position < ?3";
const RANGE: &str = "SELECT * FROM combat_events WHERE day_bucket = ?1 AND timestamp <= ?2 ORDER BY timestamp DESC, event_id LIMIT ?3";
const ATTACKER: &str = "SELECT * FROM combat_events WHERE attacker_id = ?1 AND day_bucket = ?2 ORDER BY timestamp DESC, event_id LIMIT ?3";
const TTL_MS: i64 = 30 * 86_400_000;

/// A database; each user has a connection of its own.
#[derive(Clone)]
pub(super) struct Sqlite {
    file: PathBuf,
}

impl Sqlite {
    pub(super) fn new(folder: &Path) -> Result<Sqlite> {
        std::fs::create_dir_all(folder)?;
        let sqlite = Sqlite { file: folder.join("history.sqlite") };
        sqlite.connect()?.execute_batch(TABLES)?;
        Ok(sqlite)
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&self.file)?;
        connection.busy_timeout(std::time::Duration::from_secs(60))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(connection)
    }
}

/// Inserts a batch in one transaction.
pub(super) fn insert(connection: &mut Connection, rows: &[CombatEvent]) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(INSERT)?;
        for row in rows {
            statement.execute(params![
                row.timestamp.day().to_string(),
                row.timestamp.0,
                row.event_id.as_bytes(),
                row.attacker_id,
                row.target_id,
                row.damage,
                row.hit_type.text(),
                row.ability_name,
                row.zone_id,
                row.position_x,
                row.position_y,
                row.position_z,
                row.server_instance,
                row.shard_id,
                row.timestamp.0 + TTL_MS,
            ])?;
        }
    }
    Ok(transaction.commit()?)
}

/// Events per second of batches.
pub(super) fn write_all(
    connection: &mut Connection,
    batch: impl Fn(usize) -> Vec<CombatEvent>,
    first: usize,
    batches: usize,
) -> Result<f64> {
    let begun = std::time::Instant::now();
    for number in first..first + batches {
        insert(connection, &batch(number))?;
    }
    Ok((batches * BATCH_ROWS) as f64 / begun.elapsed().as_secs_f64())
}

/// Adds a kill for each player, each with its position, in one transaction. All sums are added to, as ours are.
pub(super) fn add(connection: &mut Connection, first: u64, players: &[i64], now: i64) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(ADD)?;
        for (position, player) in (first..).zip(players) {
            let source = "shard-1/log:combat/a";
            statement.execute(params![player, source, position as i64, now, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        }
    }
    Ok(transaction.commit()?)
}

/// Reads rows of a day, from a time backwards: how many there were.
pub(super) fn range(connection: &Connection, day: &str, at: i64, rows: usize) -> Result<usize> {
    read(connection, RANGE, params![day, at, rows as i64])
}

/// Reads the newest rows of an attacker.
pub(super) fn by_attacker(connection: &Connection, attacker: i64, day: &str, rows: usize) -> Result<usize> {
    read(connection, ATTACKER, params![attacker, day, rows as i64])
}

fn read(connection: &Connection, query: &str, with: &[&dyn rusqlite::ToSql]) -> Result<usize> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(with)?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        // All columns are read, as ours are.
        for column in 0..14 {
            std::hint::black_box(row.get::<_, rusqlite::types::Value>(column)?);
        }
        count += 1;
    }
    Ok(count)
}
