//! Reads outside of transactions. They never use the read cache, and a replica never answers them.

mod mget;
mod scan;
mod scan_members;

pub(crate) use scan::Scanner;
#[cfg(test)]
pub(crate) use scan_members::parse_page;
pub(crate) use scan_members::{fields_page, members_page};

use crate::backoff::Backoff;
use crate::cluster::{ALWAYS, Server};
use crate::failure::{Failure, NAME_THE_PRIMARY, unavailable};
use crate::limits::*;
use crate::script::{self, Answer, CommitRequest, CompareAndSetRequest, Header, Request};
use crate::shared::{Shared, add};
use emberkeep_hot::command::{RawKey, Read, Reply};
use emberkeep_hot::limits::{REPLY_ELEMENTS_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use redis::Value;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Makes reads of any keys, by one call or more for each slot.
pub(crate) async fn read_many(shared: &Shared, reads: Vec<(RawKey, Read)>) -> Result<Vec<Reply>> {
    let mut by_slot: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, (key, read)) in reads.iter().enumerate() {
        read.check(key)?;
        by_slot.entry(shared.router.slot_of_key(key)).or_default().push(index);
    }
    let mut replies = vec![Reply::Nil; reads.len()];
    for (slot, indexes) in by_slot {
        // Bounded calls: a long list of reads must not block the server.
        for part in indexes.chunks(REPLY_ELEMENTS_MAX) {
            let of_slot: Vec<_> = part.iter().map(|index| reads[*index].clone()).collect();
            let answers = read_slot(shared, slot, &of_slot).await?;
            part.iter().zip(answers).for_each(|(index, reply)| replies[*index] = reply);
        }
    }
    Ok(replies)
}

async fn read_slot(shared: &Shared, slot: u16, reads: &[(RawKey, Read)]) -> Result<Vec<Reply>> {
    let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
    if let Some(replies) = mget::read_strings(shared, slot, reads).await {
        add(&shared.counters.read_calls, 1);
        return Ok(replies);
    }
    // By the faster script where all are strings.
    let request = match CompareAndSetRequest::new(&[], reads, "") {
        Some(request) => Request::CompareAndSet(request),
        None => Request::Commit(CommitRequest::new(&[], reads, "")),
    };
    let header = Header {
        lease_key: &|_| Vec::new(),
        receipt: None,
        estimate_ms: None,
        allowance: Duration::ZERO,
        lease: Duration::ZERO,
        wants_time: shared.clock_of_slot(slot).is_due(),
        check_acl: false,
        declares_reads: shared.router.url().cluster,
        probe: &shared.probe,
        process: &shared.process,
        groups: 0,
    };
    let asked = Instant::now();
    let script = request.script(&shared.scripts, false);
    let eval = || shared.eval(slot, script, ALWAYS, |verb, script| request.command(verb, script, &header));
    let (value, server) = retry_read(shared, slot, deadline, eval).await?;
    add(&shared.counters.read_calls, 1);
    let answer = Answer::parse(value, 0).ok_or_else(|| not_understood(shared, "the script's answer"))?;
    if let Some(time) = answer.time_us {
        shared.clock_of(&server).observe(time, asked);
    }
    let replies = reads.iter().zip(answer.fetched).map(|((_, read), value)| script::reply(read, value));
    let refused = |text: String| Failure::of_text(&shared.name, &text).into_error(&shared.name);
    replies.collect::<Result<Vec<_>, _>>().map_err(refused)
}

/// Makes a call that only reads, and makes it again after any failure until the deadline; a reply that is
/// arriving then is read to its end. Also returns the server that answered.
async fn retry_read<F>(
    shared: &Shared,
    slot: u16,
    deadline: Instant,
    call: impl Fn() -> F,
) -> Result<(Value, Arc<Server>)>
where
    F: Future<Output = (Result<Value, Failure>, Arc<Server>)>,
{
    let mut retries = Backoff::RETRY.until(deadline);
    let mut last = Failure::Unreachable { reason: "no answer in time".into() };
    loop {
        let mut answer = pin!(call());
        let mut until = deadline;
        let answer = loop {
            match tokio::time::timeout_at(until.into(), &mut answer).await {
                Err(_) if shared.router.is_receiving(slot) => until = Instant::now() + RETRY_PAUSE_MAX,
                other => break other,
            }
        };
        match answer {
            Ok((Ok(value), server)) => return Ok((value, server)),
            Ok((Err(failure @ Failure::Refused(_)), _)) => return Err(failure.into_error(&shared.name)),
            Ok((Err(failure), _)) => last = failure,
            Err(_) => return Err(last.into_error(&shared.name)),
        }
        if !retries.pause().await {
            return Err(last.into_error(&shared.name));
        }
    }
}

/// The error of a server that is a replica: it would answer with old data. Scripts notice by themselves; this
/// is for all other reads. A user without the right to ROLE may read all the same.
pub(crate) async fn refuse_replica(shared: &Shared, server: &Server) -> Result<()> {
    match server.call(&redis::cmd("ROLE"), ALWAYS).await {
        Ok(Value::Array(role)) if role.first().is_some_and(|role| script::text(role) == "slave") => {
            let _ = shared.router.refresh().await;
            Err(unavailable(&shared.name, format!("{} is a replica", server.name()), NAME_THE_PRIMARY))
        }
        Ok(_) | Err(Failure::Refused(Error::Denied { .. })) => Ok(()),
        Err(failure) => Err(failure.into_error(&shared.name)),
    }
}

pub(crate) fn not_understood(shared: &Shared, what: &str) -> Error {
    unavailable(&shared.name, format!("{what} was not understood"), "is this Redis 7 or Valkey?")
}
