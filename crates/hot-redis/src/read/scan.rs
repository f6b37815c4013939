//! Pages of all keys, by SCAN on one primary after the other.
//!
//! A cursor of SCAN is valid only in the process that gave it. A walk over several servers is complete only
//! if no slot moves from a server that is still to come to one that was already scanned. So a cursor names
//! its server *and* the state of the whole Cluster: which slots each server has, in which epoch, in which
//! process. A page of another state is refused, and the state is compared again at the end of every server's
//! part. In between, a slot that moves shows by its mark (MIGRATING, IMPORTING) or afterwards by its new
//! owner's epoch, also if it has moved back.

use super::scan_members::{parse_page, place_of};
use super::{not_understood, refuse_replica};
use crate::backoff::Backoff;
use crate::cluster::{ALWAYS, Server};
use crate::failure::{Failure, unavailable};
use crate::limits::SLOTS;
use crate::script;
use crate::shared::Shared;
use bytes::Bytes;
use emberkeep_hot::engine::{Cursor, Page};
use emberkeep_hot::limits::{SCAN_PAGE_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use redis::Cmd;
use std::sync::Arc;
use std::time::Instant;

/// The servers in the order of a walk.
struct Plan {
    parts: Vec<Part>,
}

/// The keys of one server.
struct Part {
    /// Its number in cursors.
    place: u32,
    server: Arc<Server>,
    run_id: String,
}

impl Plan {
    fn index(&self, place: u32) -> Option<usize> {
        self.parts.iter().position(|part| part.place == place)
    }

    /// The part of the server that has a slot.
    async fn index_of_slot(&self, shared: &Shared, slot: u16) -> Result<Option<usize>> {
        let server = shared.router.primary(slot).await.map_err(|failure| failure.into_error(&shared.name))?;
        Ok(self.parts.iter().position(|part| Arc::ptr_eq(&part.server, &server)))
    }

    fn is_same(&self, other: &Plan) -> bool {
        self.parts.iter().map(|part| part.place).eq(other.parts.iter().map(|part| part.place))
    }
}

/// Scans the keys of all servers.
#[derive(Default)]
pub(crate) struct Scanner {
    /// The state that the last scan found.
    plan: Mutex<Option<Arc<Plan>>>,
}

impl Scanner {
    /// One page of the keys of all servers, or of the one that has a slot.
    pub(crate) async fn page(
        &self,
        shared: &Shared,
        slot: Option<u16>,
        from: Option<Cursor>,
        pattern: &[u8],
        count: usize,
    ) -> Result<Page> {
        let last = self.plan.lock().clone();
        let plan = match (from, last) {
            (Some(from), Some(plan)) if plan.index(from.place).is_some() => plan,
            _ => self.fresh_plan(shared).await?,
        };
        let first = match slot {
            Some(slot) => plan.index_of_slot(shared, slot).await?,
            None => Some(0),
        };
        let index = from.map_or(first, |from| plan.index(from.place)).ok_or_else(outdated)?;
        // A slot that moved has another server in a newer plan: the cursor of the old one is refused.
        if slot.is_some() && Some(index) != first {
            return Err(outdated());
        }
        let part = &plan.parts[index];
        let (position, keys, has_restarted) = match scan_part(shared, part, from, pattern, count).await {
            Ok(found) => found,
            // After a failover the server is a replica or gone: the walk begins anew once the Cluster has
            // settled.
            Err(error) if plan.is_same(&*self.fresh_plan(shared).await?) => return Err(error),
            Err(_) => return Err(outdated()),
        };
        let part_is_over = position == 0;
        if (part_is_over || has_restarted) && !plan.is_same(&*self.fresh_plan(shared).await?) {
            return Err(outdated());
        }
        let next = match part_is_over {
            false => Some(Cursor { place: part.place, position }),
            true if slot.is_some() => None,
            true => plan.parts.get(index + 1).map(|part| Cursor { place: part.place, position: 0 }),
        };
        Ok(Page { keys, next })
    }

    /// The state of all servers now.
    async fn fresh_plan(&self, shared: &Shared) -> Result<Arc<Plan>> {
        let mut retries = Backoff::SLOW_RETRY.until(Instant::now() + TRANSACTION_DEADLINE_DEFAULT);
        loop {
            let problem = match make_plan(shared).await {
                Ok(Ok(plan)) => {
                    let plan = Arc::new(plan);
                    *self.plan.lock() = Some(plan.clone());
                    return Ok(plan);
                }
                Ok(Err(reason)) => unavailable(&shared.name, reason, "scan again when all slots rest"),
                Err(Failure::Refused(error)) => return Err(error),
                Err(failure) => failure.into_error(&shared.name),
            };
            if !retries.pause().await {
                return Err(problem);
            }
        }
    }
}

/// One page of one server: the next position, the keys, and whether another process answered than the plan
/// names.
async fn scan_part(
    shared: &Shared,
    part: &Part,
    from: Option<Cursor>,
    pattern: &[u8],
    count: usize,
) -> Result<(u64, Vec<Bytes>, bool)> {
    let into_error = |failure: Failure| failure.into_error(&shared.name);
    refuse_replica(shared, &part.server).await?;
    let cmd = scan(from.map_or(0, |from| from.position), pattern, count);
    let answer = part.server.call(&cmd, ALWAYS).await.map_err(into_error)?;
    let (position, keys) = parse_page(answer).ok_or_else(|| not_understood(shared, "SCAN's answer"))?;
    // The same process before and after: so it was this one that answered.
    let has_restarted = part.server.run_id().await.map_err(into_error)? != part.run_id;
    Ok((position, keys, has_restarted))
}

/// The inner error says why no walk can be complete at this moment.
async fn make_plan(shared: &Shared) -> Result<std::result::Result<Plan, String>, Failure> {
    let router = &shared.router;
    router.refresh().await?;
    let servers = router.primaries();
    let is_cluster = router.url().cluster;
    let states = try_join_all(servers.iter().map(|server| state_of(server, is_cluster))).await?;
    if is_cluster {
        let served: usize = states.iter().map(|state| state.slots).sum();
        if states.iter().any(|state| state.is_moving) {
            return Ok(Err("slots of the Cluster are moving".into()));
        }
        if served != SLOTS {
            return Ok(Err(format!("the servers of the Cluster serve {served} of {SLOTS} slots")));
        }
    }
    let mut all: Vec<&str> = states.iter().map(|state| state.text.as_str()).collect();
    all.sort_unstable();
    let all = all.join("\n");
    let place = |state: &ServerState| place_of(&format!("{all}\n{}", state.text));
    let places: Vec<u32> = states.iter().map(place).collect();
    let parts = places.into_iter().zip(servers).zip(states);
    let mut parts: Vec<Part> =
        parts.map(|((place, server), state)| Part { place, server, run_id: state.run_id }).collect();
    parts.sort_by_key(|part| part.place);
    Ok(Ok(Plan { parts }))
}

/// The identity and the slots of a server.
#[derive(Debug, Default, PartialEq)]
struct ServerState {
    run_id: String,
    /// Whatever distinguishes states: process, name, epoch, slots.
    text: String,
    slots: usize,
    is_moving: bool,
}

async fn state_of(server: &Server, cluster: bool) -> Result<ServerState, Failure> {
    let run_id = server.run_id().await?;
    if !cluster {
        return Ok(ServerState {
            text: format!("{run_id} {}", server.name()),
            run_id,
            ..ServerState::default()
        });
    }
    let mut cmd = redis::cmd("CLUSTER");
    cmd.arg("NODES");
    let nodes = script::text(&server.call(&cmd, ALWAYS).await?);
    let state = own_state(&nodes, &run_id);
    state.ok_or_else(|| Failure::NotYet { reason: "CLUSTER NODES was not understood".into() })
}

/// The line `<id> <address> myself,master <primary> <ping> <pong> <epoch> <link> <slots>…` of CLUSTER NODES.
fn own_state(nodes: &str, run_id: &str) -> Option<ServerState> {
    let own = nodes.lines().find(|line| line.split(' ').nth(2).is_some_and(|flags| flags.contains("myself")));
    let words: Vec<&str> = own?.split_whitespace().collect();
    let (id, epoch, slots) = (words.first()?, words.get(6)?, words.get(8..)?);
    let text = format!("{run_id} {id} {epoch} {}", slots.join(" "));
    let mut state = ServerState { run_id: run_id.to_owned(), text, slots: 0, is_moving: false };
    for range in slots {
        // `[93-<-id]` and `[93->-id]` mark slots that are moving.
        if range.starts_with('[') {
            state.is_moving = true;
            continue;
        }
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        state.slots += (first <= last && last < SLOTS).then(|| last - first + 1)?;
    }
    Some(state)
}

fn scan(position: u64, pattern: &[u8], count: usize) -> Cmd {
    let mut cmd = redis::cmd("SCAN");
    cmd.arg(position).arg("MATCH").arg(pattern).arg("COUNT").arg(count.clamp(1, SCAN_PAGE_MAX));
    cmd
}

fn outdated() -> Error {
    Error::Invalid {
        what: "cursor",
        problem: "a server restarted or slots moved since it was given; scan anew, without a cursor".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_state_of_a_server_has_its_slots_and_those_that_move() {
        let other = "aa 127.0.0.1:1@2 master - 0 0 9 connected 5461-16383\n";
        let own = "bb 127.0.0.1:3@4 myself,master - 0 0 7 connected 0-5459 5460";
        let state = own_state(&format!("{other}{own}"), "run").expect("a line");
        let text = "run bb 7 0-5459 5460".to_owned();
        assert_eq!(state, ServerState { run_id: "run".into(), text, slots: 5461, is_moving: false });
        assert!(own_state(&format!("{own} [93->-aa]"), "run").expect("a line").is_moving);
        assert_eq!(own_state(other, "run"), None);
        assert_eq!(own_state("bb 127.0.0.1:3@4 myself,master - 0 0 7 connected 9-5", "run"), None);
    }

    proptest! {
        #[test]
        fn no_text_of_a_server_panics(text in "(?s).{0,200}", slots in "[0-9\\[<> -]{0,40}") {
            let _ = own_state(&text, "run");
            let _ = own_state(&format!("id a:1@2 myself,master - 0 0 1 connected {slots}"), "run");
        }
    }
}
