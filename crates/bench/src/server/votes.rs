//! Votes in many rooms: from the vote to the moment in which every client of the room knows how it ended.
//!
//! Open loop: every room votes at its own moment of every second, whether or not the server is ready, and a latency counts
//! from that moment. Every client must hear of every vote's end; the master of every vote, each player that its own counts.

use super::rooms::{Room, room};
use super::server_process::ServerProcess;
use super::ws_client::{WsClient, is};
use crate::measure::{Samples, latencies};
use crate::row::{Goal, Row};
use crate::suite::{Bench, say};
use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Utf8Bytes;

const CLIENTS_PER_ROOM: usize = 10;
const ROOMS: usize = 200;
const ROOMS_QUICK: usize = 20;
const SECONDS: usize = 15;
const SECONDS_QUICK: usize = 3;
/// From the opening of an item to the votes on it.
const VOTE_AFTER: Duration = Duration::from_millis(400);
/// Rooms that are filled at the same time.
const FILLED_TOGETHER: usize = 16;
const P99_MS_MAX: f64 = 50.0;
const KIB_PER_CONNECTION_MAX: f64 = 30.0;

/// Latency of votes, and memory of connections.
pub(crate) fn votes(bench: &mut Bench, name: &'static str) -> Result<Vec<Row>> {
    let (rooms, seconds) = if bench.quick { (ROOMS_QUICK, SECONDS_QUICK) } else { (ROOMS, SECONDS) };
    let server = ServerProcess::start(None, None)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let clients = rooms * CLIENTS_PER_ROOM;
    let made = runtime.block_on(make(server.address, rooms, seconds))?;
    let before = server.resident_bytes()?;
    say(&format!("{name}  {clients} clients join {rooms} rooms"));
    let filled = runtime.block_on(fill(server.address, made))?;
    let kib = server.resident_bytes()?.saturating_sub(before) as f64 / 1024.0 / clients as f64;
    say(&format!("{name}  every room votes once a second, for {seconds} s"));
    let heard = runtime.block_on(play(filled, seconds))?;
    let expected = (clients * seconds) as u64;
    ensure!(heard.len() == expected, "{} of {expected} ends of votes were heard of", heard.len());
    let ms = |us: u64| us as f64 / 1_000.0;
    let p99 = ms(heard.value_at_quantile(0.99));
    let note = format!(
        "{clients} clients in {rooms} rooms, all heard all: {expected} ends and every vote; p50 {:.1} ms, max {:.0} ms",
        ms(heard.value_at_quantile(0.5)),
        ms(heard.max())
    );
    let only = |figure: f64| [figure].into_iter().collect::<Samples>();
    Ok(vec![
        Row::new(name, "ms, p99", &only(p99), &only(P99_MS_MAX), Goal::AtMost(P99_MS_MAX))
            .beside("the limit")
            .note(note),
        Row::new(
            "ws-memory",
            "KiB per connection",
            &only(kib),
            &only(KIB_PER_CONNECTION_MAX),
            Goal::AtMost(KIB_PER_CONNECTION_MAX),
        )
        .beside("the limit")
        .note("resident memory of the server, joined connections and their rooms' hubs"),
    ])
}

async fn make(server: SocketAddr, rooms: usize, seconds: usize) -> Result<Vec<Room>> {
    let mut made = Vec::new();
    for _ in 0..rooms {
        made.push(room(server, CLIENTS_PER_ROOM - 1, seconds).await?);
    }
    Ok(made)
}

/// A master and its players.
struct Filled {
    master: WsClient,
    players: Vec<WsClient>,
}

async fn fill(server: SocketAddr, rooms: Vec<Room>) -> Result<Vec<Filled>> {
    let mut filled = Vec::new();
    for some in rooms.chunks(FILLED_TOGETHER) {
        let mut filling = JoinSet::new();
        some.iter().cloned().for_each(|room| drop(filling.spawn(fill_one(server, room))));
        while let Some(room) = filling.join_next().await {
            filled.push(room??);
        }
    }
    Ok(filled)
}

