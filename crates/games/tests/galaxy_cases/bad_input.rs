//! What is refused, with which error.

use super::*;
use emberkeep_games::galaxy::{
    AttitudeMode, Controls, Error, MotionChange, NewRule, RuleMode, ShipClass, Station, StationId, TargetType,
};

fn invalid<T: std::fmt::Debug>(result: Result<T, Error>, what: &'static str) {
    match result {
        Err(Error::Invalid { what: found, .. }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    }
}

pub async fn unknown_words_are_refused(_: Store) {
    invalid("sideways".parse::<AttitudeMode>(), "attitude mode");
    invalid("planet".parse::<TargetType>(), "attitude target type");
    invalid("shuttle".parse::<ShipClass>(), "ship class");
    invalid("twice".parse::<RuleMode>(), "rule mode");
}

pub async fn controls_out_of_range_are_refused(store: Store) {
    let space = Space::of(&store).await;
    let (ship, _) = space.spawn(0.0).await;
    let physics = space.state.physics();
    let control = |controls| physics.control(ship, controls);
    let turned = |x| Controls { rotation_input: Vector::new(x, 0.0, 0.0), ..Controls::default() };
    invalid(control(turned(1.01)).await, "rotation input");
    invalid(control(turned(f64::NAN)).await, "rotation input");
    for thrust_level in [-0.1, 1.1, f64::NAN] {
        invalid(control(Controls { thrust_level, ..Controls::default() }).await, "thrust level");
    }
    let aimless = Controls { attitude_mode: AttitudeMode::Target, ..Controls::default() };
    invalid(control(aimless).await, "attitude mode");
    let missing = physics.control(ShipId(Uuid::new_v4()), Controls::default()).await;
    assert!(matches!(missing, Err(Error::NotFound { what: "ship", .. })));
    assert_eq!(space.state.ship(&ship).await.unwrap().unwrap().controls, Controls::default());
}

pub async fn entities_that_cannot_be_are_refused(store: Store) {
    let space = Space::of(&store).await;
    let physics = space.state.physics();
    let new = || NewShip::new(ShipId(Uuid::new_v4()), PlayerId(Uuid::new_v4()), "ship");
    let mut ship = new();
    ship.motion.fuel = 30_001.0;
    invalid(physics.spawn_ship(ship).await, "fuel");
    let mut ship = new();
    ship.motion.velocity.y = f64::INFINITY;
    invalid(physics.spawn_ship(ship).await, "velocity");
    invalid(physics.spawn_ship(NewShip { fuel_capacity: Some(0.0), ..new() }).await, "fuel capacity");
    invalid(physics.spawn_ship(NewShip { name: String::new(), ..new() }).await, "ship name");
    let station = Station::new(StationId(Uuid::new_v4()), "station", "Earth");
    invalid(physics.spawn_station(Station { mass: f64::NAN, ..station.clone() }).await, "mass");
    invalid(physics.spawn_station(Station { radius: -1.0, ..station }).await, "radius");
    let (ship, _) = space.spawn(0.0).await;
    invalid(physics.move_ship(ship, MotionChange::fuel(30_001.0)).await, "fuel");
    let nowhere = MotionChange::teleport(Vector::new(f64::NAN, 0.0, 0.0), Vector::ZERO);
    invalid(physics.move_ship(ship, nowhere).await, "position");
    let mut world = World::default();
    let mut step = space.run.begin(STEP).await.unwrap();
    step.apply(&mut world);
    world.ships.get_mut(&ship).unwrap().motion.position.x = f64::NAN;
    invalid(space.run.commit(&mut step, &mut world).await, "position");
    assert_eq!(space.state.head().await.unwrap().tick, 0);
}

pub async fn rates_and_scales_out_of_range_are_refused(store: Store) {
    let space = Space::of(&store).await;
    let engine = space.state.tick_engine();
    for rate in [0.0, -1.0, 0.05, 100.5, f64::NAN, f64::INFINITY] {
        let change = ClockChange { time_scale: Some(rate), paused: Some(true), ..ClockChange::default() };
        invalid(engine.set_clock(change).await, "time scale");
        let change = ClockChange { tick_rate: Some(rate), ..ClockChange::default() };
        invalid(engine.set_clock(change).await, "tick rate");
    }
    assert!(!space.state.clock().await.unwrap().paused, "all or none");
    invalid(space.run.begin(Duration::from_secs(3_601)).await, "step");
}

pub async fn rules_that_cannot_be_are_refused(store: Store) {
    let space = Space::of(&store).await;
    let (ship, player) = space.spawn(0.0).await;
    let (_, stranger) = space.spawn(0.0).await;
    let gateway = space.state.api_gateway();
    let create = |rule: NewRule| gateway.create_rule(player, ship, rule);
    invalid(create(rules::rule("rules")).await, "rule id");
    invalid(create(rules::rule("a:b")).await, "rule id");
    invalid(create(NewRule { priority: 100, ..rules::rule("r") }).await, "priority");
    invalid(create(NewRule { name: "x".repeat(65), ..rules::rule("r") }).await, "rule name");
    let one = r#"{"field":"fuel","op":"<","value":1}"#;
    let six = format!(r#"{{"conditions":[{}],"logic":"AND"}}"#, [one; 6].join(","));
    invalid(create(NewRule { trigger_json: six, ..rules::rule("r") }).await, "trigger");
    let or = format!(r#"{{"conditions":[{one}],"logic":"OR"}}"#);
    invalid(create(NewRule { trigger_json: or, ..rules::rule("r") }).await, "trigger");
    let actions_json = format!("[{}]", ["{}"; 6].join(","));
    invalid(create(NewRule { actions_json, ..rules::rule("r") }).await, "actions");
    let refused = gateway.create_rule(stranger, ship, rules::rule("r")).await;
    assert_eq!(refused, Err(Error::NotOwner { ship, player: stranger }));
    let refused = gateway.delete_rule(stranger, ship, "r").await;
    assert_eq!(refused, Err(Error::NotOwner { ship, player: stranger }));
    assert_eq!(space.state.rules(ship).await, Ok(vec![]));
}
