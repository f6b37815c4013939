//! What the outboxes carry, and what it becomes in history.
//!
//! Hits are [`HitRecord`]s, as servers that compute damage themselves record them; so both become the same rows.

use super::archive::recorder::project_hit;
use super::boards::{self, Boards};
use super::history::{AuditEntry, AuditEvent, PlayerSession, PlayerStats, Severity};
use super::schema::{AUDIT_LOG, COMBAT_LOG, DRAINER, PLAYS_LOG, Shard};
use emberkeep_history::outbox::{Consumer, DrainError};
use emberkeep_history::{Batch, History, Rejection};
use emberkeep_hot::{Scope, Tx};
use emberkeep_schema::{Column, Name, Partition, Timestamp, Value, record};
use std::net::IpAddr;
use uuid::{Builder, Uuid};

record! {
    /// A play session that has ended.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlayEnd {
        /// The play record, as it was last.
        pub play: super::model::Play => "play",
        /// When it ended, in milliseconds since 1970.
        pub ended_at: i64 => "ended_at",
    }
}

record! {
    /// An entry of the audit log.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AuditRecord {
        /// The id of the entry. Recording it again changes nothing.
        pub event_id: Uuid => "event_id",
        /// When, in milliseconds since 1970.
        pub at: i64 => "at",
        /// What it is about, in the words of the table.
        pub event_type: String => "event_type",
        /// The player that it is about.
        pub player_id: i64 => "player_id",
        /// The player's address, if it is known.
        pub ip: Option<IpAddr> => "ip" optional,
        /// Details as JSON text.
        pub details: Option<String> => "details" optional,
        /// How serious it is, in the words of the table.
        pub severity: String => "severity",
    }
}

/// An id that sorts by time (UUIDv7). A body that runs again draws another one; only the committed one counts.
pub(super) fn event_id<P: Partition>(tx: &mut Tx<'_, P>) -> Uuid {
    let (now, random) = (tx.now().max(0) as u64, [tx.random(), tx.random()]);
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&random[0].to_be_bytes());
    bytes[8..].copy_from_slice(&random[1].to_be_bytes()[..2]);
    Builder::from_unix_timestamp_millis(now, &bytes).into_uuid()
}

/// The consumers of a shard's outboxes: they bring hits, play sessions and audit entries into history. Beside them hits and
/// play sessions feed the leaderboards, whose own consumer ([`Boards::consumer`]) must run, too: it brings the boards into history.
pub fn consumers(scope: &Scope<Shard>, history: &History) -> Result<Vec<Consumer>, DrainError> {
    let lease = |log: &str| DRAINER.key(Name::new(log).expect("a word of letters"));
    let boards = Boards::new(scope.store());
    let combat = Consumer::new(scope, COMBAT_LOG.key(), lease("combat"), history.clone(), project_hit)?;
    let plays = Consumer::new(scope, PLAYS_LOG.key(), lease("plays"), history.clone(), project_play)?;
    let audit = Consumer::new(scope, AUDIT_LOG.key(), lease("audit"), history.clone(), project_audit)?;
    Ok(vec![
        combat.with_reader(boards.fed_by(scope, COMBAT_LOG.key(), boards::of_hit)),
        plays.with_reader(boards.fed_by(scope, PLAYS_LOG.key(), boards::of_play)),
        audit,
    ])
}

fn project_play(end: &PlayEnd, batch: &mut Batch) -> Result<(), Rejection> {
    let PlayEnd { play, ended_at, .. } = end;
    let (start, end) = (Timestamp(play.login_time), Timestamp((*ended_at).max(play.login_time)));
    let played_ms = end.0 - start.0;
    batch.insert(PlayerSession {
        player_id: play.player_id,
        session_start: start,
        session_end: end,
        zone_id: play.zone_id,
        kills: play.kills,
        deaths: play.deaths,
        damage_dealt: play.damage_dealt,
        damage_taken: play.damage_taken,
        playtime_minutes: i32::try_from(played_ms / 60_000).unwrap_or(i32::MAX),
        client_version: play.client_version.clone(),
        server_instance: play.server_instance.clone(),
        session_id: play.session_id,
    })?;
    let playtime = PlayerStats { total_playtime_minutes: played_ms, ..NOTHING };
    batch.add(play.player_id, end, playtime)
}

fn project_audit(record: &AuditRecord, batch: &mut Batch) -> Result<(), Rejection> {
    batch.insert(AuditEntry {
        timestamp: Timestamp(record.at),
        event_id: record.event_id,
        event_type: word(&record.event_type)?,
        player_id: record.player_id,
        player_ip: record.ip,
        details: record.details.clone().map(String::into_bytes),
        severity: word(&record.severity)?,
    })
}

/// The value of a text in a table.
pub(super) fn word<W: Column>(text: &str) -> Result<W, Rejection> {
    W::from_value(Some(Value::Text(text.to_owned()))).map_err(|error| Rejection::new(error.to_string()))
}

/// All amounts 0; an event sets its own.
const NOTHING: PlayerStats = PlayerStats {
    total_kills: 0,
    total_deaths: 0,
    total_assists: 0,
    total_damage_dealt: 0,
    total_damage_taken: 0,
    total_damage_blocked: 0,
    total_healing_done: 0,
    total_playtime_minutes: 0,
    total_matches: 0,
    total_wins: 0,
};

/// Appends an audit entry in the transaction of what it is about.
pub(super) fn audit(
    tx: &mut Tx<'_, Shard>,
    event: AuditEvent,
    severity: Severity,
    play: &super::model::Play,
    details: Option<String>,
) -> emberkeep_hot::Result<()> {
    let (event_id, at) = (event_id(tx), tx.now());
    let (event_type, severity) = (event.text().to_owned(), severity.text().to_owned());
    let record = AuditRecord {
        ip: play.ip,
        details,
        ..AuditRecord::new(event_id, at, event_type, play.player_id, severity)
    };
    tx.append(&AUDIT_LOG.key(), &record)
}
