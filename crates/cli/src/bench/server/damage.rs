//! Hits over HTTP, beside an axum handler that does nothing.

use super::super::children::Child;
use super::super::row::{Goal, Row};
use super::super::suite::{Bench, runtime};
use super::http::{post, rate, request};
use super::served::Served;
use anyhow::{Context, Result};
use serde_json::json;
use std::net::SocketAddr;

const CALLERS: usize = 32;
const FIELD: &str = "fields/0/1/100000000/00000000-0000-0000-0000-000000000000/monsters";
const TENANT: &str = "00000000-0000-4000-8000-0000000000be";

/// Hits per second.
pub(in super::super) fn damage(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let served = Served::start(None, None)?;
    let mut empty = Child::start(&["worker".to_owned(), "empty-http".into()])?;
    let empty_address: SocketAddr = empty.hear()?.parse().context("the empty server's address")?;
    let (time, runtime) = (bench.sample, runtime()?);
    let hits = runtime.block_on(monsters(served.address))?;
    let nothing = vec![request("/", None, &json!({ "characterId": 7, "amount": 1 }).to_string()); CALLERS];
    let (ours, peer) = bench.take_turns(
        name,
        "calls/s",
        || runtime.block_on(rate(served.address, hits.clone(), time)),
        || runtime.block_on(rate(empty_address, nothing.clone(), time)),
    )?;
    let row = Row::new(name, "calls/s", &ours, &peer, Goal::RatioAtLeast(0.5));
    let note = format!("{CALLERS} callers with a connection and a monster each, on the same cores");
    Ok(vec![row.beside("an empty axum handler").note(note)])
}

/// A monster for each caller, and the request that hits it.
async fn monsters(server: SocketAddr) -> Result<Vec<Vec<u8>>> {
    let mut hits = Vec::new();
    for _ in 0..CALLERS {
        let born = json!({ "monsterId": 100_100, "maxHp": 2_000_000_000_u32 });
        let monster = post(server, &format!("/v1/tenants/{TENANT}/{FIELD}"), None, &born).await?;
        let id = monster["uniqueId"].as_u64().context("a monster has an id")?;
        let path = format!("/v1/tenants/{TENANT}/monsters/{id}/damage");
        hits.push(request(&path, None, &json!({ "characterId": 7, "amount": 1 }).to_string()));
    }
    Ok(hits)
}
