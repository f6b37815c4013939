//! External services on the same Redis: a plain client implements the storage documents while ours runs.
//! Neither side loses data, and each reads what the other writes.

mod external_service;

use emberkeep_games::monsters::{
    DropTimerRequest, Error as MonsterError, MonsterId, Monsters, SkillId, SpawnRequest,
};
use emberkeep_games::reactors::{CreateRequest, Error as ReactorError, Outcome, ReactorId, Reactors, Spot};
use emberkeep_games::world::{CharacterId, Field, Tenant};
use emberkeep_hot::Store;
use emberkeep_hot_redis::RedisEngine;
use emberkeep_testkit::{RedisServer, redis};
use external_service::monsters::MonsterService;
use external_service::reactors::ReactorService;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

const FIELD: Field = Field { world: 0, channel: 1, map: 1, instance: Uuid::nil() };

/// A server, our store on it and a tenant.
struct Stage {
    server: RedisServer,
    store: Store,
    tenant: Tenant,
}

impl Stage {
    async fn set() -> Option<Stage> {
        let server = redis()?;
        let engine = RedisEngine::connect(&server.url()).await.expect("the server of the test is up");
        Some(Stage { server, store: Store::new(engine), tenant: Tenant(Uuid::new_v4()) })
    }

    fn monsters(&self) -> (Monsters, MonsterService) {
        (Monsters::new(self.store.clone()), MonsterService::new(self.server.client(), self.tenant))
    }

    fn reactors(&self) -> (Reactors, ReactorService) {
        (Reactors::new(self.store.clone()), ReactorService::new(self.server.client(), self.tenant))
    }
}

