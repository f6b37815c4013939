//! Hits and removals, alone and many at once.

use super::World;
use emberkeep_games::monsters::{Error, Hit, MONSTER_ID_FREE, MonsterId, SpawnRequest, rules};
use emberkeep_games::world::{CharacterId, Tenant};
use emberkeep_hot::Store;
use uuid::Uuid;

pub async fn a_monster_without_health_is_not_spawned(store: Store) {
    let world = World::new(&store);
    let error = world.monsters.spawn(world.tenant, SpawnRequest::new(world.field, 1, 0)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "max hp", .. }), "{error:?}");
    assert!(world.listed().await.is_empty());
}

pub async fn a_monster_of_another_tenant_is_not_found(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(10).await.id;
    let other = Tenant(Uuid::new_v4());
    assert_eq!(world.monsters.damage(other, id, CharacterId(1), 1).await, Ok(Hit::NotFound));
    assert_eq!(world.monsters.get(other, id).await, Ok(None));
    assert_eq!(world.monsters.remove(other, id).await, Ok(false));
    assert_eq!(world.get(id).await.hp, 10);
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
                if let Hit::Struck { actual, killed, .. } =
                    monsters.damage(tenant, id, CharacterId(player), 3).await.unwrap()
                {
                    taken += u64::from(actual);
                    kills += u32::from(killed);
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
    let kill = world.monsters.damage(world.tenant, id, CharacterId(1), 9).await;
    assert_eq!(kill, Ok(Hit::Struck { actual: 5, hp: 0, killed: true }));
    let corpse = world.get(id).await;
    assert_eq!(world.monsters.damage(world.tenant, id, CharacterId(2), 9).await, Ok(Hit::AlreadyDead));
    assert_eq!(world.get(id).await, corpse);
    assert!(world.remove(id.0).await);
    assert_eq!(world.monsters.damage(world.tenant, id, CharacterId(2), 9).await, Ok(Hit::NotFound));
}

pub async fn a_hit_of_nothing_is_refused(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(5).await.id;
    for amount in [0, -1, i64::MIN] {
        let error = world.monsters.damage(world.tenant, id, CharacterId(1), amount).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { what: "damage", .. }), "{error:?}");
        assert!(error.to_string().contains(&amount.to_string()), "{error}");
    }
    assert!(world.get(id).await.damage.is_empty());
}

pub async fn of_many_removals_one_wins_and_the_id_is_released_once(store: Store) {
    let world = World::new(&store);
    let id = world.spawn(5).await.id;
    let mut removals = Vec::new();
    for _ in 0..16 {
        let (monsters, tenant) = (world.monsters.clone(), world.tenant);
        removals.push(tokio::spawn(async move { monsters.remove(tenant, id).await.unwrap() }));
    }
    let mut wins = 0;
    for removal in removals {
        wins += u32::from(removal.await.unwrap());
    }
    assert_eq!(wins, 1);
    let free = world.scope.transact(|tx| tx.lrange(&MONSTER_ID_FREE.key(), 0, -1)).await;
    assert_eq!(free, Ok(vec![MonsterId(id.0)]));
    assert!(world.listed().await.is_empty());
}
