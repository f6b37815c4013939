//! The Redis users that `acl_file` prints for the services of Galaxy, on a real server: each service's operations work, and
//! Redis itself refuses what is another's.

use emberkeep_games::galaxy::{
    Body, BodyName, Controls, Error, GalaxyState, MotionChange, NewRule, NewShip, PlayerId, RuleMode, SHIP,
    ShipId, SocketRequest, StartRequest, SystemId, Vector, schema,
};
use emberkeep_hot::{self as hot, Store};
use emberkeep_hot_redis::{RedisEngine, acl_file};
use emberkeep_schema::{KeyLayout, Name};
use emberkeep_testkit::{RedisOptions, RedisServer, Reply, Resp, require};
use std::time::Duration;
use uuid::Uuid;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn with_services() -> RedisOptions {
    let (schema, layout) = (schema(), KeyLayout::single());
    let lines: String =
        schema.services().map(|service| acl_file::user_of_service(service, &schema, &layout)).collect();
    let lines = lines.replace("PASSWORD", "word");
    let default = RedisServer::options().acl("user default on nopass ~* &* +@all");
    lines.lines().filter(|line| !line.starts_with('#')).fold(default, |options, line| options.acl(line))
}

/// The state as the Redis user of a service sees it.
async fn state_of(server: &RedisServer, user: &str) -> GalaxyState {
    let url = server.url().replacen("://", &format!("://{user}:word@"), 1);
    GalaxyState::new(Store::new(RedisEngine::connect(&url).await.unwrap()))
}

fn rule() -> NewRule {
    NewRule {
        rule_id: "low-fuel".into(),
        name: "Low fuel".into(),
        enabled: true,
        mode: RuleMode::Once,
        priority: 1,
        trigger_json: r#"{"conditions":[{"field":"fuel","op":"<","value":1}],"logic":"AND"}"#.into(),
        actions_json: "[{}]".into(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_of_galaxy_have_the_rights_that_their_acl_gives() {
    let Some(server) = require(with_services().start()) else { return };
    let (physics, engine) = (state_of(&server, "physics").await, state_of(&server, "tick-engine").await);
    let (gateway, players) = (state_of(&server, "api-gateway").await, state_of(&server, "players").await);
    let galaxy = state_of(&server, "galaxy").await;
    let (ship, player) = (ShipId(Uuid::new_v4()), PlayerId(Uuid::new_v4()));

    let run = engine.tick_engine().start(StartRequest::new("engine")).await.unwrap();
    let body = Body {
        name: BodyName(name("Earth")),
        position: Vector::ZERO,
        velocity: Vector::ZERO,
        system_id: SystemId::sol(),
    };
    galaxy.initializer().create_body(body).await.unwrap();
    physics.physics().spawn_ship(NewShip::new(ship, player, "Roci")).await.unwrap();
    physics.physics().control(ship, Controls::default()).await.unwrap();
    physics.physics().move_ship(ship, MotionChange::fuel(5.0)).await.unwrap();

    // Physics stages what the tick engine began, and the tick engine switches to it.
    let mut world = run.load().await.unwrap();
    let mut step = run.begin(Duration::from_millis(100)).await.unwrap();
    step.apply(&mut world);
    let staged = physics.physics().stage(run.epoch(), &step, &world).await.unwrap();
    run.switch(&staged.head).await.unwrap();
    assert_eq!(gateway.tick().await.unwrap().world.ships[&ship].motion.fuel, 5.0);
    assert_eq!(gateway.clock().await.unwrap().tick, 1);

    gateway.api_gateway().rename_ship(player, ship, "Tachi".into()).await.unwrap();
    gateway.api_gateway().create_rule(player, ship, rule()).await.unwrap();
    let socket = SocketRequest { connection: name("c1"), player_id: player };
    gateway.api_gateway().connect(&name("gw"), socket).await.unwrap();
    gateway.api_gateway().set_registration_open(true).await.unwrap();
    assert_eq!(engine.tick_engine().enable_rule(ship, "low-fuel", false).await, Ok(true));
    engine.tick_engine().pause().await.unwrap();
    engine.tick_engine().resume().await.unwrap();
    assert_eq!(players.players().login(player).await.unwrap().active, Some(ship));
    assert_eq!(players.is_online(player).await, Ok(true));

    refused_by_the_server(&server, ship, player);
    operations_without_rights(&server, ship, player).await;

    assert_eq!(players.players().delete_player(player).await.unwrap().ships, 1);
    assert_eq!(physics.physics().clear_bodies().await, Ok(2), "Earth, and Ceres of a plain command");
    run.reset(None).await.unwrap();
    assert_eq!(engine.era().await.unwrap().generation, 2);
}

/// Plain commands, without any library.
fn refused_by_the_server(server: &RedisServer, ship: ShipId, player: PlayerId) {
    let ship = SHIP.key(ship).to_text(&KeyLayout::single(), &emberkeep_games::galaxy::Galaxy);
    let fleet = format!("player:{player}:ships");
    let commands: [(&str, &[&str], bool); 12] = [
        ("physics", &["SET", "game:tick", "7"], false),
        ("physics", &["HSET", &ship, "fuel", "7"], true),
        ("players", &["HSET", "station:x", "mass", "7"], false),
        ("players", &["SADD", &fleet, "x"], true),
        ("players", &["SET", "game:registration_open", "false"], false),
        ("api-gateway", &["SET", "game:tick_rate", "7"], false),
        ("api-gateway", &["SADD", &fleet, "x"], false),
        ("api-gateway", &["GET", "game:time"], true),
        ("galaxy", &["SET", "game:paused", "true"], false),
        ("galaxy", &["HSET", &ship, "fuel", "7"], false),
        ("galaxy", &["HSET", "body:Ceres", "system_id", "sol"], true),
        ("api-gateway", &["FLUSHALL"], false),
    ];
    for (user, command, allowed) in commands {
        let mut client = Resp::connect(server.address()).unwrap();
        assert!(client.call(&["AUTH", user, "word"]).is_ok(), "{user} is a user");
        let reply = client.call(command);
        assert_eq!(!matches!(reply, Reply::Error(_)), allowed, "{user} {command:?}: {reply:?}");
    }
}

/// Handles that act as another service than the user of their store is.
async fn operations_without_rights(server: &RedisServer, ship: ShipId, player: PlayerId) {
    let (gateway, galaxy) = (state_of(server, "api-gateway").await, state_of(server, "galaxy").await);
    let physics = state_of(server, "physics").await;
    let denied = [
        gateway.physics().remove_ship(ship).await.map(drop),
        gateway.tick_engine().pause().await,
        gateway.players().switch_ship(player, ship).await,
        galaxy.physics().move_ship(ship, MotionChange::fuel(1.0)).await,
        physics.api_gateway().set_registration_open(false).await,
        physics.tick_engine().pause().await,
    ];
    for result in denied {
        assert!(matches!(result, Err(Error::Store(hot::Error::Denied { .. }))), "{result:?}");
    }
}
