//! Pages of a set's members, by SSCAN.

use super::mget::call_primary;
use super::{not_understood, read_many, refuse_replica, retry_read};
use crate::cluster::{ALWAYS, Server};
use crate::limits::RETRY_PAUSE;
use crate::script;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read};
use emberkeep_hot::engine::{Cursor, MemberCursor, MemberPage};
use emberkeep_hot::limits::{SCAN_PAGE_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::Instant;

/// One page of a set. A cursor is valid only on the server process that gave it. Where another one has the
/// slot by now, or the server restarted, the walk begins anew, so that no member is missed.
pub(crate) async fn members_page(
    shared: &Shared,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<MemberPage> {
    let mut from = MemberCursor::at(from)?;
    let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
    loop {
        let (cmd, asked) = (sscan(key, from.position, count), Instant::now());
        let (answer, server) = match call_primary(shared, shared.router.slot_of_key(key), &cmd).await {
            Some(found) => found,
            None => scan_set(shared, key, &cmd, deadline).await?,
        };
        let run_id = server.run_id_since(asked).await.map_err(|failure| failure.into_error(&shared.name))?;
        let Some(run_id) = run_id else {
            // The connection was opened meanwhile: it is uncertain which process gave the answer.
            if Instant::now() >= deadline {
                return Err(not_understood(shared, "a connection that breaks with every page"));
            }
            continue;
        };
        let place = place_of(&format!("{run_id} {}", server.name()));
        if from.position > 0 && from.place != place {
            from = Cursor::default();
            continue;
        }
        let (position, members) =
            parse_page(answer).ok_or_else(|| not_understood(shared, "SSCAN's answer"))?;
        let next = (position > 0).then_some(MemberCursor::At(Cursor { place, position }));
        return Ok(MemberPage { members, next });
    }
}

/// The answer to SSCAN and the server that gave it, by single commands: slower, but with errors that say what
/// went wrong.
async fn scan_set(
    shared: &Shared,
    key: &RawKey,
    cmd: &Cmd,
    deadline: Instant,
) -> Result<(Value, Arc<Server>)> {
    let slot = shared.router.slot_of_key(key);
    loop {
        match retry_read(shared, slot, deadline, || shared.router.call(slot, cmd, ALWAYS)).await {
            Err(Error::Unavailable { reason, .. }) if reason.starts_with("WRONGTYPE") => {
                // SSCAN does not say which type it found. A read by the script does, unless the key has
                // changed again.
                for reply in read_many(shared, vec![(key.clone(), Read::SCard)]).await? {
                    reply.checked(key, &Read::SCard)?;
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Ok((answer, server)) => {
                refuse_replica(shared, &server).await?;
                return Ok((answer, server));
            }
            Err(error) => return Err(error),
        }
    }
}

/// The number of a server process in cursors, the same in every process of ours.
pub(super) fn place_of(text: &str) -> u32 {
    let [a, b, c, d, ..] = sha1_smol::Sha1::from(text).digest().bytes();
    u32::from_be_bytes([a, b, c, d])
}

fn sscan(key: &RawKey, position: u64, count: usize) -> Cmd {
    let mut cmd = redis::cmd("SSCAN");
    cmd.arg(&key[..]).arg(position).arg("COUNT").arg(count.clamp(1, SCAN_PAGE_MAX));
    cmd
}

/// The cursor and the elements in the answer to SCAN or SSCAN.
pub(crate) fn parse_page(answer: Value) -> Option<(u64, Vec<Bytes>)> {
    let Value::Array(parts) = answer else { return None };
    let [position, Value::Array(elements)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let element = |element| match element {
        Value::BulkString(bytes) => Some(Bytes::from(bytes)),
        _ => None,
    };
    let elements = elements.into_iter().map(element).collect::<Option<_>>()?;
    Some((script::text(&position).parse().ok()?, elements))
}
