//! Pages of a set's members by SSCAN, and of a hash's fields by HSCAN.

use super::mget::call_primary;
use super::{not_understood, read_many, refuse_replica, retry_read};
use crate::cluster::{ALWAYS, Server};
use crate::limits::RETRY_PAUSE;
use crate::script;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::command::{RawKey, Read};
use emberkeep_hot::engine::{Cursor, FieldPage, MemberCursor, MemberPage};
use emberkeep_hot::limits::{SCAN_PAGE_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::Instant;

/// One page of a set.
pub(crate) async fn members_page(
    shared: &Shared,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<MemberPage> {
    let (members, next) = page(shared, ("SSCAN", Read::SCard), key, from, count).await?;
    Ok(MemberPage { members, next })
}

/// One page of a hash.
pub(crate) async fn fields_page(
    shared: &Shared,
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<FieldPage> {
    let (words, next) = page(shared, ("HSCAN", Read::HLen), key, from, count).await?;
    match words.as_chunks::<2>() {
        (pairs, []) => {
            Ok(FieldPage { fields: pairs.iter().map(|[f, v]| (f.clone(), v.clone())).collect(), next })
        }
        _ => Err(not_understood(shared, "HSCAN's answer")),
    }
}

/// One page by a command, with the read that names a wrong type. A cursor is valid only on the server process
/// that gave it. Where another one has the slot by now, or the server restarted, the walk begins anew, so
/// that nothing is missed.
async fn page(
    shared: &Shared,
    (command, count_read): (&str, Read),
    key: &RawKey,
    from: Option<MemberCursor>,
    count: usize,
) -> Result<(Vec<Bytes>, Option<MemberCursor>)> {
    let mut from = MemberCursor::at(from)?;
    let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
    loop {
        let (cmd, asked) = (scan(command, key, from.position, count), Instant::now());
        let (answer, server) = match call_primary(shared, shared.router.slot_of_key(key), &cmd).await {
            Some(found) => found,
            None => scan_slowly(shared, key, &cmd, &count_read, deadline).await?,
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
        let (position, words) =
            parse_page(answer).ok_or_else(|| not_understood(shared, "the answer to a scan"))?;
        let next = (position > 0).then_some(MemberCursor::At(Cursor { place, position }));
        return Ok((words, next));
    }
}

/// The answer to a scan and the server that gave it, by single commands: slower, but with errors that say
/// what went wrong.
async fn scan_slowly(
    shared: &Shared,
    key: &RawKey,
    cmd: &Cmd,
    count: &Read,
    deadline: Instant,
) -> Result<(Value, Arc<Server>)> {
    let slot = shared.router.slot_of_key(key);
    loop {
        match retry_read(shared, slot, deadline, || shared.router.call(slot, cmd, ALWAYS)).await {
            Err(Error::Unavailable { reason, .. }) if reason.starts_with("WRONGTYPE") => {
                // The scan does not say which type it found. A read by the script does, unless the key has
                // changed again.
                for reply in read_many(shared, vec![(key.clone(), count.clone())]).await? {
                    reply.checked(key, count)?;
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

fn scan(command: &str, key: &RawKey, position: u64, count: usize) -> Cmd {
    let mut cmd = redis::cmd(command);
    cmd.arg(&key[..]).arg(position).arg("COUNT").arg(count.clamp(1, SCAN_PAGE_MAX));
    cmd
}

/// The cursor and the elements in the answer to SCAN, SSCAN or HSCAN.
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
