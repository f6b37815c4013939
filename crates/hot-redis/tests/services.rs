//! The users that `acl_file` prints for the services of a schema, on real servers: each does its work through the
//! engine, and the server itself refuses what is not its own.

mod fault_harness;

use emberkeep_hot::pubsub::Event;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_hot_redis::acl_file;
use emberkeep_schema::{
    Channel, Hash, Id, KeyLayout, Log, Newest, Number, Schema, Service, Set, Text, Utf8, family, schema,
    service,
};
use emberkeep_testkit::{Flavor, RedisCluster, RedisOptions, RedisServer, Reply, Resp, report, require};
use fault_harness::*;
use std::time::Duration;

family! {
    /// A ship.
    pub SHIP = "ship:{arena}:{id}" {
        kind: Hash<Utf8, Number<i64>>, partition: Arena, parts: (id: u32), ttl: persistent, owner: "physics",
        readers: ["players"]
    }
}
family! {
    /// The fuel of a ship.
    pub FUEL = "fuel:{arena}:{id}" {
        kind: Text<Number<i64>>, partition: Arena, parts: (id: u32), ttl: persistent, owner: "physics",
        readers: ["players"]
    }
}
family! {
    /// What ships did.
    pub DEEDS = "log:deeds:{arena}" {
        kind: Log<Utf8, Newest<1_000>>, partition: Arena, parts: (), ttl: persistent, owner: "physics",
        readers: ["players"]
    }
}
family! {
    /// All ships.
    pub FLEET = "fleet:{arena}" {
        kind: Set<Id<u32>>, partition: Arena, parts: (), ttl: persistent, owner: "players"
    }
}
family! {
    /// Fuel that was counted.
    pub COUNTED = "counted:{arena}" {
        kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "players"
    }
}
family! {
    /// Calls of clients.
    pub CALLS = "calls:{arena}" {
        kind: Text<Number<i64>>, partition: Arena, parts: (), ttl: persistent, owner: "gateway"
    }
}
family! {
    /// What clients are sent.
    pub RADIO = "radio:{arena}" {
        kind: Channel<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "gateway", readers: ["players"]
    }
}
service! {
    /// Moves ships.
    pub PHYSICS = "physics" {
        /// Adds a ship to the fleet.
        SPAWN = "spawn": [FLEET],
    }
}
service! {
    /// Keeps the fleet.
    pub PLAYERS = "players" {}
}
service! {
    /// Where clients connect.
    pub GATEWAY = "gateway" {
        /// Gives a ship another label.
        RENAME = "rename": [SHIP["label"]],
    }
}

fn declared() -> Schema {
    let families = schema![SHIP, FUEL, DEEDS, FLEET, COUNTED, CALLS, RADIO];
    let services = families.and_then(|schema| schema.with_services(&[&PHYSICS, &PLAYERS, &GATEWAY]));
    services.expect("the services fit")
}

/// A server with a user for each service, from the lines that are printed.
fn with_services(layout: &KeyLayout) -> RedisOptions {
    let schema = declared();
    let lines: String =
        schema.services().map(|service| acl_file::user_of_service(service, &schema, layout)).collect();
    let lines = lines.replace("PASSWORD", "word");
    let default = RedisServer::options().acl("user default on nopass ~* &* +@all");
    lines.lines().filter(|line| !line.starts_with('#')).fold(default, |options, line| options.acl(line))
}

/// Where the services run.
struct Place {
    name: String,
    url: String,
    nodes: Vec<Resp>,
    layout: KeyLayout,
}

impl Place {
    async fn store(&self, service: &Service) -> Store {
        store_on(&self.url.replacen("://", &format!("://{}:word@", service.name), 1)).await
    }

    async fn scope(&self, service: &'static Service) -> Scope<Arena> {
        self.store(service).await.acting_as(service).scope(arena("a"))
    }

    /// The answer to a plain command of a user, from the node that has the arena.
    fn plain(&self, nodes: &[Address], service: &Service, command: &[&str]) -> Reply {
        for node in nodes {
            let mut client = Resp::connect(&node.0).expect("the server is there");
            assert!(client.call(&["AUTH", service.name, "word"]).is_ok(), "{} is a user", service.name);
            let reply = client.call(command);
            if !reply.is_error("MOVED") {
                return reply;
            }
        }
        panic!("no node has the arena");
    }
}

