//! A paged scan over the keys of a family, for work that no index leads to.

use crate::world::Tenant;
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::{Error, Result, Store};
use emberkeep_schema::{Family, Key};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// How often a scan restarts because its cursor became invalid (a server restarted, slots moved). Then the
/// caller gets the error.
const RESTARTS_MAX: u32 = 8;

/// A scan over the keys of `F`.
pub(crate) struct FamilyScan<F> {
    store: Store,
    tenant: Option<Tenant>,
    page_keys: usize,
    /// The next page: `Some(None)` is the first one, `None` the end.
    next: Option<Option<Cursor>>,
    restarts: u32,
    family: PhantomData<fn() -> F>,
}

impl<F: Family<Partition = Tenant>> FamilyScan<F> {
    /// A scan from the start: the keys of one tenant, or of all if it is `None`. A page has about `page_keys`
    /// keys.
    pub(crate) fn new(store: &Store, tenant: Option<Tenant>, page_keys: usize) -> Self {
        let (store, next) = (store.clone(), Some(None));
        FamilyScan { store, tenant, page_keys, next, restarts: 0, family: PhantomData }
    }

    /// The next page; `None` at the end. It also contains keys whose name does not contain a tenant.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<(Option<Tenant>, Key<F>)>>> {
        let Some(from) = self.next else { return Ok(None) };
        let mut page = match self.store.scan::<F>(from, self.page_keys).await {
            // The restart misses no key. It may return a key twice, as any scan may.
            Err(Error::Invalid { what: "cursor", .. }) if self.restarts < RESTARTS_MAX => {
                (self.next, self.restarts) = (Some(None), self.restarts + 1);
                return Ok(Some(Vec::new()));
            }
            page => page?,
        };
        self.next = page.next.map(Some);
        let wanted = self.tenant;
        page.keys.retain(|(tenant, _)| tenant.is_none() || wanted.is_none() || *tenant == wanted);
        Ok(Some(page.keys))
    }
}

/// The keys whose name contains their tenant. In most families that is every key.
pub(crate) fn with_tenant<K>(page: Vec<(Option<Tenant>, K)>) -> impl Iterator<Item = (Tenant, K)> {
    page.into_iter().filter_map(|(tenant, key)| Some((tenant?, key)))
}

/// Groups keys by tenant, so that the keys of one tenant can share a transaction.
pub(crate) fn by_tenant<T: Ord, K>(keys: impl IntoIterator<Item = (T, K)>) -> BTreeMap<T, Vec<K>> {
    let mut grouped: BTreeMap<T, Vec<K>> = BTreeMap::new();
    for (tenant, key) in keys {
        grouped.entry(tenant).or_default().push(key);
    }
    grouped
}
