//! The keys of a family, page by page: for work that no index can lead to.

use crate::world::Tenant;
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::{Result, Store};
use emberkeep_schema::{Family, Key};
use std::collections::HashMap;
use std::marker::PhantomData;

/// A walk over the keys of `F`.
pub(super) struct Pages<F> {
    store: Store,
    whose: Option<Tenant>,
    keys: usize,
    /// Where to go on: `None` = nowhere.
    from: Option<Option<Cursor>>,
    family: PhantomData<fn() -> F>,
}

impl<F: Family<Partition = Tenant>> Pages<F> {
    /// A walk at its start, of about so many keys a page: those of one tenant, or of all of them.
    pub(super) fn new(store: &Store, whose: Option<Tenant>, keys: usize) -> Self {
        Pages { store: store.clone(), whose, keys, from: Some(None), family: PhantomData }
    }

    /// The next keys; those that do not say whose they are are among them. `None` = that was all.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<(Option<Tenant>, Key<F>)>>> {
        let Some(from) = self.from else { return Ok(None) };
        let mut page = self.store.scan::<F>(from, self.keys).await?;
        self.from = page.next.map(Some);
        let whose = self.whose;
        page.keys.retain(|(tenant, _)| tenant.is_none() || whose.is_none() || *tenant == whose);
        Ok(Some(page.keys))
    }
}

/// Keys by their tenant, so that those of one are read together.
pub(super) fn by_tenant<K>(keys: Vec<(Option<Tenant>, K)>) -> HashMap<Option<Tenant>, Vec<K>> {
    let mut sorted: HashMap<Option<Tenant>, Vec<K>> = HashMap::new();
    for (tenant, key) in keys {
        sorted.entry(tenant).or_default().push(key);
    }
    sorted
}