/// The address of a node.
struct Address(String);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_on_one_server() {
    for flavor in [Flavor::Redis, Flavor::Valkey] {
        let layout = KeyLayout::single();
        let Some(server) = require(with_services(&layout).flavor(flavor).start()) else { continue };
        let place =
            Place { name: format!("{flavor:?}"), url: server.url(), nodes: vec![server.client()], layout };
        run(place, vec![Address(server.address())]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_on_a_cluster() {
    let layout = KeyLayout::cluster();
    let Some(cluster) = require(RedisCluster::start_with(&with_services(&layout), 3, 0)) else { return };
    let nodes = cluster.nodes().iter().map(RedisServer::client).collect();
    let place = Place { name: "a Cluster".into(), url: cluster.url(), nodes, layout };
    run(place, cluster.nodes().iter().map(|node| Address(node.address())).collect()).await;
}

async fn run(mut place: Place, nodes: Vec<Address>) {
    let conflicts = every_service_does_its_work(&place).await;
    for node in &mut place.nodes {
        let log = node.call(&["ACL", "LOG"]);
        // Newer clients name themselves where they may, and go on where they may not.
        let is_of_client = |entry: &Reply| {
            let parts = entry.items().iter();
            parts.filter(|part| matches!(part, Reply::Bulk(_))).any(|part| part.text() == "client|setinfo")
        };
        let refused = log.items().iter().filter(|entry| !is_of_client(entry)).count();
        assert_eq!(refused, 0, "{}: {log:?}", place.name);
    }
    let refused = plain_commands(&place, &nodes);
    let denied = writes_without_a_service(&place).await;
    report!(
        "services on {}: {conflicts} conflicts on keys that are only read, {refused} plain commands and {denied} transactions refused",
        place.name
    );
}

/// What each service may do works through the engine, reads that are validated without a right to write included.
async fn every_service_does_its_work(place: &Place) -> u64 {
    let physics = place.scope(&PHYSICS).await;
    let spawning = physics.clone().for_operation(&SPAWN);
    let spawn = spawning.transact(|tx| {
        tx.put(&FUEL.key(1), &100)?;
        tx.hset(&SHIP.key(1), &"fuel".to_owned(), &100)?;
        tx.append(&DEEDS.key(), &"spawned".to_owned())?;
        tx.sadd(&FLEET.key(), &1)
    });
    spawn.await.expect("a granted operation");
    let players = place.scope(&PLAYERS).await;
    let gateway = place.scope(&GATEWAY).await;
    reads(&players).await;
    let rename = gateway.clone().for_operation(&RENAME);
    rename.transact(|tx| tx.hset(&SHIP.key(1), &"label".to_owned(), &7)).await.expect("a granted field");
    let mut radio = players.subscribe(&RADIO.key()).await.expect("a channel that it may read");
    let call = gateway.transact(|tx| {
        tx.incr_by(&CALLS.key(), 1)?;
        tx.publish(&RADIO.key(), &"hello".to_owned())
    });
    call.await.expect("its own families");
    let heard = tokio::time::timeout(Duration::from_secs(10), radio.next()).await.expect("it comes");
    assert!(matches!(heard, Some(Event::Message { .. })), "{heard:?}");
    race(place, &physics, &players).await
}

/// Everything that names it as a reader.
async fn reads(players: &Scope<Arena>) {
    let body = |tx: &mut Tx<'_, Arena>| {
        let fields = tx.hgetall(&SHIP.key(1))?;
        let (deeds, fuel) = (tx.log_after(&DEEDS.key(), 0, 10)?, tx.get(&FUEL.key(1))?);
        tx.put(&COUNTED.key(), &fuel.unwrap_or_default())?;
        Ok::<_, Error>((fields.len(), deeds.entries.len(), tx.smembers(&FLEET.key())?))
    };
    assert_eq!(players.transact(body).await.expect("reads and a write"), (1, 1, vec![1]));
    assert_eq!(players.read(|tx| tx.get(&FUEL.key(1))).await, Ok(Some(100)));
    assert_eq!(players.get(&FUEL.key(1)).await, Ok(Some(100)));
    let many: Vec<_> = (1..400).map(|id| FUEL.key(id)).collect();
    assert_eq!(players.get_many(&many).await.map(|found| found.iter().flatten().count()), Ok(1));
    assert_eq!(players.hgetall(&SHIP.key(1)).await, Ok(vec![("fuel".to_owned(), 100)]));
    assert_eq!(players.log_last(&DEEDS.key()).await.map(|last| last.sequence), Ok(1));
}

/// One service changes what another one only reads: whatever that one commits was true at that moment.
async fn race(place: &Place, physics: &Scope<Arena>, players: &Scope<Arena>) -> u64 {
    let burn = tokio::spawn({
        let physics = physics.clone();
        async move {
            for _ in 0..100 {
                let burn = physics.transact(|tx| {
                    let fuel = tx.get(&FUEL.key(1))?.unwrap_or_default() - 1;
                    tx.put(&FUEL.key(1), &fuel)?;
                    tx.hset(&SHIP.key(1), &"fuel".to_owned(), &fuel)
                });
                burn.await.expect("its own families");
            }
        }
    });
    while !burn.is_finished() {
        let counted = players.transact(|tx| {
            let fuel = tx.get(&FUEL.key(1))?;
            let same = tx.hget(&SHIP.key(1), &"fuel".to_owned())?;
            tx.put(&COUNTED.key(), &fuel.unwrap_or_default())?;
            Ok::<_, Error>((fuel, same))
        });
        let (fuel, same) = counted.await.expect("keys that it may read");
        assert_eq!(fuel, same, "on {}", place.name);
    }
    burn.await.expect("the task ends");
    assert_eq!(players.get(&FUEL.key(1)).await, Ok(Some(0)));
    players.store().stats().expect("outside of transactions").conflicts
}

/// What the server refuses and allows by plain commands, without any library. Returns how many it refused.
fn plain_commands(place: &Place, nodes: &[Address]) -> usize {
    let here = arena("a");
    let ship = SHIP.key(1).to_text(&place.layout, &here);
    let (fuel, fleet) =
        (FUEL.key(1).to_text(&place.layout, &here), FLEET.key().to_text(&place.layout, &here));
    let (calls, counted) =
        (CALLS.key().to_text(&place.layout, &here), COUNTED.key().to_text(&place.layout, &here));
    let (deeds, radio) =
        (DEEDS.key().to_text(&place.layout, &here), RADIO.key().to_text(&place.layout, &here));
    let script = "return redis.call('SET', KEYS[1], '7')";
    let refused: [(&Service, &[&str]); 13] = [
        (&PLAYERS, &["SET", &fuel, "7"]),
        (&PLAYERS, &["DEL", &ship]),
        (&PLAYERS, &["HSET", &ship, "fuel", "7"]),
        (&PLAYERS, &["PEXPIREAT", &fuel, "1"]),
        (&PLAYERS, &["RPUSH", &deeds, "7"]),
        (&PLAYERS, &["GET", &calls]),
        (&PLAYERS, &["EVAL", script, "1", &fuel]),
        (&PLAYERS, &["FLUSHALL"]),
        (&PHYSICS, &["GET", &counted]),
        (&PHYSICS, &["PUBLISH", &radio, "7"]),
        (&GATEWAY, &["GET", &fuel]),
        (&GATEWAY, &["SADD", &fleet, "7"]),
        (&GATEWAY, &["EVAL", script, "1", &counted]),
    ];
    for (service, command) in refused {
        let reply = place.plain(nodes, service, command);
        assert!(matches!(reply, Reply::Error(_)), "{}: {} {command:?}: {reply:?}", place.name, service.name);
    }
    let allowed: [(&Service, &[&str]); 7] = [
        (&PLAYERS, &["HGETALL", &ship]),
        (&PLAYERS, &["SREM", &fleet, "7"]),
        (&PLAYERS, &["EVAL", script, "1", &counted]),
        (&PHYSICS, &["SADD", &fleet, "1"]),
        (&PHYSICS, &["SET", &fuel, "0"]),
        (&GATEWAY, &["HSET", &ship, "label", "8"]),
        (&GATEWAY, &["PUBLISH", &radio, "hello"]),
    ];
    for (service, command) in allowed {
        let reply = place.plain(nodes, service, command);
        assert!(!matches!(reply, Reply::Error(_)), "{}: {} {command:?}: {reply:?}", place.name, service.name);
    }
    refused.len()
}

/// A transaction that writes one thing.
type Verb = fn(&mut Tx<'_, Arena>) -> Result<(), Error>;

/// A program that does not say which service it is has the rights of its user all the same. The server refuses its
/// transactions as a whole, whatever they wrote before. Returns how many were refused.
async fn writes_without_a_service(place: &Place) -> usize {
    let players = place.store(&PLAYERS).await.scope(arena("a"));
    let verbs: [Verb; 6] = [
        |tx| tx.put(&FUEL.key(1), &55),
        |tx| {
            let fuel = tx.get(&FUEL.key(1))?.unwrap_or_default();
            tx.put(&FUEL.key(1), &(fuel + 1))
        },
        |tx| tx.del(&FUEL.key(1)),
        |tx| tx.append(&DEEDS.key(), &"forged".to_owned()),
        |tx| tx.hset(&SHIP.key(1), &"fuel".to_owned(), &55),
        |tx| tx.incr_by(&CALLS.key(), 1),
    ];
    let mut denied = 0;
    for verb in verbs {
        // Whatever commands are known to be allowed by now.
        let allowed = players.transact(|tx| {
            tx.sadd(&FLEET.key(), &2)?;
            tx.srem(&FLEET.key(), &2)?;
            tx.put(&COUNTED.key(), &1)?;
            tx.incr_by(&COUNTED.key(), 1)
        });
        allowed.await.expect("its own families");
        let refused = players.transact(move |tx| {
            tx.sadd(&FLEET.key(), &77)?;
            verb(tx)
        });
        let error = refused.await.expect_err("a family of another service");
        assert!(matches!(error, Error::Denied { .. }), "{}: {error}", place.name);
        denied += 1;
        let refused = players.transact(verb).await.expect_err("a family of another service");
        assert!(matches!(refused, Error::Denied { .. }), "{}: {refused}", place.name);
        denied += 1;
    }
    assert_eq!(players.smembers(&FLEET.key()).await, Ok(vec![1]), "nothing is half-written");
    assert_eq!(players.get(&FUEL.key(1)).await, Ok(Some(0)));
    denied
}
