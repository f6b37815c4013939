//! Counts keys by family in the background.
//!
//! Budget: one scan of the store in pages with a pause after each, then a longer pause. An error ends the
//! scan; the numbers of the previous scan stay until the next one succeeds.

use super::Metrics;
use crate::limits::{KEY_COUNT_EVERY, KEY_COUNT_PAGE_KEYS, KEY_COUNT_PAUSE};
use emberkeep_hot::{Result, Store};
use emberkeep_schema::{KeyIdentity, Schema};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The label of keys without a family.
const EXTERNAL: &str = "(external)";
/// The label of the engine's own keys.
const OWN: &str = "(engine)";

/// Runs until it is aborted.
pub(crate) async fn run(store: Store, metrics: Arc<Metrics>) {
    let schema = emberkeep_games::schema();
    loop {
        match count(&store, &schema).await {
            Ok(families) => *metrics.families.lock() = families,
            Err(error) => tracing::debug!("keys were not counted: {error}"),
        }
        tokio::time::sleep(KEY_COUNT_EVERY).await;
    }
}

/// One scan. A key that the scan returns twice is counted twice, because that needs no memory of all keys.
async fn count(store: &Store, schema: &Schema) -> Result<BTreeMap<&'static str, u64>> {
    let mut families: BTreeMap<&'static str, u64> =
        schema.families().iter().map(|family| (family.name, 0)).collect();
    let mut from = None;
    loop {
        let page = store.engine().scan(from, b"*", KEY_COUNT_PAGE_KEYS).await?;
        for key in &page.keys {
            let name = match schema.identify(store.key_layout(), key) {
                Some(KeyIdentity::Family { declaration, .. }) => declaration.name,
                Some(KeyIdentity::Own { .. }) => OWN,
                None => EXTERNAL,
            };
            *families.entry(name).or_default() += 1;
        }
        from = page.next;
        if from.is_none() {
            return Ok(families);
        }
        tokio::time::sleep(KEY_COUNT_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_games::monsters::{Monsters, SpawnRequest};
    use emberkeep_games::world::{Field, Tenant};
    use emberkeep_hot::embedded::Embedded;

    #[tokio::test]
    async fn keys_are_counted_by_their_family() {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let monsters = Monsters::new(store.clone());
        for map in 0..3 {
            let field = Field { map, ..Field::default() };
            monsters.spawn(Tenant(uuid::Uuid::nil()), SpawnRequest::new(field, 1, 1)).await.unwrap();
        }
        let families = count(&store, &emberkeep_games::schema()).await.unwrap();
        let of = |name: &str| families.get(name).copied();
        assert_eq!((of("MONSTER"), of("MONSTER_MAP"), of("REACTOR")), (Some(3), Some(3), Some(0)));
    }
}
