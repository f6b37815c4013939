//! Pages of a hash's fields, including fields that the family cannot decode.

use super::Scope;
use crate::engine::MemberCursor;
use crate::error::Result;
use crate::tx::decode::{self, with_family};
use crate::tx::member::Member;
use emberkeep_schema::{Codec, Family, Hash, Key, Partition};

/// A page of a hash's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPage<N, V> {
    /// Fields of this page with their values, possibly none although more follow; a field may appear twice.
    pub fields: Vec<(Member<N>, Member<V>)>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<MemberCursor>,
}

impl<P: Partition> Scope<P> {
    /// One page of about `count` fields of a hash of any size, without blocking other callers. All pages
    /// together return every field that is there during the whole scan; a field may be returned twice. Names
    /// and values that the family cannot decode are [`Member::External`]; `Tx::hdel_raw` removes such
    /// fields.
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Hash, Id, Name, Number, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// What each player has.
    /// #     pub GOLD = "gold:{realm}" {
    /// #         kind: Hash<Id<u32>, Number<i64>>, partition: Realm, parts: (),
    /// #         ttl: persistent, owner: "docs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// scope.transact(|tx| (0..2_500).try_for_each(|id| tx.hincr_by(&GOLD.key(), &id, 10))).await?;
    /// let (mut total, mut from) = (0, None);
    /// loop {
    ///     let page = scope.fields(&GOLD.key(), from, 500).await?;
    ///     total += page.fields.into_iter().filter_map(|(_, gold)| gold.known()).sum::<i64>();
    ///     from = page.next;
    ///     if from.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(total, 25_000);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fields<F, N, C>(
        &self,
        key: &Key<F>,
        from: Option<MemberCursor>,
        count: usize,
    ) -> Result<HashPage<N::Value, C::Value>>
    where
        F: Family<Partition = P, Kind = Hash<N, C>>,
        N: Codec,
        C: Codec,
    {
        let raw = self.raw(key);
        let page = self.caller.store.engine.scan_fields(&raw, from, count).await.map_err(with_family::<F>)?;
        let decoded = |(field, value)| (decode::member::<N>(field), decode::member::<C>(value));
        Ok(HashPage { fields: page.fields.into_iter().map(decoded).collect(), next: page.next })
    }
}
