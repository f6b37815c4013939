//! A room that is ready to be played in.

use super::http::post;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A room with its master key.
#[derive(Clone)]
pub(super) struct Room {
    pub(super) code: String,
    pub(super) key: String,
}

/// Creates a room with players `p0`, `p1`, … and one round of items `i0`, `i1`, …
pub(super) async fn room(server: SocketAddr, players: usize, items: usize) -> Result<Room> {
    let created = post(server, "/room", None, &json!({})).await?;
    let text = |name: &str| created[name].as_str().map(str::to_owned).with_context(|| format!("no {name}"));
    let room = Room { code: text("room_code")?, key: text("master_key")? };
    let players: Vec<Value> = (0..players)
        .map(|n| json!({ "player_id": format!("p{n}"), "name": format!("Player {n}") }))
        .collect();
    let items: Vec<Value> = (0..items)
        .map(|n| json!({ "item_id": format!("i{n}"), "reel_url": "https://reels.example/1", "k": 1, "true_sender_ids": ["s0"] }))
        .collect();
    let setup = json!({
        "senders": [{ "sender_id": "s0", "name": "Sam" }, { "sender_id": "s1", "name": "Sue" }],
        "players": players,
        "rounds": [{ "round_id": "r0", "items": items }],
    });
    post(server, &format!("/room/{}/setup", room.code), Some(&room.key), &setup).await?;
    Ok(room)
}
