//! Pages of a set's members, including members that the family cannot decode.

use super::Scope;
use crate::engine::MemberCursor;
use crate::error::Result;
use crate::tx::decode::{self, with_family};
use crate::tx::member::Member;
use emberkeep_schema::{Codec, Family, Key, Partition, Set};

/// A page of a set's members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPage<V> {
    /// Members of this page, possibly none although more follow; a member may appear twice.
    pub members: Vec<Member<V>>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<MemberCursor>,
}

impl<P: Partition> Scope<P> {
    /// One page of about `count` members of a set of any size, without blocking other callers. All pages
    /// together return every member that is there during the whole scan; a member may be returned twice.
    /// Members that the family cannot decode are [`Member::External`].
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Id, Name, Set, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// Who is there.
    /// #     pub CROWD = "crowd:{realm}" {
    /// #         kind: Set<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "docs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// scope.transact(|tx| (0..2_500).try_for_each(|id| tx.sadd(&CROWD.key(), &id))).await?;
    /// let (mut seen, mut from) = (0, None);
    /// loop {
    ///     let page = scope.members(&CROWD.key(), from, 500).await?;
    ///     seen += page.members.len();
    ///     from = page.next;
    ///     if from.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(seen, 2_500);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn members<F, M>(
        &self,
        key: &Key<F>,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Result<SetPage<M::Value>>
    where
        F: Family<Partition = P, Kind = Set<M>>,
        M: Codec,
    {
        let raw = self.raw(key);
        let page =
            self.caller.store.engine.scan_members(&raw, from, count).await.map_err(with_family::<F>)?;
        Ok(SetPage { members: page.members.into_iter().map(decode::member::<M>).collect(), next: page.next })
    }
}
