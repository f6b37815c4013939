//! Fleets, names, registration and the deletion of players.

use super::*;
use emberkeep_games::galaxy::{ACTIVE_SHIP, Error, FLEET, MotionChange, SHIP, SocketRequest};

pub async fn a_login_verifies_the_fleet(store: Store) {
    let space = Space::of(&store).await;
    let (first, player) = space.spawn(0.0).await;
    let second = ShipId(Uuid::new_v4());
    space.spawn_for(second, player, 1.0).await;
    let mut world = World::default();
    space.step(&mut world).await;
    // Another program loses the set and leaves a ship that is gone in its place.
    let stranger = ShipId(Uuid::new_v4());
    space
        .change(move |tx| {
            tx.del(&FLEET.key(player))?;
            tx.sadd(&FLEET.key(player), &stranger)?;
            tx.put(&ACTIVE_SHIP.key(player), &stranger)
        })
        .await;
    assert_eq!(space.state.fleet(player).await.unwrap().ships, [], "only what exists");
    let fleet = space.state.players().login(player).await.unwrap();
    assert_eq!(fleet.ships.len(), 2, "found in the tick");
    assert_eq!(fleet.active, Some(first), "the oldest one");
    assert_eq!(space.state.scope().scard(&FLEET.key(player)).await, Ok(2));
    space.state.players().switch_ship(player, second).await.unwrap();
    assert_eq!(space.state.players().login(player).await.unwrap().active, Some(second));
}

pub async fn only_own_ships_are_switched_and_renamed(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let (other, _) = space.spawn(0.0).await;
    let refused = space.state.players().switch_ship(player, other).await;
    assert_eq!(refused, Err(Error::NotOwner { ship: other, player }));
    let gateway = space.state.api_gateway();
    let refused = gateway.rename_ship(player, other, "mine".into()).await;
    assert_eq!(refused, Err(Error::NotOwner { ship: other, player }));
    gateway.rename_ship(player, ship, "Nauvoo".into()).await.unwrap();
    assert_eq!(space.hash(ship).await["name"], "Nauvoo");
    let nowhere = ShipId(Uuid::new_v4());
    assert!(matches!(gateway.rename_ship(player, nowhere, "x".into()).await, Err(Error::NotFound { .. })));
    for name in ["", "   ", &"x".repeat(65), "a\nb"] {
        assert!(matches!(gateway.rename_ship(player, ship, name.into()).await, Err(Error::Invalid { .. })));
    }
}

pub async fn registration_is_open_by_default(store: Store) {
    let space = Space::of(&store).await;
    let (players, gateway) = (space.state.players(), space.state.api_gateway());
    let player = PlayerId(Uuid::new_v4());
    let key = emberkeep_games::galaxy::REGISTRATION_OPEN.key();
    space.state.scope().del(&key).await.unwrap();
    players.register(player, "Holden".into()).await.unwrap();
    gateway.set_registration_open(false).await.unwrap();
    assert_eq!(players.register(player, "Holden".into()).await, Err(Error::RegistrationClosed));
    assert!(!space.state.clock().await.unwrap().registration_open);
    gateway.set_registration_open(true).await.unwrap();
    players.register(player, "Holden".into()).await.unwrap();
}

pub async fn a_deleted_player_leaves_nothing_behind(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let (_, other) = space.spawn(0.0).await;
    let gateway = space.state.api_gateway();
    let socket = SocketRequest { connection: name("c1"), player_id: player };
    gateway.connect(&name("deleting"), socket.clone()).await.unwrap();
    let mut notices = gateway.notices().await.unwrap();
    let deletion = space.state.players().delete_player(player).await.unwrap();
    assert_eq!((deletion.ships, deletion.was_online), (1, true));
    let notice = tokio::time::timeout(Duration::from_secs(10), notices.next()).await.unwrap();
    assert!(format!("{notice:?}").contains("player_deleted"), "{notice:?}");
    assert_eq!(space.state.is_online(player).await, Ok(false));
    assert_eq!(space.state.scope().exists(&SHIP.key(ship)).await, Ok(false));
    assert_eq!(space.state.scope().exists(&FLEET.key(player)).await, Ok(false));
    assert_eq!(space.state.fleet(other).await.unwrap().ships.len(), 1);
    let refused = Err(Error::PlayerDeleted { player });
    assert_eq!(gateway.connect(&name("deleting"), socket.clone()).await, refused);
    assert_eq!(space.state.players().register(player, "x".into()).await, refused);
    assert_eq!(gateway.renew_gateway(&name("deleting"), vec![socket]).await, Ok(vec![name("c1")]));
    assert!(space.state.players().deleted_at(player).await.unwrap().is_some());
    let queued = space.state.physics().move_ship(ship, MotionChange::fuel(1.0)).await;
    assert!(matches!(queued, Err(Error::NotFound { .. })));
}
