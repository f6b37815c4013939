//! The keys of a family, page by page: for work that no index can lead to.

use crate::world::Tenant;
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::{Error, Result, Store};
use emberkeep_schema::{Family, Key};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// How often a walk begins anew because a server restarted or slots moved; then the caller gets the error.
const RESTARTS_MAX: u32 = 8;

/// A walk over the keys of `F`.
pub(crate) struct Pages<F> {
    store: Store,
    whose: Option<Tenant>,
    keys: usize,
    /// Where to go on: `None` = nowhere.
    from: Option<Option<Cursor>>,
    restarts: u32,
    family: PhantomData<fn() -> F>,
}

impl<F: Family<Partition = Tenant>> Pages<F> {
    /// A walk at its start, of about so many keys a page: those of one tenant, or of all of them.
    pub(crate) fn new(store: &Store, whose: Option<Tenant>, keys: usize) -> Self {
        Pages { store: store.clone(), whose, keys, from: Some(None), restarts: 0, family: PhantomData }
    }

    /// The next keys; those that do not say whose they are are among them. `None` = that was all.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<(Option<Tenant>, Key<F>)>>> {
        let Some(from) = self.from else { return Ok(None) };
        let mut page = match self.store.scan::<F>(from, self.keys).await {
            // No key is missed, and one may come twice, as in every walk.
            Err(Error::Invalid { what: "cursor", .. }) if self.restarts < RESTARTS_MAX => {
                (self.from, self.restarts) = (Some(None), self.restarts + 1);
                return Ok(Some(Vec::new()));
            }
            page => page?,
        };
        self.from = page.next.map(Some);
        let whose = self.whose;
        page.keys.retain(|(tenant, _)| tenant.is_none() || whose.is_none() || *tenant == whose);
        Ok(Some(page.keys))
    }
}

/// The keys that tell their tenant: of most families all do.
pub(crate) fn told<K>(page: Vec<(Option<Tenant>, K)>) -> impl Iterator<Item = (Tenant, K)> {
    page.into_iter().filter_map(|(tenant, key)| Some((tenant?, key)))
}

/// Keys by their tenant, so that those of one are dealt with together.
pub(crate) fn by_tenant<T: Ord, K>(keys: impl IntoIterator<Item = (T, K)>) -> BTreeMap<T, Vec<K>> {
    let mut sorted: BTreeMap<T, Vec<K>> = BTreeMap::new();
    for (tenant, key) in keys {
        sorted.entry(tenant).or_default().push(key);
    }
    sorted
}
