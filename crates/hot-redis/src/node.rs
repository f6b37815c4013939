//! One server. Never re-sends: whoever calls decides what may be sent again.

use crate::confirm::Confirmations;
use crate::failure::Failure;
use crate::limits::*;
use crate::line::Line;
use redis::{Client, Cmd, ConnectionInfo, RedisResult, Value};
use std::time::Instant;

/// Asked at the last moment before a command is handed to the connection: may it still be sent?
pub(crate) type Gate<'a> = &'a (dyn Fn() -> bool + Sync);

/// A command that nobody gives up.
pub(crate) const ALWAYS: Gate<'static> = &|| true;

/// A server and the connections to it.
pub(crate) struct Node {
    client: Client,
    name: String,
    commands: Line,
    confirmations: Confirmations,
}

impl Node {
    pub(crate) fn new(info: ConnectionInfo) -> Result<Node, Failure> {
        let name = info.addr().to_string();
        let client = Client::open(info).map_err(|error| Failure::of_connecting(&name, error))?;
        let commands = Line::new(Some(REPLY_WAIT));
        Ok(Node { client, name, commands, confirmations: Confirmations::new() })
    }

    /// Host and port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A client for connections of other kinds (subscriptions).
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether a connection is there, as far as we know.
    pub(crate) fn is_open(&self) -> bool {
        self.commands.is_open()
    }

    /// Sends one command.
    pub(crate) async fn call(&self, cmd: &Cmd, gate: Gate<'_>) -> Result<Value, Failure> {
        let mut open = self.commands.connected(&self.client, &self.name).await?;
        if !gate() {
            return Err(Failure::Abandoned);
        }
        let answer = cmd.query_async::<Value>(&mut open.connection).await;
        self.sorted(open.generation, answer)
    }

    /// Sends one command that only reads, and asks in the same moment what the server is.
    pub(crate) async fn call_with_role(&self, cmd: &Cmd) -> Result<(Value, Value), Failure> {
        let mut open = self.commands.connected(&self.client, &self.name).await?;
        let mut pipe = redis::pipe();
        pipe.atomic().add_command(cmd.clone()).cmd("ROLE");
        let answer = pipe.query_async::<(Value, Value)>(&mut open.connection).await;
        self.sorted(open.generation, answer)
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
        let answers = pipe.query_async::<Vec<RedisResult<Value>>>(&mut open.connection).await;
        let answer = answers.and_then(|answers| answers.into_iter().next_back().unwrap_or(Ok(Value::Nil)));
        self.sorted(open.generation, answer)
    }

    /// Waits until that many replicas have everything this server has written so far, or until the deadline.
    /// Answers how many have.
    pub(crate) async fn confirm(&self, replicas: u32, deadline: Instant) -> Result<u32, Failure> {
        self.confirmations.round(&self.client, &self.name, replicas, deadline).await
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
