//! Races for players through sockets: 64 devices want 8 players, again and again. Each player has exactly one winner.
//!
//! A connection may say so much in a second and no more, so several rooms race at the same time.

use super::rooms::{Room, room};
use super::server_process::ServerProcess;
use super::ws_client::{WsClient, is};
use crate::measure::Samples;
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Result, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const DEVICES: usize = 64;
const PLAYERS: usize = 8;
const ROOMS: usize = 10;
const ROUNDS_PER_ROOM: usize = 100;
const ROUNDS_PER_ROOM_QUICK: usize = 5;
/// Between two races of a room: within the pace of a connection.
const BREATH: Duration = Duration::from_millis(60);

/// On one server that needs nothing.
pub(crate) fn embedded(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let server = ServerProcess::start(None, None)?;
    races(bench, name, &[server.address], "embedded")
}

/// On two servers that share a Redis.
pub(crate) fn redis(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let redis = bench.redis()?;
    let (first, second) =
        (ServerProcess::start(Some(redis.url()), None)?, ServerProcess::start(Some(redis.url()), None)?);
    races(bench, name, &[first.address, second.address], "two servers on one Redis")
}

fn races(bench: &Bench, name: &str, servers: &[SocketAddr], on: &str) -> Result<Vec<Row>> {
    let rounds = if bench.quick { ROUNDS_PER_ROOM_QUICK } else { ROUNDS_PER_ROOM };
    say(&format!("{name}  {} races on {on}", ROOMS * rounds));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (servers, started) = (servers.to_vec(), Instant::now());
    let right = runtime.block_on(async move {
        let mut rooms = JoinSet::new();
        for _ in 0..ROOMS {
            rooms.spawn(in_a_room(servers.clone(), rounds));
        }
        let mut right = 0;
        while let Some(room) = rooms.join_next().await {
            right += room??;
        }
        anyhow::Ok(right)
    })?;
    let all = (ROOMS * rounds) as f64;
    let (ours, limit): (Samples, Samples) =
        ([right as f64].into_iter().collect(), [all].into_iter().collect());
    let row = Row::new(name, "races with one winner each", &ours, &limit, Goal::RatioAtLeast(1.0));
    let note = format!(
        "{DEVICES} devices for {PLAYERS} players on {on}; {ROOMS} rooms at once, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    Ok(vec![row.beside("all races").note(note)])
}

/// The races of a room; gives the number of those in which each player had one winner.
async fn in_a_room(servers: Vec<SocketAddr>, rounds: usize) -> Result<usize> {
    let room = room(servers[0], PLAYERS, 1).await?;
    let mut master = WsClient::join(servers[0], "tv", &room, true).await?;
    let mut phones = join_all(&servers, &room).await?;
    let mut right = 0;
    for _ in 0..rounds {
        let winners;
        (phones, winners) = race(phones).await?;
        right += usize::from(winners.iter().all(|count| *count == 1));
        master.send(&json!({ "type": "RESET_CLAIMS" })).await?;
        free(&mut master).await?;
        tokio::time::sleep(BREATH).await;
    }
    Ok(right)
}

async fn join_all(servers: &[SocketAddr], room: &Room) -> Result<Vec<WsClient>> {
    let mut phones = Vec::new();
    for number in 0..DEVICES {
        phones.push(
            WsClient::join(servers[number % servers.len()], &format!("client-{number}"), room, false).await?,
        );
    }
    Ok(phones)
}

/// All at once; gives the number of winners of each player.
async fn race(phones: Vec<WsClient>) -> Result<(Vec<WsClient>, [usize; PLAYERS])> {
    let mut racing = JoinSet::new();
    for (number, mut client) in phones.into_iter().enumerate() {
        let player = number % PLAYERS;
        racing.spawn(async move {
            let payload = json!({ "player_id": format!("p{player}") });
            client.send(&json!({ "type": "TAKE_PLAYER", "payload": payload })).await?;
            let answer = client.expect_one_of(&["TAKE_PLAYER_OK", "TAKE_PLAYER_FAIL"]).await?;
            let won = is(&answer, "TAKE_PLAYER_OK");
            ensure!(won || answer.contains("taken_now"), "refused for another reason: {answer}");
            Ok((number, client, won))
        });
    }
    let (mut done, mut winners) = (Vec::new(), [0; PLAYERS]);
    while let Some(answer) = racing.join_next().await {
        let (number, client, won) = answer??;
        winners[number % PLAYERS] += usize::from(won);
        done.push((number, client));
    }
    done.sort_by_key(|(number, _)| *number);
    Ok((done.into_iter().map(|(_, client)| client).collect(), winners))
}

/// Waits until all players are free.
async fn free(master: &mut WsClient) -> Result<()> {
    loop {
        let state = master.expect("STATE_SYNC_RESPONSE").await?;
        if !state.contains("\"status\":\"taken\"") {
            return Ok(());
        }
    }
}
