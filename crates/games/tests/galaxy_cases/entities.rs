//! Ships, stations, bodies and jump gates, and the indexes of their systems.

use super::*;
use emberkeep_games::galaxy::{
    AttitudeMode, BODY, Body, BodyName, Controls, JUMPGATE, Jumpgate, JumpgateId, MotionChange, Quaternion,
    SHIP, STATION, SYSTEM_SHIPS, ShipClass, Station, StationId, SystemId, TOTAL_SPAWNS, TargetType,
};

pub async fn a_spawned_ship_has_the_fields_of_the_document(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = (ShipId(Uuid::new_v4()), PlayerId(Uuid::new_v4()));
    let mut new = NewShip::new(ship, player, "PlayerOne");
    new.motion.position = Vector::new(1.5e11, 0.0, 0.0);
    new.motion.velocity = Vector::new(0.0, 29_780.0, 0.0);
    assert_eq!(space.state.physics().spawn_ship(new).await, Ok(1));
    let hash = space.hash(ship).await;
    let expected = [
        ("player_id", player.to_string()),
        ("name", "PlayerOne".into()),
        ("ship_class", "fast_frigate".into()),
        ("position", "[150000000000, 0, 0]".into()),
        ("velocity", "[0, 29780, 0]".into()),
        ("attitude", "[1, 0, 0, 0]".into()),
        ("angular_velocity", "[0, 0, 0]".into()),
        ("rotation_input", "[0, 0, 0]".into()),
        ("thrust_level", "0.0".into()),
        ("attitude_hold", "false".into()),
        ("attitude_mode", "none".into()),
        ("fuel", "30000".into()),
        ("fuel_capacity", "30000".into()),
        ("dry_mass", "10000".into()),
        ("wheel_momentum", "[0, 0, 0]".into()),
        ("system_id", "sol".into()),
    ];
    for (field, text) in expected {
        assert_eq!(hash.get(field), Some(&text), "{field}");
    }
    let scope = space.state.scope();
    assert_eq!(scope.smembers(&SYSTEM_SHIPS.key(SystemId::sol())).await, Ok(vec![ship]));
    assert_eq!(scope.get(&TOTAL_SPAWNS.key()).await, Ok(Some(1)));
    let fleet = space.state.fleet(player).await.unwrap();
    assert_eq!((fleet.ships, fleet.active), (vec![ship], Some(ship)));
}

pub async fn a_ship_of_another_program_is_read_with_defaults(store: Store) {
    let space = Space::of(&store).await;
    let ship = ShipId(Uuid::new_v4());
    space
        .change(move |tx| {
            tx.hset(&SHIP.key(ship), &"position".to_owned(), &"[1.5e11,0, 0]".to_owned())?;
            tx.hset(&SHIP.key(ship), &"paint".to_owned(), &"red".to_owned())
        })
        .await;
    let found = space.state.ship(&ship).await.unwrap().unwrap();
    assert_eq!(found.motion.position, Vector::new(1.5e11, 0.0, 0.0));
    assert_eq!((found.ship_class, found.system_id.clone()), (ShipClass::FastFrigate, SystemId::sol()));
    assert_eq!((found.fuel_capacity, found.tick, found.spawn_number), (30_000.0, None, 0));
    space.state.physics().control(ship, Controls::default()).await.unwrap();
    assert_eq!(space.hash(ship).await.get("paint").map(String::as_str), Some("red"), "fields of others stay");
    space.change(move |tx| tx.hset(&SHIP.key(ship), &"velocity".to_owned(), &"fast".to_owned())).await;
    let error = space.state.ship(&ship).await.unwrap_err().to_string();
    assert!(error.contains("velocity") && error.contains(&ship.to_string()), "{error}");
}

pub async fn controls_are_stored_and_removed(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let controls = Controls {
        rotation_input: Vector::new(-1.0, 0.5, 1.0),
        thrust_level: 0.75,
        attitude_hold: true,
        attitude_mode: AttitudeMode::Target,
        attitude_target: Some(Quaternion::new(0.5, 0.5, 0.5, 0.5)),
        attitude_target_id: Some("Earth".into()),
        attitude_target_type: Some(TargetType::Body),
    };
    space.state.physics().control(ship, controls.clone()).await.unwrap();
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().controls, controls);
    let hash = space.hash(ship).await;
    assert_eq!((hash["attitude_target_w"].as_str(), hash["thrust_level"].as_str()), ("0.5", "0.75"));
    space.state.physics().control(ship, Controls::default()).await.unwrap();
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().controls, Controls::default());
    assert!(!space.hash(ship).await.contains_key("attitude_target_id"));
}

pub async fn stations_and_gates_have_split_fields(store: Store) {
    let space = Space::of(&store).await;
    let (station, gate) = (StationId(Uuid::new_v4()), JumpgateId(Uuid::new_v4()));
    let physics = space.state.physics();
    let new = Station { position: Vector::new(1.0, 2.0, 3.5), ..Station::new(station, "Gateway", "Earth") };
    physics.spawn_station(new.clone()).await.unwrap();
    let new_gate = Jumpgate::new(gate, "Sol gate", "Jupiter");
    physics.spawn_jumpgate(new_gate.clone()).await.unwrap();
    let scope = space.state.scope();
    let hash: BTreeMap<_, _> = scope.hgetall(&STATION.key(station)).await.unwrap().into_iter().collect();
    for (field, text) in [("position_z", "3.5"), ("attitude_w", "1"), ("mass", "420000"), ("radius", "50")] {
        assert_eq!(hash[field], text, "{field}");
    }
    assert_eq!(hash["station_id"], station.to_string());
    let hash: BTreeMap<_, _> = scope.hgetall(&JUMPGATE.key(gate)).await.unwrap().into_iter().collect();
    assert_eq!((hash["mass"].as_str(), hash["radius"].as_str()), ("500000", "150"));
    assert_eq!(hash["jumpgate_id"], gate.to_string());
    assert_eq!(space.state.station(&station).await, Ok(Some(new)));
    assert_eq!(space.state.jumpgate(&gate).await, Ok(Some(new_gate)));
    let sol = SystemId::sol();
    assert_eq!(space.state.stations_in(&sol).await, Ok(vec![station]));
    assert_eq!(space.state.jumpgates_in(&sol).await, Ok(vec![gate]));
    assert_eq!(physics.remove_station(station).await, Ok(true));
    assert_eq!(physics.clear_jumpgates().await, Ok(1));
    assert_eq!(space.state.stations_in(&sol).await, Ok(vec![]));
    assert_eq!(space.state.jumpgates_in(&sol).await, Ok(vec![]));
}

