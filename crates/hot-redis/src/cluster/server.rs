//! One server. It never sends a command twice: the caller decides what may be sent again.

use super::connection::{Connection, OpenConnection};
use super::replica_wait::{ReplicaWait, ReplicaWaits, WaitOutcome};
use crate::failure::Failure;
use crate::limits::*;
use redis::{Client, Cmd, ConnectionInfo, RedisResult, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio_rustls::TlsConnector;

/// Asked at the last moment before a command is written to the connection: may it still be sent?
pub(crate) type Gate<'a> = &'a (dyn Fn() -> bool + Sync);

/// For a command that cannot be cancelled.
pub(crate) const ALWAYS: Gate<'static> = &|| true;

/// A server and the connections to it.
pub(crate) struct Server {
    client: Client,
    name: String,
    commands: Connection,
    replica_waits: ReplicaWaits,
    may_not_multi: AtomicBool,
}

impl Server {
    pub(crate) fn new(info: ConnectionInfo, tls: Option<TlsConnector>) -> Result<Server, Failure> {
        let name = info.addr().to_string();
        let client = Client::open(info).map_err(|error| Failure::of_connecting(&name, error))?;
        let commands = Connection::new(Some(REPLY_WAIT), tls.clone());
        Ok(Server {
            client,
            name,
            commands,
            replica_waits: ReplicaWaits::new(tls),
            may_not_multi: AtomicBool::new(false),
        })
    }

    /// Host and port, without credentials.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A client for connections of other kinds (subscriptions).
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether replies are arriving.
    pub(crate) fn is_receiving(&self) -> bool {
        self.commands.is_receiving()
    }

    /// Whether a connection is open; it may have broken since its last use.
    pub(crate) fn is_open(&self) -> bool {
        self.commands.is_open()
    }

    /// Which process answers ([`OpenConnection::run_id`]).
    pub(crate) async fn run_id(&self) -> Result<String, Failure> {
        let open = self.commands.connected(&self.client, &self.name).await?;
        self.run_id_of(&open).await
    }

    /// Which process answered a call that began then; `None` = the connection is younger than the call.
    pub(crate) async fn run_id_since(&self, since: Instant) -> Result<Option<String>, Failure> {
        let open = self.commands.connected(&self.client, &self.name).await?;
        if open.opened > since {
            return Ok(None);
        }
        self.run_id_of(&open).await.map(Some)
    }

    async fn run_id_of(&self, open: &OpenConnection) -> Result<String, Failure> {
        open.run_id(&self.name).await.inspect_err(|failure| {
            if matches!(failure, Failure::Lost { .. }) {
                self.commands.forget(open.generation);
            }
        })
    }

    /// Sends one command and waits for its reply, unless `gate` says that the caller has given up.
    pub(crate) async fn call(&self, cmd: &Cmd, gate: Gate<'_>) -> Result<Value, Failure> {
        let mut open = self.commands.connected(&self.client, &self.name).await?;
        if !gate() {
            return Err(Failure::Cancelled);
        }
        let monitor = open.monitor.clone();
        let answer = monitor.reply(cmd.query_async::<Value>(&mut open.connection)).await;
        self.classified(open.generation, answer)
    }

    /// Sends one command that only reads, and asks in the same transaction for the server's role. `None` =
    /// one of the two was not answered, or our user may not run MULTI or ROLE.
    pub(crate) async fn call_with_role(&self, cmd: &Cmd) -> Option<(Value, Value)> {
        if self.may_not_multi.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = self.commands.connected(&self.client, &self.name).await.ok()?;
        let mut pipe = redis::pipe();
        // Not the library's own transaction: that expects replies to MULTI and EXEC, which a user without the
        // right to them does not get, and then breaks the shared connection.
        pipe.cmd("MULTI").add_command(cmd.clone()).cmd("ROLE").cmd("EXEC").ignore_errors();
        let monitor = open.monitor.clone();
        let answers = monitor.reply(pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection)).await;
        let answers = self.classified(open.generation, answers).ok()?;
        if answers.iter().any(|answer| answer.as_ref().is_err_and(|error| error.code() == Some("NOPERM"))) {
            // Each further attempt would cost a round trip and a line in the server's log.
            self.may_not_multi.store(true, Ordering::Relaxed);
        }
        let Some(Ok(Value::Array(both))) = answers.into_iter().next_back() else { return None };
        let [answer, role] = <[Value; 2]>::try_from(both).ok()?;
        (!matches!(answer, Value::ServerError(_))).then_some((answer, role))
    }

    /// Sends one command to the target of a moving slot.
    pub(crate) async fn call_asking(&self, cmd: &Cmd, gate: Gate<'_>) -> Result<Value, Failure> {
        let mut open = self.commands.connected(&self.client, &self.name).await?;
        if !gate() {
            return Err(Failure::Cancelled);
        }
        let mut pipe = redis::pipe();
        // Errors one by one: the library's error of a whole pipeline does not have the target of a redirect.
        pipe.cmd("ASKING").ignore().add_command(cmd.clone()).ignore_errors();
        let monitor = open.monitor.clone();
        let answers = monitor.reply(pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection)).await;
        let answer = answers.and_then(|answers| answers.into_iter().next_back().unwrap_or(Ok(Value::Nil)));
        self.classified(open.generation, answer)
    }

    /// Waits until so many replicas have everything that this server has written so far, or until the
    /// deadline.
    pub(crate) async fn wait_for_replicas(&self, wait: ReplicaWait<'_>) -> Result<WaitOutcome, Failure> {
        let outcome = self.replica_waits.round(&self.client, &self.name, wait).await;
        if matches!(outcome, Ok(WaitOutcome::OtherServer)) {
            // The name leads to another server by now: commits must go there too.
            self.commands.renew();
        }
        outcome
    }

    fn classified<T>(&self, generation: u64, answer: RedisResult<T>) -> Result<T, Failure> {
        answer.map_err(|error| {
            let read_only = error.code() == Some("READONLY");
            let failure = Failure::of(&self.name, error);
            if read_only || matches!(failure, Failure::Lost { .. }) {
                self.commands.forget(generation);
            }
            failure
        })
    }
}
