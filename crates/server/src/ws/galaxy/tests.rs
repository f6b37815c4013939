//! Frames and sessions of the stream, tested without a network.

use super::feeds::Feeds;
use super::frame::{Frame, Sent, split};
use super::gateway::GalaxyGateway;
use super::session::{GalaxyClient, serve};
use crate::auth::Tokens;
use crate::limit::connections::ConnectionLimiter;
use crate::metrics::Metrics;
use crate::ws::tests::fixture::{CALM, FAST};
use crate::ws::tests::sessions::socket;
use crate::ws::timing::Timing;
use axum::extract::ws::{Message, Utf8Bytes};
use emberkeep_games::galaxy::{
    GalaxyState, GameTime, Motion, PlayerId, ShipId, ShipState, SystemId, TickView, Vector, World,
};
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use uuid::Uuid;

fn view(generation: i64, tick: i64, ships: &[(u128, f64)]) -> TickView {
    let mut world = World::default();
    for (number, x) in ships {
        let id = Uuid::from_u128(*number);
        let motion = Motion { position: Vector::new(*x, 0.0, 0.0), fuel: 5.0, ..Motion::default() };
        let state = ShipState { player_id: PlayerId(id), system_id: SystemId::sol(), motion };
        world.ships.insert(ShipId(id), state);
    }
    TickView { generation, tick, time: GameTime::from_millis(0), drift: 0.0, world }
}

fn frame(view: &TickView, before: Option<&Frame>) -> Frame {
    let (system, world) = split(&view.world, &[SystemId::sol()]).pop_first().unwrap();
    Frame::new(view, system, world, before)
}

fn text(sent: Option<Sent>) -> (bool, Utf8Bytes) {
    match sent.expect("there is something to send") {
        Sent::Delta(text) => (true, text),
        Sent::State(text) => (false, text),
    }
}

#[test]
fn a_tick_is_encoded_once_for_all_watchers() {
    let first = frame(&view(1, 1, &[(1, 0.0), (2, 7.0), (3, 3.0)]), None);
    let second = frame(&view(1, 2, &[(1, 0.5), (2, 7.0)]), Some(&first));
    let (is_delta, delta) = text(second.message(Some((1, 1))));
    assert!(is_delta, "{delta}");
    assert_eq!(text(second.message(Some((1, 1)))).1.as_ptr(), delta.as_ptr(), "shared, not copied");
    let sent: serde_json::Value = serde_json::from_str(&delta).unwrap();
    let id = |number: u128| Uuid::from_u128(number).to_string();
    let change = serde_json::json!({ "position": [0.5, 0.0, 0.0] });
    assert_eq!(sent["payload"]["ships"], serde_json::json!({ id(1): change }), "only what has changed");
    assert_eq!(sent["payload"]["removed"]["ships"], serde_json::json!([id(3)]));
    let (is_delta, state) = text(second.message(None));
    assert!(!is_delta && state.len() > delta.len());
    assert_eq!(text(second.message(Some((1, 0)))).1.as_ptr(), state.as_ptr(), "for all who skipped");
    assert_eq!(second.message(Some((1, 2))), None, "it was sent");
}

#[test]
fn another_generation_is_sent_as_a_whole() {
    let first = frame(&view(1, 5, &[(1, 0.0)]), None);
    let reset = frame(&view(2, 0, &[]), Some(&first));
    assert!(!text(reset.message(Some((1, 5)))).0);
    let back = frame(&view(1, 4, &[]), Some(&first));
    assert!(!text(back.message(Some((1, 5)))).0, "after a failover");
}

fn client(timing: Timing) -> (GalaxyClient, Arc<Metrics>) {
    let galaxy = GalaxyState::new(Store::new(Arc::new(Embedded::in_memory())));
    let metrics = Arc::new(Metrics::default());
    let client = GalaxyClient {
        feeds: Feeds::new(galaxy.clone(), metrics.clone()),
        gateway: GalaxyGateway::new(galaxy, metrics.clone()),
        tokens: Tokens::open(),
        token: None,
        timing,
    };
    (client, metrics)
}

const PLAYER: Uuid = Uuid::from_u128(7);

/// Runs a connection of a player to its end: the code of its close frame.
async fn ended(client: GalaxyClient) -> Option<u16> {
    let (socket, sender, mut receiver) = socket();
    let first = format!(r#"{{"type":"AUTHENTICATE","payload":{{"player_id":"{PLAYER}"}}}}"#);
    sender.send(Message::text(first)).unwrap();
    let permit = ConnectionLimiter::default().acquire(IpAddr::from([127, 0, 0, 1])).unwrap();
    serve(client, socket, permit).await;
    let mut code = None;
    while let Ok(message) = receiver.try_recv() {
        if let Message::Close(frame) = message {
            code = frame.map(|frame| frame.code);
        }
    }
    code
}

#[tokio::test]
async fn a_client_that_says_nothing_is_disconnected_and_its_player_is_offline() {
    let (client, metrics) = client(FAST);
    let galaxy = client.feeds.galaxy().clone();
    assert_eq!(ended(client).await, Some(4000));
    assert!(!galaxy.is_online(PlayerId(PLAYER)).await.unwrap());
    assert_eq!((metrics.sockets.load(Relaxed), metrics.galaxy.sockets.load(Relaxed)), (0, 0));
}

#[tokio::test]
async fn a_connection_ends_at_once_with_the_server() {
    let (client, _) = client(CALM);
    client.feeds.shutdown();
    assert_eq!(ended(client).await, Some(1001));
}
