//! Pages of all keys, by SCAN on one primary after the other.
//!
//! A cursor of SCAN means something only to the process that gave it, and a walk over several servers is complete only if
//! no slot moves from one that is still to come to one that was already walked. So a cursor names its server *and* the
//! state of the whole Cluster: who serves which slots, in which epoch, in which process. A page of another state is
//! refused, and the state is compared again at the end of every server's part. In between, a slot that moves shows by
//! its mark (MIGRATING, IMPORTING) or afterwards by its new owner's epoch, also if it has come back.

use crate::cluster::server::{ALWAYS, Server};
use crate::engine::{RedisEngine, plain};
use crate::failure::{Failure, unavailable};
use crate::limits::{RETRY_PAUSE_MAX, SLOTS};
use crate::read::sscan;
use crate::script;
use bytes::Bytes;
use emberkeep_hot::engine::{Cursor, Page};
use emberkeep_hot::limits::{SCAN_PAGE_MAX, TRANSACTION_DEADLINE_DEFAULT};
use emberkeep_hot::{Error, Result};
use futures_util::future::try_join_all;
use redis::Cmd;
use std::sync::Arc;
use std::time::Instant;

/// The servers in the order of a walk.
pub(crate) struct Plan {
    parts: Vec<Part>,
}

/// One server's keys.
struct Part {
    /// What cursors call it.
    place: u32,
    node: Arc<Server>,
    /// Its process.
    run: String,
}

impl Plan {
    fn index(&self, place: u32) -> Option<usize> {
        self.parts.iter().position(|part| part.place == place)
    }

    fn is_same(&self, other: &Plan) -> bool {
        self.parts.iter().map(|part| part.place).eq(other.parts.iter().map(|part| part.place))
    }
}

impl RedisEngine {
    /// One page of the keys of all servers.
    pub(crate) async fn scan_page(&self, from: Option<Cursor>, pattern: &[u8], count: usize) -> Result<Page> {
        let last = self.plan.lock().clone();
        let plan = match (from, last) {
            (Some(from), Some(plan)) if plan.index(from.place).is_some() => plan,
            _ => self.fresh_plan().await?,
        };
        let index = from.map_or(Some(0), |from| plan.index(from.place)).ok_or_else(outdated)?;
        let part = &plan.parts[index];
        let (position, keys, has_restarted) = match self.scan_part(part, from, pattern, count).await {
            Ok(found) => found,
            // After a failover the server is a replica, or gone: the walk begins anew once the Cluster has settled.
            Err(error) if plan.is_same(&*self.fresh_plan().await?) => return Err(error),
            Err(_) => return Err(outdated()),
        };
        let node_is_over = position == 0;
        if (node_is_over || has_restarted) && !plan.is_same(&*self.fresh_plan().await?) {
            return Err(outdated());
        }
        let next = match node_is_over {
            false => Some(Cursor { place: part.place, position }),
            true => plan.parts.get(index + 1).map(|part| Cursor { place: part.place, position: 0 }),
        };
        Ok(Page { keys, next })
    }

    /// One page of one server: where to go on, the keys, and whether another process answered than the plan names.
    async fn scan_part(
        &self,
        part: &Part,
        from: Option<Cursor>,
        pattern: &[u8],
        count: usize,
    ) -> Result<(u64, Vec<Bytes>, bool)> {
        let plain = |failure| plain(&self.shared.name, failure);
        self.refuse_replica(&part.node).await?;
        let cmd = scan(from.map_or(0, |from| from.position), pattern, count);
        let answer = part.node.call(&cmd, ALWAYS).await.map_err(plain)?;
        let (position, keys) = sscan::scanned(answer).ok_or_else(|| self.nonsense("SCAN's answer"))?;
        // The same process before and after: so it was this one that answered.
        let has_restarted = part.node.run().await.map_err(plain)? != part.run;
        Ok((position, keys, has_restarted))
    }

    /// The state of all servers as they see themselves now.
    async fn fresh_plan(&self) -> Result<Arc<Plan>> {
        let deadline = Instant::now() + TRANSACTION_DEADLINE_DEFAULT;
        loop {
            let problem = match self.look_around().await {
                Ok(Ok(plan)) => {
                    let plan = Arc::new(plan);
                    *self.plan.lock() = Some(plan.clone());
                    return Ok(plan);
                }
                Ok(Err(reason)) => unavailable(&self.shared.name, reason, "scan again when all slots rest"),
                Err(Failure::Refused(error)) => return Err(error),
                Err(failure) => plain(&self.shared.name, failure),
            };
            if Instant::now() + RETRY_PAUSE_MAX >= deadline {
                return Err(problem);
            }
            tokio::time::sleep(RETRY_PAUSE_MAX).await;
        }
    }

    /// The inner error says why no walk can be complete at this moment.
    async fn look_around(&self) -> Result<std::result::Result<Plan, String>, Failure> {
        let router = &self.shared.router;
        router.refresh().await?;
        let nodes = router.primaries();
        let states = try_join_all(nodes.iter().map(|node| state_of(node, router.address().cluster))).await?;
        if router.address().cluster {
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
        let place = |state: &State| sscan::number_of(&format!("{all}\n{}", state.text));
        let places: Vec<u32> = states.iter().map(place).collect();
        let parts = places.into_iter().zip(nodes).zip(states);
        let mut parts: Vec<Part> =
            parts.map(|((place, node), state)| Part { place, node, run: state.run }).collect();
        parts.sort_by_key(|part| part.place);
        Ok(Ok(Plan { parts }))
    }
}

/// What a server says of itself.
#[derive(Debug, Default, PartialEq)]
struct State {
    /// Its process.
    run: String,
    /// Everything that makes it another one: process, name, epoch, slots.
    text: String,
    slots: usize,
    is_moving: bool,
}

async fn state_of(node: &Server, cluster: bool) -> Result<State, Failure> {
    let run = node.run().await?;
    if !cluster {
        return Ok(State { text: format!("{run} {}", node.name()), run, ..State::default() });
    }
    let mut cmd = redis::cmd("CLUSTER");
    cmd.arg("NODES");
    let nodes = script::text(&node.call(&cmd, ALWAYS).await?);
    let state = own_state(&nodes, &run);
    state.ok_or_else(|| Failure::NotYet { reason: "CLUSTER NODES was not understood".into() })
}

/// The line `<id> <address> myself,master <primary> <ping> <pong> <epoch> <link> <slots>…` of CLUSTER NODES.
fn own_state(nodes: &str, run: &str) -> Option<State> {
    let own = nodes.lines().find(|line| line.split(' ').nth(2).is_some_and(|flags| flags.contains("myself")));
    let words: Vec<&str> = own?.split_whitespace().collect();
    let (id, epoch, slots) = (words.first()?, words.get(6)?, words.get(8..)?);
    let text = format!("{run} {id} {epoch} {}", slots.join(" "));
    let mut state = State { run: run.to_owned(), text, slots: 0, is_moving: false };
    for range in slots {
        // `[93-<-id]` and `[93->-id]` mark slots that come and go.
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
    fn a_server_tells_its_slots_and_those_on_their_way() {
        let other = "aa 127.0.0.1:1@2 master - 0 0 9 connected 5461-16383\n";
        let own = "bb 127.0.0.1:3@4 myself,master - 0 0 7 connected 0-5459 5460";
        let state = own_state(&format!("{other}{own}"), "run").expect("a line");
        let text = "run bb 7 0-5459 5460".to_owned();
        assert_eq!(state, State { run: "run".into(), text, slots: 5461, is_moving: false });
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
