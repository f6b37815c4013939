//! Members of a zone, their number, and those near a point.

use super::{City, PLAYERS, key_text, row, tick};
use crate::peer::Peer;
use crate::row::{Goal, Row};
use crate::suite::Bench;
use anyhow::{Context, Result, ensure};
use emberkeep::games::darkages::model::PositionText;
use emberkeep::games::darkages::{EntityId, NearbyRequest, POSITION, Point, ZONE_PLAYERS, ZoneId};
use emberkeep::schema::{Codec, Name};
use std::time::{Duration, Instant};

/// Zones of different sizes.
const SIZES: [i64; 2] = [100, 10_000];
/// The radius of a query, which reaches a hundredth of a disc of 10,000 players.
const RADIUS: f64 = 100.0;

/// Members and count, beside SMEMBERS and SCARD.
pub(super) fn zones(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let mut rows = Vec::new();
    for city in [City::embedded()?, City::on_redis(&peer)?] {
        for (number, size) in (1..).zip(SIZES) {
            let zone = ZoneId(number);
            let first = i64::from(number) * PLAYERS * 2;
            city.fill(zone, first, size)?;
            // The peer reads the same set; without it in Redis, one of its own.
            let key = key_text(ZONE_PLAYERS.key(zone));
            fill_set(&peer, &key, first, size)?;
            let count = |number: usize| ensure_count(number, size);
            let name = |what| format!("{name}-{what}-{size}-{}", city.on);
            let members = bench.take_turns(
                &name("members"),
                "ms",
                || city.millis(async { count(city.game.member_ids(zone).await?.len()) }),
                || timed(|| count(peer.call::<Vec<i64>>(redis::cmd("SMEMBERS").arg(&key))?.len())),
            )?;
            rows.push(row(&name("members"), "ms", &members, Goal::None, "SMEMBERS, living or not"));
            let counted = bench.take_turns(
                &name("count"),
                "ms",
                || city.millis(async { count(city.game.count(zone).await?) }),
                || timed(|| count(peer.call(redis::cmd("SCARD").arg(&key))?)),
            )?;
            rows.push(row(&name("count"), "ms", &counted, Goal::None, "SCARD, living or not"));
        }
    }
    Ok(rows)
}

/// Players near a point among 10,000, not cached, beside SMEMBERS, MGET and a filter by the same client.
pub(super) fn nearby(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let peer = bench.redis()?;
    let zone = ZoneId(7);
    let first = 20 * PLAYERS;
    let mut rows = Vec::new();
    for (city, goal) in
        [(City::embedded()?, Goal::AtMost(1.0)), (City::on_redis(&peer)?, Goal::RatioAtMost(1.2))]
    {
        city.fill(zone, first, PLAYERS)?;
        let at = city.runtime.block_on(city.game.scope().store().now())?;
        city.runtime.block_on(city.game.set_positions(tick(first, at)))?;
        if city.on == "embedded" {
            continue_on_peer(&peer, zone, first, at)?;
        }
        let name = format!("{name}-{}", city.on);
        let expected = plain(&peer, zone)?;
        let found = bench.take_turns(
            &name,
            "ms",
            || {
                city.millis(async {
                    let found = city.game.nearby(request(zone)?).await?;
                    ensure_count(found.ids.len(), expected as i64)
                })
            },
            || timed(|| ensure_count(plain(&peer, zone)?, expected as i64)),
        )?;
        rows.push(
            row(&name, "ms", &found, goal, "SMEMBERS, MGET and a filter").note(format!("{expected} found")),
        );
    }
    Ok(rows)
}

fn request(zone: ZoneId) -> Result<NearbyRequest> {
    let query = Name::new("bench").context("a name")?;
    let centre = Point::new(0.0, 0.0, 0.0);
    Ok(NearbyRequest { query, zone, centre, radius: RADIUS, max_age: Duration::ZERO })
}

/// How many are near, by plain commands.
fn plain(peer: &Peer, zone: ZoneId) -> Result<usize> {
    let members: Vec<i64> = peer.call(redis::cmd("SMEMBERS").arg(key_text(ZONE_PLAYERS.key(zone))))?;
    let keys: Vec<String> = members.iter().map(|id| key_text(POSITION.key(EntityId(*id)))).collect();
    let positions: Vec<Option<Vec<u8>>> = peer.call(redis::cmd("MGET").arg(&keys))?;
    let centre = Point::new(0.0, 0.0, 0.0);
    let near = positions.iter().flatten().filter(|text| {
        PositionText::decode(text).is_ok_and(|at| at.distance_squared(&centre) <= RADIUS * RADIUS)
    });
    Ok(near.count())
}

/// The same zone and positions on the peer.
fn continue_on_peer(peer: &Peer, zone: ZoneId, first: i64, at: i64) -> Result<()> {
    fill_set(peer, &key_text(ZONE_PLAYERS.key(zone)), first, PLAYERS)?;
    let positions = tick(first, at);
    peer.call_each(PLAYERS as u64, |number, pipe| {
        let (entity, position) = &positions[number as usize];
        let mut text = Vec::new();
        // Numbers of this benchmark are finite.
        if PositionText::encode(position, &mut text).is_ok() {
            pipe.cmd("SET").arg(key_text(POSITION.key(entity))).arg(text).arg("EX").arg(120);
        }
    })
}

fn fill_set(peer: &Peer, key: &str, first: i64, size: i64) -> Result<()> {
    peer.call_each(size as u64, |number, pipe| {
        pipe.cmd("SADD").arg(key).arg(first + number as i64);
    })
}

fn ensure_count(found: usize, expected: i64) -> Result<()> {
    ensure!(found as i64 == expected, "{found} players, expected {expected}");
    Ok(())
}

/// Milliseconds of a call.
fn timed(call: impl FnOnce() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    call()?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
