//! Replicas' confirmations (`?wait=n`): one WAIT serves all commits that were answered before it began.
//!
//! WAIT blocks its connection, so it has one of its own. There it counts what *this connection* has seen, and any
//! command makes it see all that the server has written so far; hence the PING before each WAIT.

use crate::failure::Failure;
use crate::line::Line;
use parking_lot::Mutex;
use redis::Client;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How late a server may notice that the time of a WAIT is over: it looks ten times a second.
const TIMER: Duration = Duration::from_millis(150);
/// What a reply may take beyond the time that WAIT was given.
const REPLY_GRACE: Duration = Duration::from_millis(500);

/// Rounds of PING and WAIT on one server.
pub(crate) struct Confirmations {
    line: Line,
    /// Callers so far.
    asked: AtomicU64,
    one_round: tokio::sync::Mutex<()>,
    /// The callers that the last round served, and how many replicas it found.
    served: Mutex<(u64, u32)>,
}

impl Confirmations {
    pub(crate) fn new() -> Confirmations {
        Confirmations {
            line: Line::new(None),
            asked: AtomicU64::new(0),
            one_round: tokio::sync::Mutex::new(()),
            served: Mutex::new((0, 0)),
        }
    }

    /// How many replicas have all that was written before this call, at most until the deadline.
    pub(crate) async fn round(
        &self,
        client: &Client,
        name: &str,
        replicas: u32,
        deadline: Instant,
    ) -> Result<u32, Failure> {
        let mine = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let _alone = self.one_round.lock().await;
        let (served, found) = *self.served.lock();
        if served >= mine && found >= replicas {
            return Ok(found);
        }
        let everybody = self.asked.load(Ordering::Acquire);
        let found = self.wait(client, name, replicas, deadline).await?;
        *self.served.lock() = (everybody, found);
        Ok(found)
    }

    async fn wait(
        &self,
        client: &Client,
        name: &str,
        replicas: u32,
        deadline: Instant,
    ) -> Result<u32, Failure> {
        let mut open = self.line.connected(client, name).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        // 0 would mean "for ever".
        let ms = left.saturating_sub(TIMER).max(left / 2).as_millis().max(1) as u64;
        let mut pipe = redis::pipe();
        pipe.cmd("PING").ignore().cmd("WAIT").arg(replicas).arg(ms);
        let answer = pipe.query_async::<(u32,)>(&mut open.connection);
        let failure = match tokio::time::timeout(Duration::from_millis(ms) + REPLY_GRACE, answer).await {
            Ok(Ok((found,))) => return Ok(found),
            Ok(Err(error)) => Failure::of(name, error),
            Err(_) => Failure::Lost { reason: "no answer to WAIT".into() },
        };
        self.line.forget(open.generation);
        Err(failure)
    }
}
