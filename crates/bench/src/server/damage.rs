//! Hits over HTTP, beside an axum handler that does nothing.

use super::http::{post, rate, request};
use super::server_process::ServerProcess;
use crate::row::{Goal, Row};
use crate::runtime::runtime;
use crate::suite::Bench;
use crate::worker_processes::Child;
use anyhow::{Context, Result};
use serde_json::json;
use std::net::SocketAddr;

const CALLERS: usize = 32;
/// As many monsters as in process. New ones for every round: one that was hit a hundred times is more to read and write.
const MONSTERS_OF_A_CALLER: usize = 32;
const FIELD: &str = "fields/0/1/100000000/00000000-0000-0000-0000-000000000000/monsters";
const TENANT: &str = "00000000-0000-4000-8000-0000000000be";

/// Hits per second over HTTP.
pub(crate) fn damage(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let server = ServerProcess::start(None, None)?;
    let mut empty = Child::start(&["empty-http".to_owned()])?;
    let empty_address: SocketAddr = empty.hear()?.parse().context("the empty server's address")?;
    let (time, runtime) = (bench.sample, runtime()?);
    let nothing = vec![vec![request("/", None, &hit())]; CALLERS];
    let hits = || runtime.block_on(monsters(server.address));
    let (ours, peer) = bench.take_turns(
        name,
        "calls/s",
        || runtime.block_on(rate(server.address, hits()?, time)),
        || runtime.block_on(rate(empty_address, nothing.clone(), time)),
    )?;
    let row = Row::new(name, "calls/s", &ours, &peer, Goal::RatioAtLeast(0.5));
    let of_each = MONSTERS_OF_A_CALLER;
    let note = format!("{CALLERS} callers with a connection and {of_each} monsters each, on the same cores");
    Ok(vec![row.beside("an empty axum handler").note(note)])
}

fn hit() -> String {
    json!({ "characterId": 7, "amount": 1 }).to_string()
}

/// Monsters for each caller, and the requests that hit them.
async fn monsters(server: SocketAddr) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut hits = vec![Vec::new(); CALLERS];
    for own in &mut hits {
        for _ in 0..MONSTERS_OF_A_CALLER {
            let born = json!({ "monsterId": 100_100, "maxHp": 2_000_000_000_u32 });
            let monster = post(server, &format!("/v1/tenants/{TENANT}/{FIELD}"), None, &born).await?;
            let id = monster["uniqueId"].as_u64().context("a monster has an id")?;
            own.push(request(&format!("/v1/tenants/{TENANT}/monsters/{id}/damage"), None, &hit()));
        }
    }
    Ok(hits)
}
