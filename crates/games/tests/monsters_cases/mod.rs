//! What monsters promise, on any store: each case takes a store that others may be using, and a tenant of its own.

#![allow(unreachable_pub)] // Cases are `pub` so that every runner can name them.

mod combat;
mod field;
mod foreign;
mod ids;

pub use combat::*;
pub use field::*;
pub use foreign::*;
pub use ids::*;

use bytes::Bytes;
use emberkeep_games::monsters::{Monster, MonsterId, Monsters, SpawnRequest};
use emberkeep_games::world::{Field, Tenant};
use emberkeep_hot::command::{Expiry, Read, Reply, Write};
use emberkeep_hot::{Error, Scope, Store};
use emberkeep_schema::{Family, Key};
use uuid::Uuid;

/// Runs a macro on the names of all cases.
#[macro_export]
macro_rules! for_each_case {
    ($run:ident) => {
        $run! {
            a_spawned_monster_is_in_its_record_and_in_its_field
            a_monster_without_health_is_not_spawned
            a_monster_of_another_tenant_is_not_found
            ids_are_counted_from_the_start_of_the_range
            the_id_that_was_released_last_is_handed_out_first
            spawns_at_the_same_time_get_different_ids
            a_lost_counter_hands_out_no_living_id
            a_counter_outside_of_the_range_re_enters_it
            a_counter_that_is_no_number_is_an_error_that_names_its_key
            rubbish_in_the_free_list_is_dropped
            hits_at_the_same_time_are_all_counted_and_one_kills
            a_hit_on_a_corpse_changes_nothing
            a_hit_of_nothing_is_refused
            of_many_removals_one_wins_and_the_id_is_released_once
            a_field_lists_its_own_monsters_only
            a_ghost_is_not_listed_and_is_pruned
            an_index_entry_of_a_monster_elsewhere_is_pruned
            what_other_services_wrote_survives_a_hit
            a_record_that_is_no_monster_is_an_error_and_stays
        }
    };
}

/// A tenant nobody else uses.
pub struct World {
    pub monsters: Monsters,
    pub scope: Scope<Tenant>,
    pub tenant: Tenant,
    pub field: Field,
}

impl World {
    pub fn new(store: &Store) -> World {
        let tenant = Tenant(Uuid::new_v4());
        let field = Field { world: 0, channel: 1, map: 100_000_000, instance: Uuid::nil() };
        World { monsters: Monsters::new(store.clone()), scope: store.scope(tenant), tenant, field }
    }

    pub async fn spawn(&self, hp: u32) -> Monster {
        self.monsters.spawn(self.tenant, SpawnRequest::new(self.field, 100_100, hp)).await.unwrap()
    }

    pub async fn spawn_id(&self) -> u32 {
        self.spawn(10).await.id.0
    }

    pub async fn get(&self, id: MonsterId) -> Monster {
        self.monsters.get(self.tenant, id).await.unwrap().expect("the monster is there")
    }

    pub async fn remove(&self, id: u32) -> bool {
        self.monsters.remove(self.tenant, MonsterId(id)).await.unwrap()
    }

    /// Ids that the field lists, in order.
    pub async fn listed(&self) -> Vec<u32> {
        let mut ids: Vec<u32> =
            self.monsters.in_field(self.tenant, self.field).await.unwrap().iter().map(|m| m.id.0).collect();
        ids.sort();
        ids
    }

    fn raw<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Bytes {
        Bytes::from(key.to_text(self.scope.store().naming(), &self.tenant))
    }

    /// A write as a service in another language does it: no types, no policies.
    pub async fn foreign<F: Family<Partition = Tenant>>(&self, key: &Key<F>, write: Write) {
        let key = self.raw(key);
        let step = move |tx: &mut emberkeep_hot::Tx<'_, Tenant>| tx.raw_write(key.clone(), write.clone());
        self.scope.transact::<(), Error, _>(step).await.unwrap();
    }

    pub async fn foreign_set<F: Family<Partition = Tenant>>(&self, key: &Key<F>, text: &str) {
        self.foreign(key, Write::Set(Bytes::from(text.to_owned()), Expiry::Never)).await;
    }

    /// The bytes at a key.
    pub async fn stored<F: Family<Partition = Tenant>>(&self, key: &Key<F>) -> Option<String> {
        let replies = self.scope.store().engine().read_many(vec![(self.raw(key), Read::Get)]).await.unwrap();
        match &replies[0] {
            Reply::Blob(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            _ => None,
        }
    }
}
