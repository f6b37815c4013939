//! Who may write what.

use super::*;
use emberkeep_games::galaxy::{
    API_GATEWAY, Body, BodyName, Controls, Error, GALAXY, MotionChange, PHYSICS, PLAYERS, SHIP, SystemId,
    TICK_ENGINE,
};
use emberkeep_hot as hot;

fn forbidden<T: std::fmt::Debug>(result: Result<T, Error>, by: &str, owners: &[&str]) {
    match result {
        Err(Error::Store(hot::Error::Forbidden { service, owner, .. })) => {
            assert!(service == by && owners.contains(&owner), "{service} {owner}");
        }
        other => panic!("{by}: {other:?}"),
    }
}

pub async fn a_service_writes_only_its_own_families(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let new = || NewShip::new(ShipId(Uuid::new_v4()), player, "no");
    let gateway = space.state.acting_as(&API_GATEWAY);
    forbidden(gateway.physics().spawn_ship(new()).await, "api-gateway", &["physics"]);
    forbidden(gateway.physics().control(ship, Controls::default()).await, "api-gateway", &["physics"]);
    forbidden(gateway.players().switch_ship(player, ship).await, "api-gateway", &["players"]);
    forbidden(gateway.tick_engine().pause().await, "api-gateway", &["tick-engine"]);
    forbidden(gateway.players().delete_player(player).await, "api-gateway", &["players"]);
    let players = space.state.acting_as(&PLAYERS);
    forbidden(players.physics().move_ship(ship, MotionChange::fuel(1.0)).await, "players", &["physics"]);
    forbidden(players.physics().remove_ship(ship).await, "players", &["physics"]);
    forbidden(players.api_gateway().set_registration_open(false).await, "players", &["api-gateway"]);
    forbidden(players.api_gateway().rename_ship(player, ship, "x".into()).await, "players", &["physics"]);
    let physics = space.state.acting_as(&PHYSICS);
    forbidden(
        physics.tick_engine().start(StartRequest::new("engine-1")).await.map(drop),
        "physics",
        &["tick-engine"],
    );
    let galaxy = space.state.acting_as(&GALAXY);
    forbidden(galaxy.physics().spawn_ship(new()).await, "galaxy", &["physics"]);
    let engine = space.state.acting_as(&TICK_ENGINE);
    forbidden(engine.physics().spawn_ship(new()).await, "tick-engine", &["physics", "players"]);
    let body = Body {
        name: BodyName(name("Ceres")),
        position: Vector::ZERO,
        velocity: Vector::ZERO,
        system_id: SystemId::sol(),
    };
    forbidden(engine.initializer().create_body(body.clone()).await, "tick-engine", &["physics"]);
    galaxy.initializer().create_body(body).await.unwrap();
    assert_eq!(space.state.ships_in(&SystemId::sol()).await, Ok(vec![ship]));
}

pub async fn a_granted_field_is_only_that_field(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let gateway = space.state.acting_as(&API_GATEWAY);
    gateway.api_gateway().rename_ship(player, ship, "Canterbury".into()).await.unwrap();
    let scope = gateway.scope().for_operation(&emberkeep_games::galaxy::RENAME);
    let refused =
        scope.transact(move |tx| tx.hset(&SHIP.key(ship), &"fuel".to_owned(), &"1".to_owned())).await;
    match refused {
        Err(hot::Error::Forbidden { family: "SHIP", owner: "physics", field: Some(field), .. }) => {
            assert_eq!(&*field, "fuel");
        }
        other => panic!("{other:?}"),
    }
}
