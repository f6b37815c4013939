//! A call of one of the two commit scripts. Both keep one protocol; each has a request type that writes its
//! arguments.

use super::commit_request::CommitRequest;
use super::compare_and_set::CompareAndSetRequest;
use super::layout::Fields;
use super::{Script, Scripts};
use emberkeep_hot::command::RawKey;
use redis::{Cmd, ToRedisArgs};
use std::time::Duration;

/// A call of a commit script.
pub(crate) enum Request {
    /// Whatever transactions can do, by `commit.lua`.
    Commit(CommitRequest),
    /// Strings that are compared and set, by `compare_and_set.lua`.
    CompareAndSet(CompareAndSetRequest),
}

/// What stands around the groups of a call.
pub(crate) struct Header<'a> {
    /// Lease key of a data key.
    pub(crate) lease_key: &'a (dyn Fn(&RawKey) -> Vec<u8> + Sync),
    /// Receipt key and sequence number; `None` when nothing is written.
    pub(crate) receipt: Option<(&'a [u8], u64)>,
    /// The client's estimate of the server's time, if a body used the time or no receipt exposes a late copy.
    pub(crate) estimate_ms: Option<i64>,
    /// Largest difference of the estimate from the server's time.
    pub(crate) allowance: Duration,
    /// Length of a fairness lease that is asked for.
    pub(crate) lease: Duration,
    /// Ask for the time even if no body used it.
    pub(crate) wants_time: bool,
    /// Find out first whether our user may run all commands.
    pub(crate) check_acl: bool,
    /// Whether keys that are only read are declared to the script. On a single server they are not: Redis lets a user
    /// who may only read a key declare it to no script. On a Cluster they must be, because while a slot moves only
    /// declared keys are looked for on both servers; the user has a right to declare them there.
    pub(crate) declares_reads: bool,
    /// A key of the engine that never exists.
    pub(crate) probe: &'a [u8],
    pub(crate) process: &'a str,
    pub(crate) groups: usize,
}

impl Header<'_> {
    /// The argument SEQUENCE: empty when nothing is written.
    pub(super) fn sequence(&self) -> String {
        self.receipt.map(|(_, sequence)| sequence.to_string()).unwrap_or_default()
    }

    /// The argument PROBE: empty where it is not needed.
    pub(super) fn probe(&self) -> &[u8] {
        let is_needed = if self.declares_reads { self.check_acl } else { self.receipt.is_none() };
        if is_needed { self.probe } else { b"" }
    }

    /// So many of the keys, the first ones, are declared, and the others are not.
    pub(super) fn divide<'k>(&self, keys: &'k [RawKey], written: usize) -> (&'k [RawKey], &'k [RawKey]) {
        keys.split_at(if self.declares_reads { keys.len() } else { written })
    }

    /// The argument TIME.
    pub(super) fn time(&self) -> String {
        match (self.estimate_ms, self.wants_time) {
            (Some(ms), _) => ms.to_string(),
            (None, true) => "t".into(),
            (None, false) => String::new(),
        }
    }
}

impl Request {
    /// The script that serves it. `frees` = it only gives memory back, and must work on a full server.
    pub(crate) fn script<'a>(&self, scripts: &'a Scripts, frees: bool) -> &'a Script {
        match (self, frees) {
            (Request::CompareAndSet(_), _) => &scripts.compare_and_set,
            (Request::Commit(_), true) => &scripts.commit_without_memory,
            (Request::Commit(_), false) => &scripts.commit,
        }
    }

    /// The finished command: `EVALSHA sha …` or `EVAL body …`.
    pub(crate) fn command(&self, verb: &str, script: &str, header: &Header<'_>) -> Cmd {
        match self {
            Request::Commit(request) => request.command(verb, script, header),
            Request::CompareAndSet(request) => request.command(verb, script, header),
        }
    }
}

/// Adds keys to a command.
pub(super) fn add_keys(cmd: &mut Cmd, keys: &[RawKey]) {
    keys.iter().for_each(|key| {
        cmd.arg(&key[..]);
    });
}

/// Adds the lease keys of these keys, and the receipt, if the call writes.
pub(super) fn add_engine_keys(cmd: &mut Cmd, leasable: &[RawKey], header: &Header<'_>) {
    let Some((receipt, _)) = header.receipt else { return };
    leasable.iter().for_each(|key| {
        cmd.arg((header.lease_key)(key));
    });
    cmd.arg(receipt);
}

/// Writes the arguments of a script in the order of its table.
pub(super) struct Arguments<'a> {
    cmd: &'a mut Cmd,
    table: &'static Fields,
    written: usize,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(cmd: &'a mut Cmd, table: &'static Fields) -> Arguments<'a> {
        Arguments { cmd, table, written: 0 }
    }

    /// Adds the next argument, which must have this name in the table.
    pub(super) fn add(mut self, name: &str, value: impl ToRedisArgs) -> Arguments<'a> {
        debug_assert_eq!(self.table.names.get(self.written), Some(&name));
        self.written += 1;
        self.cmd.arg(value);
        self
    }

    /// All are written.
    pub(super) fn end(self) {
        debug_assert_eq!(self.written, self.table.names.len());
    }
}
