//! Hits and kills, single and concurrent.

use super::*;
use emberkeep_games::monsters::{Error, Hit, SpawnRequest, rules};
use emberkeep_games::world::{CharacterId, REGION_BYTES_MAX};
use emberkeep_hot::Store;

pub async fn a_monster_without_health_is_not_spawned(store: Store) {
    let world = World::new(&store);
    let error = world.monsters.spawn(world.tenant, SpawnRequest::new(world.field, 1, 0)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "max hp", .. }), "{error:?}");
    let region = "r".repeat(REGION_BYTES_MAX + 1);
    let request = SpawnRequest { region, ..SpawnRequest::new(world.field, 1, 1) };
    let error = world.monsters.spawn(world.tenant, request).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "region", .. }), "{error:?}");
    assert_eq!(world.keys().await, [""; 0]);
}

pub async fn hits_at_the_same_time_are_all_counted_and_one_kills(store: Store) {
    const PLAYERS: u32 = 16;
    const HITS: u32 = 50;
    let world = World::new(&store);
    // The last hit finds less health than it would take.
    let hp = PLAYERS * HITS * 3 - 4;
    let id = world.spawn(hp).await.id;
    let mut players = Vec::new();
    for player in 1..=PLAYERS {
        let (monsters, tenant) = (world.monsters.clone(), world.tenant);
        players.push(tokio::spawn(async move {
            let (mut taken, mut kills) = (0, 0);
            for _ in 0..HITS {
                match monsters.damage(tenant, id, CharacterId(player), 3).await {
                    Ok(hit) => {
                        taken += u64::from(hit.actual);
                        kills += u32::from(hit.killed);
                    }
                    Err(error) => assert_eq!(error, Error::AlreadyDead { id }),
                }
            }
            (CharacterId(player), taken, kills)
        }));
    }
    let (mut counted, mut kills) = (Vec::new(), 0);
    for player in players {
        let (who, taken, killed) = player.await.unwrap();
        counted.push((who, taken));
        kills += killed;
    }
    let monster = world.get(id).await;
    let mut remembered = rules::totals(&monster.damage);
    remembered.sort();
    assert_eq!(remembered, counted);
    assert_eq!((monster.hp, kills), (0, 1));
    assert_eq!(counted.iter().map(|(_, taken)| taken).sum::<u64>(), u64::from(hp));
}

pub async fn a_hit_on_a_corpse_changes_nothing(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(5).await.id;
    let kill = world.monsters.damage(world.tenant, id, ALICE, 9).await;
    assert_eq!(kill, Ok(Hit { actual: 5, hp: 0, killed: true }));
    let corpse = world.get(id).await;
    for _ in 0..2 {
        let again = world.monsters.damage(world.tenant, id, BOB, 9).await;
        assert_eq!(again, Err(Error::AlreadyDead { id }));
    }
    assert_eq!(
        world.monsters.damage_over_time(world.tenant, id, BOB, 9).await,
        Err(Error::AlreadyDead { id })
    );
    assert_eq!(world.get(id).await, corpse);
    assert!(world.remove(id.0).await);
    assert_eq!(world.monsters.damage(world.tenant, id, BOB, 9).await, Err(Error::NotFound { id }));
}

pub async fn a_hit_of_nothing_is_refused(store: Store) {
    let world = World::new(&store);
    let (monsters, tenant, id) = (&world.monsters, world.tenant, world.spawn(5).await.id);
    for amount in [0, -1, i64::MIN] {
        let reported = [
            monsters.damage(tenant, id, ALICE, amount).await.unwrap_err(),
            monsters.damage_over_time(tenant, id, ALICE, amount).await.unwrap_err(),
            monsters.heal(tenant, id, amount).await.unwrap_err(),
            monsters.use_mp(tenant, id, amount).await.unwrap_err(),
        ];
        for error in reported {
            assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
            assert!(error.to_string().contains(&amount.to_string()), "{error}");
        }
    }
    assert!(world.get(id).await.damage.is_empty());
}

pub async fn damage_over_time_never_kills_and_is_credited(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let drained = world.monsters.damage_over_time(world.tenant, id, BOB, 7).await;
    assert_eq!(drained, Ok(Hit { actual: 7, hp: 3, killed: false }));
    let rest = world.monsters.damage_over_time(world.tenant, id, BOB, i64::MAX).await;
    assert_eq!(rest, Ok(Hit { actual: 2, hp: 1, killed: false }));
    let nothing = world.monsters.damage_over_time(world.tenant, id, BOB, 1).await;
    assert_eq!(nothing, Ok(Hit { actual: 0, hp: 1, killed: false }));
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(Some((BOB, 9))));
}

pub async fn the_leader_did_most_in_sum(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(1_000).await.id;
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(None));
    for (who, amount) in [(ALICE, 60), (BOB, 100), (ALICE, 50)] {
        world.monsters.damage(world.tenant, id, who, amount).await.unwrap();
    }
    assert_eq!(world.monsters.damage_leader(world.tenant, id).await, Ok(Some((ALICE, 110))));
}

pub async fn entries_stay_bounded_and_totals_exact(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(1_000_000).await.id;
    let mut players = Vec::new();
    for player in 1..=4 {
        let (monsters, tenant) = (world.monsters.clone(), world.tenant);
        players.push(tokio::spawn(async move {
            for _ in 0..150 {
                monsters.damage(tenant, id, CharacterId(player), i64::from(player)).await.unwrap();
            }
        }));
    }
    for player in players {
        player.await.unwrap();
    }
    let monster = world.get(id).await;
    assert!(monster.damage.len() <= rules::DAMAGE_ENTRIES_MAX, "{}", monster.damage.len());
    let mut totals = rules::totals(&monster.damage);
    totals.sort();
    assert_eq!(totals, [1, 2, 3, 4].map(|player| (CharacterId(player), u64::from(player) * 150)));
}