pub async fn bodies_are_created_by_the_initializer(store: Store) {
    let space = Space::of(&store).await;
    let earth = Body {
        name: BodyName(name("Earth")),
        position: Vector::new(-2.627e10, 1.445e11, -1.038e4),
        velocity: Vector::new(-2.983e4, -5.220e3, 0.0),
        system_id: SystemId::sol(),
    };
    space.state.initializer().create_body(earth.clone()).await.unwrap();
    assert!(space.state.initializer().create_body(earth.clone()).await.is_err(), "it exists");
    assert_eq!(space.state.body(&earth.name).await, Ok(Some(earth.clone())));
    assert_eq!(space.state.bodies_in(&SystemId::sol()).await, Ok(vec![earth.name.clone()]));
    let hash = space.state.scope().hgetall(&BODY.key(&earth.name)).await.unwrap();
    assert_eq!(hash.len(), 3, "position, velocity and system: {hash:?}");
    assert_eq!(space.state.physics().remove_body(&earth.name).await, Ok(true));
    assert_eq!(space.state.physics().remove_body(&earth.name).await, Ok(false));
}

pub async fn a_ship_that_jumps_is_in_the_other_system(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let (sol, vega) = (SystemId::sol(), SystemId(name("vega")));
    let jump = MotionChange::jump(vega.clone(), Vector::new(9.0, 0.0, 0.0), Vector::ZERO);
    space.state.physics().move_ship(ship, jump).await.unwrap();
    assert_eq!(space.state.ships_in(&sol).await, Ok(vec![]));
    assert_eq!(space.state.ships_in(&vega).await, Ok(vec![ship]));
    space.step(&mut World::default()).await;
    let view = space.state.system(&vega).await.unwrap();
    assert_eq!(view.world.ships[&ship].motion.position.x, 10.0);
    assert!(space.state.system(&sol).await.unwrap().world.is_empty());
}

pub async fn stale_entries_are_left_out_and_removed_by_their_owner(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let (gone, moved) = (ShipId(Uuid::new_v4()), ShipId(Uuid::new_v4()));
    let index = SYSTEM_SHIPS.key(SystemId::sol());
    space
        .change(move |tx| {
            tx.hset(&SHIP.key(moved), &"system_id".to_owned(), &"vega".to_owned())?;
            tx.sadd_many(&SYSTEM_SHIPS.key(SystemId::sol()), [&gone, &moved])
        })
        .await;
    let sol = SystemId::sol();
    assert_eq!(space.state.api_gateway().ships_in(&sol).await, Ok(vec![ship]));
    assert_eq!(space.state.scope().scard(&index).await, Ok(3), "another service does not remove them");
    assert_eq!(space.state.physics().ships_in(&sol).await, Ok(vec![ship]));
    assert_eq!(space.state.scope().scard(&index).await, Ok(1));
}

pub async fn a_removed_ship_takes_everything_along(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let gateway = space.state.api_gateway();
    gateway.create_rule(player, ship, rules::rule("low-fuel")).await.unwrap();
    let engine = space.state.tick_engine();
    let text = |text: &str| text.to_owned();
    engine.begin_maneuver(ship, text("circularize"), text("{}"), text("burn"), text("active")).await.unwrap();
    assert_eq!(space.state.physics().remove_ship(ship).await, Ok(true));
    assert_eq!(space.state.physics().remove_ship(ship).await, Ok(false));
    assert_eq!(space.state.rules(ship).await, Ok(vec![]));
    assert_eq!(space.state.maneuver(ship).await, Ok(None));
    assert_eq!(space.state.fleet(player).await.unwrap().ships, []);
    assert_eq!(space.state.ships_in(&SystemId::sol()).await, Ok(vec![]));
    let rule =
        emberkeep_games::galaxy::RULE.key(ship, emberkeep_games::galaxy::RuleId::new("low-fuel").unwrap());
    assert_eq!(space.state.scope().exists(&rule).await, Ok(false));
}

pub async fn of_32_spawns_of_one_ship_one_succeeds(store: Store) {
    let space = Space::of(&store).await;
    let ship = ShipId(Uuid::new_v4());
    let spawns: Vec<_> = (0..32)
        .map(|_| {
            let physics = space.state.physics();
            tokio::spawn(async move {
                physics.spawn_ship(NewShip::new(ship, PlayerId(Uuid::new_v4()), "one")).await.is_ok()
            })
        })
        .collect();
    let mut spawned = 0;
    for spawn in spawns {
        spawned += usize::from(spawn.await.unwrap());
    }
    assert_eq!(spawned, 1);
    assert_eq!(space.state.scope().get(&TOTAL_SPAWNS.key()).await, Ok(Some(1)));
    assert_eq!(space.state.physics().clear_ships().await, Ok(1));
}
