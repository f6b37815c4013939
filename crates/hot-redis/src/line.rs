//! One pipelined connection: opened when needed, dropped when in doubt.

use crate::failure::Failure;
use crate::limits::CONNECT_WAIT;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The place of a connection that may be there.
pub(crate) struct Line {
    open: Mutex<Option<Open>>,
    /// Held while connecting, so that a burst of calls opens one connection.
    connecting: tokio::sync::Mutex<()>,
    /// When the last attempt to connect failed, and why: those who waited for it share its failure.
    failed: Mutex<Option<(Instant, Failure)>>,
    generations: AtomicU64,
    /// A reply that takes longer counts as lost.
    reply_wait: Option<Duration>,
}

/// A connection, and which one of its line it is.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) generation: u64,
}

impl Line {
    pub(crate) fn new(reply_wait: Option<Duration>) -> Line {
        Line {
            open: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
            failed: Mutex::new(None),
            generations: AtomicU64::new(0),
            reply_wait,
        }
    }

    /// Whether a connection is there, as far as we know.
    pub(crate) fn is_open(&self) -> bool {
        self.open.lock().is_some()
    }

    /// The connection, opened if it is not there.
    pub(crate) async fn connected(&self, client: &Client, name: &str) -> Result<Open, Failure> {
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        let asked = Instant::now();
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        if let Some((at, failure)) = &*self.failed.lock()
            && *at > asked
        {
            return Err(failure.clone());
        }
        let opened = self.connect(client, name).await;
        if let Err(failure) = &opened {
            *self.failed.lock() = Some((Instant::now(), failure.clone()));
        }
        opened
    }

    async fn connect(&self, client: &Client, name: &str) -> Result<Open, Failure> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WAIT))
            .set_response_timeout(self.reply_wait);
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        // The library's own time-out does not cover the greeting of a server that hangs.
        let connection = match tokio::time::timeout(CONNECT_WAIT, connecting).await {
            Ok(connection) => connection.map_err(|error| Failure::of_connecting(name, error))?,
            Err(_) => {
                return Err(Failure::Unreachable { reason: format!("no greeting within {CONNECT_WAIT:?}") });
            }
        };
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        let open = Open { connection, generation };
        *self.open.lock() = Some(open.clone());
        Ok(open)
    }

    /// Forgets a connection that cannot be trusted any more, unless a newer one is there already.
    pub(crate) fn forget(&self, generation: u64) {
        let mut open = self.open.lock();
        if open.as_ref().is_some_and(|open| open.generation == generation) {
            *open = None;
        }
    }
}
