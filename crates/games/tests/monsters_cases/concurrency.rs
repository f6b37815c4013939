//! Concurrent calls: related keys stay consistent.

use super::*;
use emberkeep_games::monsters::*;
use emberkeep_games::world::{CharacterId, Field};
use emberkeep_hot::Store;
use std::collections::BTreeSet;

const PLAYERS: u64 = 6;
const ACTS: usize = 60;
const MAPS: u32 = 3;

/// A seeded generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn is_fine<T>(outcome: Result<T>) {
    match outcome {
        Ok(_) | Err(Error::NotFound { .. } | Error::AlreadyDead { .. } | Error::NoDropTimer { .. }) => {}
        Err(error) => panic!("{error:?}"),
    }
}

impl World {
    fn map(&self, number: u64) -> Field {
        Field { map: 1 + (number as u32 % MAPS), ..self.field }
    }

    /// One action of a player that is independent of the others.
    async fn act(&self, dice: &mut Dice, who: CharacterId) {
        let (monsters, tenant) = (&self.monsters, self.tenant);
        let (id, field) = (MonsterId(FIRST + dice.below(12) as u32), self.map(dice.below(3)));
        match dice.below(16) {
            0..=2 => drop(self.spawn_in(field, 40).await),
            3..=6 => is_fine(monsters.damage(tenant, id, who, 7).await),
            7 => is_fine(monsters.remove(tenant, id).await),
            8 => is_fine(monsters.move_to_field(tenant, id, field, Position::default()).await),
            9 => {
                is_fine(monsters.start_cooldown(tenant, id, SkillId(dice.below(3) as u16), ms(60_000)).await)
            }
            10 => {
                let request = DropTimerRequest { period: ms(1), weapon_attack: 1 };
                is_fine(monsters.register_drop_timer(tenant, id, request).await);
            }
            11 => {
                let request = EffectRequest::new(who, rules::VENOM, 1, ms(1 + dice.below(50))).every(ms(1));
                is_fine(monsters.apply_effect(tenant, id, request).await);
            }
            12 => is_fine(monsters.run_due_effects(tenant, 10).await),
            13 => is_fine(monsters.due_drops(tenant, 10).await),
            14 => is_fine(monsters.record_drop_hit(tenant, id).await),
            _ => match dice.below(8) {
                0 => is_fine(monsters.destroy_in_field(tenant, field).await),
                1 => is_fine(monsters.clear_cooldowns(tenant, id).await),
                2 => is_fine(monsters.cancel_effects(tenant, id).await),
                _ => is_fine(monsters.in_field(tenant, field).await),
            },
        }
    }

    /// Checks that all keys are consistent.
    async fn audit(&self) {
        let mut living = BTreeSet::new();
        for id in (FIRST..FIRST + 400).map(MonsterId) {
            let Some(monster) = self.scope.get(&MONSTER.key(id)).await.unwrap() else {
                let leftovers = self.stored(&DROP_TIMER.key(id)).await.is_some()
                    || self.scope.exists(&MONSTER_COOLDOWNS.key(id)).await.unwrap();
                assert!(!leftovers, "{id} left something behind");
                assert_eq!((self.effects_due(id).await, self.drop_due(id).await), (None, None), "{id}");
                continue;
            };
            living.insert(id.0);
            let taken: u64 = monster.damage.iter().map(|entry| u64::from(entry.damage)).sum();
            assert_eq!(taken, u64::from(monster.max_hp - monster.hp), "{id} lost or won a hit");
            if monster.is_alive() {
                assert_eq!(self.effects_due(id).await, rules::next_due_ms(&monster), "{id}");
                let timer = self.monsters.drop_timer(self.tenant, id).await.unwrap();
                assert_eq!(self.drop_due(id).await, timer.as_ref().map(rules::next_drop_ms), "{id}");
                assert!(timer.is_none_or(|timer| timer.field.field() == monster.field()), "{id}");
            }
        }
        let mut indexed = Vec::new();
        for map in 0..3 {
            let field = self.map(map);
            let found = self.indexed(field).await;
            assert_eq!(self.listed_in(field).await, found);
            indexed.extend(found);
        }
        indexed.sort();
        assert_eq!(indexed, living.iter().copied().collect::<Vec<_>>());
        let free = self.free().await;
        let mut all: Vec<u32> = free.iter().chain(&living).copied().collect();
        all.sort();
        let counted = self.scope.get(&MONSTER_ID_NEXT.key()).await.unwrap().unwrap() as u32;
        assert_eq!(all, (FIRST..=counted).collect::<Vec<_>>(), "an id is lost, or there twice");
    }
}

pub async fn whatever_many_do_at_once_everything_stays_together(store: Store) {
    let world = World::new(&store);
    world.spawn(40).await;
    let seed = world.tenant.0.as_u64_pair().0;
    let mut players = Vec::new();
    for player in 1..=PLAYERS {
        let world = world.clone();
        players.push(tokio::spawn(async move {
            let mut dice = Dice(seed ^ player);
            for _ in 0..ACTS {
                world.act(&mut dice, CharacterId(player as u32)).await;
            }
        }));
    }
    for player in players {
        player.await.unwrap();
    }
    // The first monster is in none of the maps of the audit.
    world.monsters.destroy_in_field(world.tenant, world.field).await.unwrap();
    world.audit().await;
    assert!(world.monsters.teardown(world.tenant).await.is_ok());
    world.assert_torn_down().await;
}
