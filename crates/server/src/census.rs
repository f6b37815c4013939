//! Keys by family, counted in the background.
//!
//! Budget: pages of a scan with a pause after each, so that nobody waits for it; one walk, then a rest. It stops when the
//! server ends. An error ends the walk, and the next one begins anew; the numbers of before stay.

use crate::app::App;
use crate::limits::{CENSUS_EVERY, CENSUS_PAGE_KEYS, CENSUS_PAUSE};
use emberkeep_hot::{Result, Store};
use emberkeep_schema::{Identified, Schema};
use std::collections::BTreeMap;

/// What keys are called that no family knows.
const EXTERNAL: &str = "(external)";
/// What keys are called that the engine keeps for itself.
const OWN: &str = "(engine)";

/// Counts again and again.
pub(crate) async fn run(app: App) {
    let schema = emberkeep_games::schema();
    loop {
        match count(&app.store, &schema).await {
            Ok(families) => *app.metrics.families.lock() = families,
            Err(error) => tracing::debug!("keys were not counted: {error}"),
        }
        tokio::time::sleep(CENSUS_EVERY).await;
    }
}

/// One walk. A key that a scan shows twice is counted twice: nobody keeps all keys in memory for this.
async fn count(store: &Store, schema: &Schema) -> Result<BTreeMap<&'static str, u64>> {
    let mut families: BTreeMap<&'static str, u64> =
        schema.families().iter().map(|family| (family.name, 0)).collect();
    let mut from = None;
    loop {
        let page = store.engine().scan(from, b"*", CENSUS_PAGE_KEYS).await?;
        for key in &page.keys {
            let name = match schema.identify(store.key_layout(), key) {
                Some(Identified::Family { declaration, .. }) => declaration.name,
                Some(Identified::Own { .. }) => OWN,
                None => EXTERNAL,
            };
            *families.entry(name).or_default() += 1;
        }
        from = page.next;
        if from.is_none() {
            return Ok(families);
        }
        tokio::time::sleep(CENSUS_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_games::monsters::{Monsters, SpawnRequest};
    use emberkeep_games::world::{Field, Tenant};
    use emberkeep_hot::embedded::Embedded;
    use std::sync::Arc;

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
