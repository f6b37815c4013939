//! Waits for replicas (`?wait=n`): one WAIT serves all commits that were answered before it began.
//!
//! WAIT blocks its connection, so it has one of its own. It counts the replicas that have the last *write of
//! its own connection*; without a write it counts every connected replica at once (since Redis 7.2 and on
//! Valkey). So each round writes one small key of ours, then waits. Replication is one stream: a replica that
//! has this write has every commit before it.

use super::connection::{Connection, OpenConnection};
use crate::failure::Failure;
use crate::limits::{REPLY_WAIT, WAIT_KEY_TTL};
use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Client, RedisResult, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_rustls::TlsConnector;

/// How late a server may notice that the time of a WAIT is over: it checks ten times a second.
const TIMER: Duration = Duration::from_millis(150);
/// What a reply may take beyond the time that WAIT was given.
const REPLY_GRACE: Duration = Duration::from_millis(500);
/// The write before a WAIT. It is small and short-lived, so it is allowed on a full server: a deletion that
/// was committed there is confirmed like any other commit.
const WRITE: &str = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '', 'PX', ARGV[1])";

/// What one commit waits for.
pub(crate) struct ReplicaWait<'a> {
    pub(crate) replicas: u32,
    /// The process that has the commit. The replicas of another one at the same address confirm nothing.
    pub(crate) run_id: &'a str,
    pub(crate) deadline: Instant,
    /// Keys of ours that this server should have; the next one is tried where a slot is moving.
    pub(crate) keys: &'a (dyn Fn(usize) -> Option<Bytes> + Sync),
}

/// The result of a round.
#[derive(Clone, Copy)]
pub(crate) enum WaitOutcome {
    /// So many replicas have the commit.
    Replicas(u32),
    /// A new connection leads to another process than the one that has the commit.
    OtherServer,
}

/// Rounds of a write and WAIT on one server.
pub(crate) struct ReplicaWaits {
    connection: Connection,
    /// Callers that have asked so far; each waits for a round that began after it asked.
    asked: AtomicU64,
    one_round: tokio::sync::Mutex<()>,
    /// The last round that ended.
    served: Mutex<Option<Round>>,
}

struct Round {
    /// The callers that it served.
    callers: u64,
    found: u32,
    /// The `run_id` of the server whose replicas were counted.
    run_id: String,
}

impl ReplicaWaits {
    pub(crate) fn new(tls: Option<TlsConnector>) -> ReplicaWaits {
        ReplicaWaits {
            connection: Connection::new(None, tls),
            asked: AtomicU64::new(0),
            one_round: tokio::sync::Mutex::new(()),
            served: Mutex::new(None),
        }
    }

    /// How many replicas have all that was written before this call, at most until the deadline.
    pub(crate) async fn round(
        &self,
        client: &Client,
        name: &str,
        wait: ReplicaWait<'_>,
    ) -> Result<WaitOutcome, Failure> {
        let mine = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let _one_at_a_time = self.one_round.lock().await;
        if let Some(round) = &*self.served.lock()
            && round.callers >= mine
            && round.found >= wait.replicas
            && round.run_id == wait.run_id
        {
            return Ok(WaitOutcome::Replicas(round.found));
        }
        let Some(open) = self.connection_to(wait.run_id, client, name).await? else {
            return Ok(WaitOutcome::OtherServer);
        };
        let callers = self.asked.load(Ordering::Acquire);
        let found = self.wait(open, name, &wait).await?;
        *self.served.lock() = Some(Round { callers, found, run_id: wait.run_id.to_owned() });
        Ok(WaitOutcome::Replicas(found))
    }

    /// The connection to this process. One that leads to another process is opened anew, once.
    async fn connection_to(
        &self,
        run_id: &str,
        client: &Client,
        name: &str,
    ) -> Result<Option<OpenConnection>, Failure> {
        for _ in 0..2 {
            let open = self.connection.connected(client, name).await?;
            let found = tokio::time::timeout(REPLY_WAIT, open.run_id(name)).await;
            match found.unwrap_or_else(|_| Err(Failure::Lost { reason: "no answer to INFO".into() })) {
                Ok(found) if found == run_id => return Ok(Some(open)),
                Ok(_) => self.connection.forget(open.generation),
                Err(failure) => {
                    self.connection.forget(open.generation);
                    return Err(failure);
                }
            }
        }
        Ok(None)
    }

    async fn wait(
        &self,
        mut open: OpenConnection,
        name: &str,
        wait: &ReplicaWait<'_>,
    ) -> Result<u32, Failure> {
        let mut last = Failure::NotYet { reason: "the server serves no slot".into() };
        for key in (0..).map_while(|n| (wait.keys)(n)) {
            match self.write_and_wait(&mut open, name, &key, wait).await {
                // The slot left the server after the commit; the replication stream is still the same.
                Err(failure) if concerns_slot(&failure) => last = failure,
                Err(failure) => {
                    // A server that became a replica refuses for ever and closes no connection.
                    self.connection.forget(open.generation);
                    return Err(failure);
                }
                found => return found,
            }
        }
        Err(last)
    }

    async fn write_and_wait(
        &self,
        open: &mut OpenConnection,
        name: &str,
        key: &[u8],
        wait: &ReplicaWait<'_>,
    ) -> Result<u32, Failure> {
        let left = wait.deadline.saturating_duration_since(Instant::now());
        // 0 would mean no limit.
        let ms = left.saturating_sub(TIMER).max(left / 2).as_millis().max(1) as u64;
        let mut pipe = redis::pipe();
        pipe.cmd("EVAL").arg(WRITE).arg(1).arg(key).arg(WAIT_KEY_TTL.as_millis() as u64);
        // Errors one by one: the library's error of a whole pipeline does not have the target of a redirect.
        pipe.cmd("WAIT").arg(wait.replicas).arg(ms).ignore_errors();
        let answers = pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection);
        match tokio::time::timeout(Duration::from_millis(ms) + REPLY_GRACE, answers).await {
            Ok(Ok(answers)) => counted(name, answers),
            Ok(Err(error)) => Err(Failure::of(name, error)),
            Err(_) => Err(Failure::Lost { reason: "no answer to WAIT".into() }),
        }
    }
}

/// Whether it concerns this slot only: the server may have another one.
fn concerns_slot(failure: &Failure) -> bool {
    match failure {
        Failure::Moved { .. } | Failure::Ask { .. } => true,
        Failure::NotYet { reason } => reason.starts_with("TRYAGAIN"),
        _ => false,
    }
}

/// The answer to WAIT, if the write before it succeeded.
fn counted(name: &str, answers: Vec<RedisResult<Value>>) -> Result<u32, Failure> {
    let answers = answers.into_iter().collect::<RedisResult<Vec<_>>>();
    match answers.map_err(|error| Failure::of(name, error))?.as_slice() {
        [_, Value::Int(found)] => Ok(u32::try_from(*found).unwrap_or(0)),
        other => Err(Failure::NotYet { reason: format!("WAIT answered {other:?}") }),
    }
}