async fn fill_one(server: SocketAddr, room: Room) -> Result<Filled> {
    let mut master = WsClient::join(server, "tv", &room, true).await?;
    let mut players = Vec::new();
    for number in 0..CLIENTS_PER_ROOM - 1 {
        let mut client = WsClient::join(server, &format!("client-{number}"), &room, false).await?;
        let payload = json!({ "player_id": format!("p{number}") });
        client.send(&json!({ "type": "TAKE_PLAYER", "payload": payload })).await?;
        client.expect("TAKE_PLAYER_OK").await?;
        players.push(client);
    }
    master.send(&json!({ "type": "START_GAME" })).await?;
    master.expect("GAME_START").await?;
    Ok(Filled { master, players })
}

/// All rooms play, each at its own moment of the second.
async fn play(rooms: Vec<Filled>, seconds: usize) -> Result<Histogram<u64>> {
    let (count, mut playing, mut heard) = (rooms.len(), JoinSet::new(), latencies());
    let begin = Arc::new(Barrier::new(count * CLIENTS_PER_ROOM));
    let first = Instant::now() + Duration::from_secs(1);
    for (number, Filled { master, players }) in rooms.into_iter().enumerate() {
        let start = first + Duration::from_secs(1) * number as u32 / count as u32;
        playing.spawn(attend(master, start, seconds, true, begin.clone()));
        for player in players {
            playing.spawn(attend(player, start, seconds, false, begin.clone()));
        }
    }
    while let Some(client) = playing.join_next().await {
        heard += &client??;
    }
    Ok(heard)
}

/// One client: sends at its moments, and notes when it hears how each vote ended.
async fn attend(
    mut client: WsClient,
    start: Instant,
    seconds: usize,
    is_master: bool,
    begin: Arc<Barrier>,
) -> Result<Histogram<u64>> {
    begin.wait().await;
    let mut heard = latencies();
    // What a client receives about single votes. It may come after the end, which the last of them causes.
    let (kind, each) = if is_master { ("PLAYER_VOTED", CLIENTS_PER_ROOM - 1) } else { ("VOTE_ACK", 1) };
    let mut votes_received = 0;
    for second in 0..seconds {
        let opens = start + Duration::from_secs(second as u64);
        let votes = opens + VOTE_AFTER;
        let (at, text) = if is_master { (opens, opening(second)) } else { (votes, vote(second)) };
        say_at(&mut client, at, text).await?;
        let end = format!("\"item_id\":\"i{second}\"");
        loop {
            let message = client.next().await?;
            ensure!(!is(&message, "ERROR"), "a client received {message}");
            votes_received += usize::from(is(&message, kind));
            let is_end =
                is(&message, "STATE_SYNC_RESPONSE") && message.contains("\"status\":\"reveal_wait\"");
            if is_end && message.contains(&end) {
                heard.saturating_record(votes.elapsed().as_micros() as u64);
                break;
            }
        }
    }
    while votes_received < each * seconds {
        client.expect(kind).await?;
        votes_received += 1;
    }
    ensure!(votes_received == each * seconds, "{votes_received} times {kind}, expected {}", each * seconds);
    Ok(heard)
}

/// Sends at a moment. What comes before is of the item before, or that the item is open.
async fn say_at(client: &mut WsClient, at: Instant, text: Utf8Bytes) -> Result<()> {
    tokio::time::sleep_until(at.into()).await;
    client.send_text(text).await
}

fn opening(second: usize) -> Utf8Bytes {
    let payload = json!({ "round_id": "r0", "item_id": format!("i{second}") });
    json!({ "type": "OPEN_ITEM", "payload": payload }).to_string().into()
}

fn vote(second: usize) -> Utf8Bytes {
    let payload = json!({ "round_id": "r0", "item_id": format!("i{second}"), "selections": ["s0"] });
    json!({ "type": "SUBMIT_VOTE", "payload": payload }).to_string().into()
}