/// Acknowledged damage, by character.
type DamageByCharacter = HashMap<u32, u64>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hit_of_both_services_counts_once() {
    const HP: u64 = 60_000;
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.monsters();
    let id = theirs.spawn(HP);
    let external = tokio::task::spawn_blocking(move || {
        let (mut reported, mut kills, mut moves) = (DamageByCharacter::new(), 0, 0);
        for turn in 0_u32.. {
            let struck = theirs.damage(id, 1 + turn % 3, 7);
            *reported.entry(1 + turn % 3).or_default() += struck.actual as u64;
            kills += u32::from(struck.killed);
            if struck.actual == 0 {
                break;
            }
            moves += i64::from(turn % 4 == 0 && theirs.move_right(id));
        }
        (theirs, reported, kills, moves)
    });
    let hitters: Vec<_> = (0..8_u32)
        .map(|hitter| {
            let (ours, tenant) = (ours.clone(), stage.tenant);
            tokio::spawn(async move {
                let (mut reported, mut kills) = (DamageByCharacter::new(), 0);
                loop {
                    let who = CharacterId(100 + hitter);
                    match ours.damage(tenant, MonsterId(id as u32), who, 5).await {
                        Ok(hit) => {
                            *reported.entry(who.0).or_default() += u64::from(hit.actual);
                            kills += u32::from(hit.killed);
                        }
                        Err(MonsterError::AlreadyDead { .. }) => return (reported, kills),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    let (mut theirs, mut reported, mut kills, moves) = external.await.unwrap();
    assert!(reported.values().sum::<u64>() > 0 && moves > 0, "the other service never came through");
    for hitter in hitters {
        let (share, killed) = hitter.await.unwrap();
        reported.extend(share);
        kills += killed;
    }
    assert_eq!((reported.values().sum::<u64>(), kills), (HP, 1));

    // Each reads all of it, by whichever service it was written.
    let record = theirs.get(id).unwrap();
    let mut stored = DamageByCharacter::new();
    for entry in record["damageEntries"].as_array().unwrap() {
        let who = entry["characterId"].as_u64().unwrap() as u32;
        *stored.entry(who).or_default() += entry["damage"].as_u64().unwrap();
    }
    reported.retain(|_, damage| *damage > 0);
    assert_eq!(stored, reported);
    assert_eq!(record["x"].as_i64(), Some(-5 + moves), "a move to the right was lost");
    assert_eq!(record["spawnedBy"]["service"], "other", "a field of theirs was lost");
    let monster = ours.get(stage.tenant, MonsterId(id as u32)).await.unwrap();
    assert_eq!((monster.hp, monster.damage.iter().map(|entry| u64::from(entry.damage)).sum()), (0, HP));
}

/// The service reads our monsters and timers; after its script has hit one, only once our sweep has mended
/// what cjson makes of an empty list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_service_reads_our_monsters_also_after_its_own_script() {
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.monsters();
    let mut ids = Vec::new();
    for hp in 1..=100 {
        let request = SpawnRequest { region: "GMS".into(), ..SpawnRequest::new(FIELD, 100_100, hp) };
        let monster = ours.spawn(stage.tenant, request).await.unwrap();
        let timer = DropTimerRequest { period: Duration::from_secs(15), weapon_attack: 30 };
        ours.register_drop_timer(stage.tenant, monster.id, timer).await.unwrap();
        ids.push(monster.id);
    }
    for id in &ids {
        let id = u64::from(id.0);
        let (monster, timer) = (theirs.read(id).unwrap(), theirs.read_timer(id).unwrap());
        assert_eq!((u64::from(monster.unique_id), timer.unique_id), (id, monster.unique_id));
        assert_eq!((monster.tenant_id, monster.tenant_region), (timer.tenant_id, timer.tenant_region));
        assert_eq!(theirs.damage(id, 7, 1).actual, 1);
        assert!(
            theirs.read(id).unwrap_err().contains("invalid type: map"),
            "cjson wrote an empty list as one"
        );
    }
    assert!(ours.sweep().run(Duration::ZERO).await.unwrap().rewritten >= ids.len());
    for id in &ids {
        let monster = theirs.read(u64::from(id.0)).unwrap();
        assert_eq!((monster.damage_entries.len(), monster.status_effects.len()), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_services_spawn_and_remove_and_no_id_is_given_twice() {
    const EACH: usize = 300;
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.monsters();
    let external = tokio::task::spawn_blocking(move || {
        let mut living = HashSet::new();
        for turn in 0..EACH {
            assert!(living.insert(theirs.spawn(10)), "an id twice");
            if turn % 3 == 0 {
                let id = *living.iter().next().unwrap();
                assert!(living.remove(&id) && theirs.remove(id), "another caller removed {id}");
            }
        }
        (theirs, living)
    });
    let mut living = HashSet::new();
    for turn in 0..EACH {
        let monster = ours.spawn(stage.tenant, SpawnRequest::new(FIELD, 100_100, 10)).await.unwrap();
        assert!(living.insert(u64::from(monster.id.0)), "an id twice");
        if turn % 3 == 0 {
            let id = *living.iter().next().unwrap();
            living.remove(&id);
            assert!(
                ours.remove(stage.tenant, MonsterId(id as u32)).await.unwrap(),
                "another caller removed {id}"
            );
        }
    }
    let (mut theirs, their_living) = external.await.unwrap();
    assert_eq!(living.intersection(&their_living).count(), 0, "an id that lives twice");
    let mut all: Vec<u64> = living.union(&their_living).copied().collect();
    all.sort_unstable();
    assert_eq!(theirs.in_map(), all);
    let listed = ours.in_field(stage.tenant, FIELD).await.unwrap().living;
    assert_eq!(listed.iter().map(|monster| u64::from(monster.id.0)).collect::<Vec<_>>(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_other_monster_service_does_is_seen() {
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.monsters();
    let (first, second) = (theirs.spawn(10), theirs.spawn(10));
    // A record that is deleted without its index leaves no stale entry for us, and the next reader of theirs does not meet it
    // either.
    theirs.lose(first);
    let listed = ours.in_field(stage.tenant, FIELD).await.unwrap().living;
    assert_eq!(listed.iter().map(|monster| u64::from(monster.id.0)).collect::<Vec<_>>(), [second]);
    assert_eq!(theirs.in_map(), [second]);
    // Cooldowns, both ways.
    let (id, minute) = (MonsterId(second as u32), Duration::from_secs(60));
    theirs.start_cooldown(second, 1, 60_000);
    assert!(ours.is_cooling(stage.tenant, id, SkillId(1)).await.unwrap());
    ours.start_cooldown(stage.tenant, id, SkillId(2), minute).await.unwrap();
    assert!(theirs.is_cooling(second, 2));
    // Their marker is found by the sweep, and goes with the monster.
    ours.sweep().run(Duration::ZERO).await.unwrap();
    assert!(ours.remove(stage.tenant, id).await.unwrap());
    assert!(
        !theirs.is_cooling(second, 1) && !theirs.is_cooling(second, 2),
        "the next owner of the id inherits it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_reactor_services_see_each_others_reactors() {
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.reactors();
    let external = theirs.create(2_000, -7, 30, 60_000);
    let taken = ours.create(stage.tenant, CreateRequest::new(FIELD, 2_000, -7, 30)).await.unwrap_err();
    assert_eq!(taken, ReactorError::SpotTaken { id: ReactorId(external as u32) });
    let own = ours.create(stage.tenant, CreateRequest::new(FIELD, 2_000, -7, 31)).await.unwrap();
    assert_eq!(theirs.in_map(), [external, u64::from(own.id.0)]);
    assert_eq!(theirs.get(u64::from(own.id.0)).unwrap()["y"], 31);
    assert_eq!(ours.in_field(stage.tenant, FIELD).await.unwrap().living.len(), 2);
    // Theirs goes, and its spot cools down for us too.
    assert!(theirs.destroy(external));
    let cooling = ours.create(stage.tenant, CreateRequest::new(FIELD, 2_000, -7, 30)).await.unwrap_err();
    let longest = Duration::from_secs(60);
    let is_theirs = matches!(cooling, ReactorError::OnCooldown { remaining } if remaining <= longest);
    assert!(is_theirs, "{cooling:?}");
    let spot = Spot { classification: 2_000, x: -7, y: 30 };
    assert!(ours.clear_cooldown(stage.tenant, FIELD, spot).await.unwrap());
    assert!(!theirs.is_cooling(2_000, -7, 30));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_of_ours_and_turns_of_theirs_are_all_kept() {
    const REACTORS: i16 = 40;
    let Some(stage) = Stage::set().await else { return };
    let (ours, mut theirs) = stage.reactors();
    let ids: Vec<u64> = (0..REACTORS).map(|x| theirs.create(2_000, x, 0, 60_000)).collect();
    let external = {
        let ids = ids.clone();
        tokio::task::spawn_blocking(move || {
            // A reactor that is gone cannot be turned; one that is there keeps every turn.
            let turned: Vec<(u64, u64)> =
                ids.iter().map(|id| (*id, (0..5).filter(|_| theirs.turn(*id)).count() as u64)).collect();
            (theirs, turned)
        })
    };
    for id in &ids {
        let hit = ours.hit(stage.tenant, ReactorId(*id as u32), CharacterId(1), 0).await.unwrap();
        assert_eq!(hit.reactor.state, 1);
    }
    let (mut theirs, turned) = external.await.unwrap();
    for (id, turns) in turned {
        assert_eq!(turns, 5, "a turn of theirs never came through");
        let reactor = theirs.get(id).unwrap();
        assert_eq!(
            (reactor["state"].as_i64(), reactor["direction"].as_u64()),
            (Some(1), Some(turns)),
            "{id}"
        );
        assert_eq!(reactor["owner"]["guild"], 7, "a field of theirs was lost");
        // The last hit triggers, and they see that it is gone and that the spot cools down.
        let last = ours.hit(stage.tenant, ReactorId(id as u32), CharacterId(1), 0).await.unwrap();
        assert!(matches!(last.outcome, Outcome::Triggered { cooldown: Some(_) }), "{:?}", last.outcome);
        assert!(theirs.get(id).is_none() && theirs.is_cooling(2_000, last.reactor.x, 0));
    }
}
