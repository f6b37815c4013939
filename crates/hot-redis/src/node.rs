//! One server: a pipelined connection that is opened when needed and dropped when in doubt. Never re-sends.

use crate::failure::Failure;
use crate::limits::*;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// A server and the connection to it.
pub(crate) struct Node {
    client: Client,
    name: String,
    open: Mutex<Option<Open>>,
    /// Held while connecting, so that a burst of calls opens one connection.
    connecting: tokio::sync::Mutex<()>,
    generations: AtomicU64,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    generation: u64,
}

impl Node {
    pub(crate) fn new(info: ConnectionInfo) -> Result<Node, Failure> {
        let name = info.addr().to_string();
        let client = Client::open(info).map_err(|error| Failure::of_connecting(&name, error))?;
        Ok(Node {
            client,
            name,
            open: Mutex::new(None),
            connecting: tokio::sync::Mutex::new(()),
            generations: AtomicU64::new(0),
        })
    }

    /// Host and port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A client for connections of other kinds (subscriptions).
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    async fn connected(&self) -> Result<Open, Failure> {
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(open) = self.open.lock().clone() {
            return Ok(open);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WAIT))
            .set_response_timeout(Some(REPLY_WAIT));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| Failure::of_connecting(&self.name, error))?;
        let open = Open { connection, generation: self.generations.fetch_add(1, Ordering::Relaxed) + 1 };
        *self.open.lock() = Some(open.clone());
        Ok(open)
    }

    /// Forgets a connection that cannot be trusted any more, unless a newer one is there already.
    fn drop_connection(&self, generation: u64) {
        let mut open = self.open.lock();
        if open.as_ref().is_some_and(|open| open.generation == generation) {
            *open = None;
        }
    }

    /// Sends one command.
    pub(crate) async fn call(&self, cmd: &Cmd) -> Result<Value, Failure> {
        let mut open = self.connected().await?;
        let answer = cmd.query_async::<Value>(&mut open.connection).await;
        self.sorted(open.generation, answer)
    }

    /// Sends one command to the target of a moving slot.
    pub(crate) async fn call_asking(&self, cmd: &Cmd) -> Result<Value, Failure> {
        let mut open = self.connected().await?;
        let mut pipe = redis::pipe();
        pipe.cmd("ASKING").ignore().add_command(cmd.clone());
        let answer = pipe.query_async::<(Value,)>(&mut open.connection).await;
        self.sorted(open.generation, answer.map(|(value,)| value))
    }

    fn sorted(&self, generation: u64, answer: redis::RedisResult<Value>) -> Result<Value, Failure> {
        answer.map_err(|error| {
            let read_only = error.code() == Some("READONLY");
            let failure = Failure::of(&self.name, error);
            if read_only || matches!(failure, Failure::Lost { .. }) {
                self.drop_connection(generation);
            }
            failure
        })
    }
}
