//! Who is online.

use super::*;
use emberkeep_games::galaxy::{GATEWAYS, ONLINE, SocketRequest};

fn socket(connection: &str, player_id: PlayerId) -> SocketRequest {
    SocketRequest { connection: name(connection), player_id }
}

/// Gateways of a case.
fn gateways() -> (emberkeep_schema::Name, emberkeep_schema::Name) {
    let id = Uuid::new_v4();
    (name(&format!("one-{id}")), name(&format!("two-{id}")))
}

pub async fn a_player_is_online_until_the_last_connection_closes(store: Store) {
    let space = Space::of(&store).await;
    let (gateway, player) = (space.state.api_gateway(), PlayerId(Uuid::new_v4()));
    let (one, two) = gateways();
    for (gate, connection) in [(&one, "a"), (&one, "b"), (&two, "a")] {
        gateway.connect(gate, socket(connection, player)).await.unwrap();
    }
    assert_eq!(gateway.disconnect(&one, &name("a")).await, Ok(true));
    assert_eq!(gateway.disconnect(&one, &name("a")).await, Ok(false), "closed once");
    assert_eq!(gateway.disconnect(&one, &name("b")).await, Ok(true));
    assert_eq!(space.state.is_online(player).await, Ok(true));
    assert!(space.state.online().await.unwrap().contains(&player));
    assert_eq!(gateway.disconnect(&two, &name("a")).await, Ok(true));
    assert_eq!(space.state.is_online(player).await, Ok(false));
}

pub async fn connections_of_a_dead_gateway_are_swept(store: Store) {
    let space = Space::of(&store).await;
    let gateway = space.state.api_gateway();
    let (one, two) = gateways();
    let (player, other, external) =
        (PlayerId(Uuid::new_v4()), PlayerId(Uuid::new_v4()), PlayerId(Uuid::new_v4()));
    gateway.connect(&one, socket("a", player)).await.unwrap();
    gateway.connect(&one, socket("b", other)).await.unwrap();
    gateway.connect(&two, socket("a", other)).await.unwrap();
    space.change(move |tx| tx.sadd(&ONLINE.key(), &external)).await;
    let dead = one.clone();
    space.change(move |tx| tx.zadd(&GATEWAYS.key(), &dead, 1.0)).await;
    let sweep = gateway.sweep_gateways().await.unwrap();
    assert_eq!((sweep.gateways, sweep.connections), (1, 2));
    assert_eq!(space.state.is_online(player).await, Ok(false));
    assert_eq!(space.state.is_online(other).await, Ok(true), "it has another connection");
    assert_eq!(space.state.is_online(external).await, Ok(true), "no gateway of ours entered it");
    assert_eq!(gateway.sweep_gateways().await.unwrap(), Default::default());
}

pub async fn a_renewal_enters_what_was_lost(store: Store) {
    let space = Space::of(&store).await;
    let gateway = space.state.api_gateway();
    let (one, _) = gateways();
    let (player, gone) = (PlayerId(Uuid::new_v4()), PlayerId(Uuid::new_v4()));
    gateway.connect(&one, socket("a", player)).await.unwrap();
    gateway.connect(&one, socket("b", gone)).await.unwrap();
    space.change(move |tx| tx.srem(&ONLINE.key(), &player)).await;
    assert_eq!(space.state.is_online(player).await, Ok(false), "another program removed it");
    assert_eq!(gateway.renew_gateway(&one, vec![socket("a", player)]).await, Ok(vec![]));
    assert_eq!(space.state.is_online(player).await, Ok(true));
    assert_eq!(space.state.is_online(gone).await, Ok(false), "the gateway does not have its connection");
    let dead = one.clone();
    space.change(move |tx| tx.zadd(&GATEWAYS.key(), &dead, 1.0)).await;
    gateway.sweep_gateways().await.unwrap();
    gateway.renew_gateway(&one, vec![socket("a", player)]).await.unwrap();
    assert_eq!(space.state.is_online(player).await, Ok(true), "a gateway that was only stalled");
    gateway.renew_gateway(&one, vec![]).await.unwrap();
}
