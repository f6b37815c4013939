//! Reads what a scan found, family by family. What cannot be read as its family declares is noted, and hides nothing else.

use super::scan::KeyScan;
use crate::plan::Plan;
use emberkeep::games::world::Tenant;
use emberkeep::hot::command::ZSlice;
use emberkeep::hot::store::Member;
use emberkeep::hot::{Error, Result, Scope, Store};
use emberkeep::schema::{Codec, Family, Hash, Key, List, Set, SortedSet, Text};

/// Values, members or elements that one read asks for.
const PAGE: usize = 500;

/// What a family holds: the number of the tenant, where the key says it, the key, and the value.
pub(super) type FamilyEntries<F, V> = Vec<(Option<u16>, Key<F>, V)>;

pub(super) struct Reader<'a> {
    pub(super) store: &'a Store,
    pub(super) plan: &'a Plan,
    pub(super) scan: &'a KeyScan,
    /// What could not be read.
    pub(super) corrupt: Vec<String>,
}

impl Reader<'_> {
    fn keys<F: Family<Partition = Tenant>>(&self) -> Vec<(Option<u16>, Key<F>)> {
        self.scan.keys(self.store.key_layout(), self.plan)
    }

    /// Keys that do not say whose they are are reached through any tenant.
    fn scope(&self, tenant: Option<u16>) -> Scope<Tenant> {
        self.store.scope(self.plan.tenant(tenant.unwrap_or(0)))
    }

    /// Records a value that an external writer corrupted; other errors are the store's.
    fn readable<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error @ (Error::Corrupt { .. } | Error::WrongType { .. } | Error::TooLarge { .. })) => {
                self.corrupt.push(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn texts<F, C>(&mut self) -> Result<FamilyEntries<F, C::Value>>
    where
        F: Family<Partition = Tenant, Kind = Text<C>>,
        C: Codec,
    {
        let mut found = Vec::new();
        let mut keys = self.keys::<F>();
        keys.sort_by_key(|(tenant, _)| *tenant);
        for of_tenant in keys.chunk_by(|one, other| one.0 == other.0) {
            for page in of_tenant.chunks(PAGE) {
                let names: Vec<Key<F>> = page.iter().map(|(_, key)| key.clone()).collect();
                let values = self.scope(page[0].0).get_each(&names).await?;
                for ((tenant, key), value) in page.iter().zip(values) {
                    let value = self.readable(value)?.flatten();
                    found.extend(value.map(|value| (*tenant, key.clone(), value)));
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn sets<F, M>(&mut self) -> Result<FamilyEntries<F, Vec<M::Value>>>
    where
        F: Family<Partition = Tenant, Kind = Set<M>>,
        M: Codec,
        M::Value: Ord,
    {
        let mut found = Vec::new();
        for (tenant, key) in self.keys::<F>() {
            let (scope, mut members, mut from) =
                (self.scope(tenant), std::collections::BTreeSet::new(), None);
            loop {
                let page = scope.members(&key, from, PAGE).await;
                let Some(page) = self.readable(page)? else { break };
                for member in page.members {
                    match member {
                        Member::Known(member) => drop(members.insert(member)),
                        Member::External(bytes) => self.corrupt.push(format!("{key:?} holds {bytes:?}")),
                    }
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            found.push((tenant, key, members.into_iter().collect()));
        }
        Ok(found)
    }

    /// Sorted sets, with their scores as times.
    pub(super) async fn times<F, M>(&mut self) -> Result<FamilyEntries<F, Vec<(M::Value, i64)>>>
    where
        F: Family<Partition = Tenant, Kind = SortedSet<M>>,
        M: Codec,
    {
        let mut found = Vec::new();
        for (tenant, key) in self.keys::<F>() {
            let (scope, mut all) = (self.scope(tenant), Vec::new());
            loop {
                let from = all.len() as i64;
                let slice = ZSlice::Rank(from, from + PAGE as i64 - 1);
                let page = scope.zrange(&key, slice, false).await;
                let Some(page) = self.readable(page)?.filter(|page| !page.is_empty()) else { break };
                all.extend(page.into_iter().map(|(member, score)| (member, score as i64)));
            }
            found.push((tenant, key, all));
        }
        Ok(found)
    }

    pub(super) async fn lists<F, M>(&mut self) -> Result<FamilyEntries<F, Vec<M::Value>>>
    where
        F: Family<Partition = Tenant, Kind = List<M>>,
        M: Codec,
    {
        let mut found = Vec::new();
        for (tenant, key) in self.keys::<F>() {
            let (scope, mut all) = (self.scope(tenant), Vec::new());
            loop {
                let from = all.len() as i64;
                let page = scope.lrange(&key, from, from + PAGE as i64 - 1).await;
                let Some(page) = self.readable(page)?.filter(|page| !page.is_empty()) else { break };
                all.extend(page);
            }
            found.push((tenant, key, all));
        }
        Ok(found)
    }

    pub(super) async fn hashes<F, N, C>(&mut self) -> Result<FamilyEntries<F, Vec<(N::Value, C::Value)>>>
    where
        F: Family<Partition = Tenant, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let mut found = Vec::new();
        for (tenant, key) in self.keys::<F>() {
            let read = self.scope(tenant).hgetall(&key).await;
            found.extend(self.readable(read)?.map(|pairs| (tenant, key, pairs)));
        }
        Ok(found)
    }
}
