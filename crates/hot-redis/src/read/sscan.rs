//! Pages of a set's members, by the server's own cursor.

use crate::cluster::server::{ALWAYS, Server};
use crate::engine::{RedisEngine, plain};
use crate::limits::RETRY_PAUSE;
use crate::script;
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read};
use emberkeep_hot::engine::{Cursor, MemberCursor, MemberPage};
use emberkeep_hot::limits::{SCAN_PAGE_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::Instant;

impl RedisEngine {
    /// One page of a set. A cursor means something only on the server that gave it: where another one has the slot
    /// by now, or it restarted, the walk begins anew, so that nothing is missed.
    pub(crate) async fn members_page(
        &self,
        key: &RawKey,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Result<MemberPage> {
        let mut from = MemberCursor::at(from)?;
        let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
        loop {
            let (cmd, asked) = (sscan(key, from.position, count), Instant::now());
            let (answer, node) = match self.by_primary(self.shared.router.slot_of_key(key), &cmd).await {
                Some(found) => found,
                None => self.scan_set(key, &cmd, deadline).await?,
            };
            let run = node.run_since(asked).await.map_err(|failure| plain(&self.shared.name, failure))?;
            let Some(run) = run else {
                // The connection was opened meanwhile: which process gave the answer is not known.
                if Instant::now() >= deadline {
                    return Err(self.nonsense("a connection that breaks with every page"));
                }
                continue;
            };
            let place = number_of(&format!("{run} {}", node.name()));
            if from.position > 0 && from.place != place {
                from = Cursor::default();
                continue;
            }
            let (position, members) = scanned(answer).ok_or_else(|| self.nonsense("SSCAN's answer"))?;
            let next = (position > 0).then_some(MemberCursor::At(Cursor { place, position }));
            return Ok(MemberPage { members, next });
        }
    }

    /// The answer to SSCAN, and who gave it, asked one after the other: what went wrong is told.
    async fn scan_set(&self, key: &RawKey, cmd: &Cmd, deadline: Instant) -> Result<(Value, Arc<Server>)> {
        let slot = self.shared.router.slot_of_key(key);
        loop {
            match self.read_until(slot, deadline, || self.shared.router.call(slot, cmd, ALWAYS)).await {
                Err(Error::Unavailable { reason, .. }) if reason.starts_with("WRONGTYPE") => {
                    // SSCAN does not say what it found. A read by the script does, unless it is gone again.
                    for reply in self.read_all(vec![(key.clone(), Read::SCard)]).await? {
                        reply.checked(key, &Read::SCard)?;
                    }
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Ok((answer, node)) => {
                    self.refuse_replica(&node).await?;
                    return Ok((answer, node));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A number for a text, the same in every process.
pub(crate) fn number_of(text: &str) -> u32 {
    let [a, b, c, d, ..] = sha1_smol::Sha1::from(text).digest().bytes();
    u32::from_be_bytes([a, b, c, d])
}

fn sscan(key: &RawKey, position: u64, count: usize) -> Cmd {
    let mut cmd = redis::cmd("SSCAN");
    cmd.arg(&key[..]).arg(position).arg("COUNT").arg(count.clamp(1, SCAN_PAGE_MAX));
    cmd
}

/// The cursor and the elements in the answer to SCAN or SSCAN.
pub(crate) fn scanned(answer: Value) -> Option<(u64, Vec<Bytes>)> {
    let Value::Array(parts) = answer else { return None };
    let [position, Value::Array(elements)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let element = |element| match element {
        Value::BulkString(bytes) => Some(Bytes::from(bytes)),
        _ => None,
    };
    let elements = elements.into_iter().map(element).collect::<Option<_>>()?;
    Some((script::text(&position).parse().ok()?, elements))
}
