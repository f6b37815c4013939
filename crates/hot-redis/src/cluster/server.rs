//! One server. Never re-sends: whoever calls decides what may be sent again.

use crate::cluster::connection::{Connection, OpenConnection};
use crate::cluster::replica_wait::{ReplicaCount, ReplicaWaits, Wanted};
use crate::failure::Failure;
use crate::limits::*;
use redis::{Client, Cmd, ConnectionInfo, RedisResult, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio_rustls::TlsConnector;

/// Asked at the last moment before a command is handed to the connection: may it still be sent?
pub(crate) type Gate<'a> = &'a (dyn Fn() -> bool + Sync);

/// A command that nobody gives up.
pub(crate) const ALWAYS: Gate<'static> = &|| true;

/// A server and the connections to it.
pub(crate) struct Server {
    client: Client,
    name: String,
    commands: Connection,
    confirmations: ReplicaWaits,
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
            confirmations: ReplicaWaits::new(tls),
            may_not_multi: AtomicBool::new(false),
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

    /// Whether replies are arriving.
    pub(crate) fn is_receiving(&self) -> bool {
        self.commands.is_receiving()
    }

    /// Whether a connection is there, as far as we know.
    pub(crate) fn is_open(&self) -> bool {
        self.commands.is_open()
    }

    /// Which process answers ([`OpenConnection::run`]).
    pub(crate) async fn run(&self) -> Result<String, Failure> {
        let open = self.commands.connected(&self.client, &self.name).await?;
        self.run_of(&open).await
    }

    /// Which process answered a call that was begun then; `None` = the connection is younger, so nobody knows.
    pub(crate) async fn run_since(&self, since: Instant) -> Result<Option<String>, Failure> {
        let open = self.commands.connected(&self.client, &self.name).await?;
        if open.opened > since {
            return Ok(None);
        }
        self.run_of(&open).await.map(Some)
    }

    async fn run_of(&self, open: &OpenConnection) -> Result<String, Failure> {
        open.run(&self.name).await.inspect_err(|failure| {
            if matches!(failure, Failure::Lost { .. }) {
                self.commands.forget(open.generation);
            }
        })
    }

    /// Sends one command.
    pub(crate) async fn call(&self, cmd: &Cmd, gate: Gate<'_>) -> Result<Value, Failure> {
        let mut open = self.commands.connected(&self.client, &self.name).await?;
        if !gate() {
            return Err(Failure::Abandoned);
        }
        let monitor = open.monitor.clone();
        let answer = monitor.reply(cmd.query_async::<Value>(&mut open.connection)).await;
        self.sorted(open.generation, answer)
    }

    /// Sends one command that only reads, and asks in the same moment what the server is. `None` = one of both was not
    /// answered, or our user may not ask like this.
    pub(crate) async fn call_with_role(&self, cmd: &Cmd) -> Option<(Value, Value)> {
        if self.may_not_multi.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = self.commands.connected(&self.client, &self.name).await.ok()?;
        let mut pipe = redis::pipe();
        // Not the library's own transaction: that counts on replies to MULTI and EXEC which a user without the right to
        // them does not get, and breaks the connection for everybody.
        pipe.cmd("MULTI").add_command(cmd.clone()).cmd("ROLE").cmd("EXEC").ignore_errors();
        let monitor = open.monitor.clone();
        let answers = monitor.reply(pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection)).await;
        let answers = self.sorted(open.generation, answers).ok()?;
        if answers.iter().any(|answer| answer.as_ref().is_err_and(|error| error.code() == Some("NOPERM"))) {
            // Asking in vain would cost a round trip each time, and a line in the server's own log.
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
            return Err(Failure::Abandoned);
        }
        let mut pipe = redis::pipe();
        // Errors one by one: the library's error of a whole pipeline does not say where a redirect leads.
        pipe.cmd("ASKING").ignore().add_command(cmd.clone()).ignore_errors();
        let monitor = open.monitor.clone();
        let answers = monitor.reply(pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection)).await;
        let answer = answers.and_then(|answers| answers.into_iter().next_back().unwrap_or(Ok(Value::Nil)));
        self.sorted(open.generation, answer)
    }

    /// Waits until that many replicas have everything this server has written so far, or until the deadline.
    /// Answers how many have.
    pub(crate) async fn confirm(&self, wanted: Wanted<'_>) -> Result<ReplicaCount, Failure> {
        let confirmed = self.confirmations.round(&self.client, &self.name, wanted).await;
        if matches!(confirmed, Ok(ReplicaCount::Elsewhere)) {
            // The name leads to another server by now: commits go there, too.
            self.commands.renew();
        }
        confirmed
    }

    fn sorted<T>(&self, generation: u64, answer: RedisResult<T>) -> Result<T, Failure> {
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
