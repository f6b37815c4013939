//! Parts of a transaction: reads that cost one round trip together, changes of one value, and a part that can
//! be undone.

use super::{ReadTx, Tx};
use crate::error::Result;
use emberkeep_schema::{Automatic, Codec, Family, Key, Partition, Text};

impl<'a, P: Partition> ReadTx<'a, P> {
    /// Reads of any families that cost one round trip together: one that is not available yet does not stop
    /// the others. `reads` returns 2 to 8 results as a tuple. The first error is that of the call.
    ///
    /// A read that depends on another one does not belong here; it would be made up in the first run.
    ///
    /// Cost: reads made together. On a remote engine one round trip for all of them, none if they are cached.
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Name, Number, Set, Id, Text, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// Gold.
    /// #     pub GOLD = "gold:{realm}:{player}" {
    /// #         kind: Text<Number<i64>>, partition: Realm, parts: (player: u32), ttl: persistent, owner: "docs" } }
    /// # family! { /// Who is there.
    /// #     pub CROWD = "crowd:{realm}" {
    /// #         kind: Set<Id<u32>>, partition: Realm, parts: (), ttl: persistent, owner: "docs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// let (gold, is_there) = scope
    ///     .read(|tx| tx.together(|tx| (tx.get(&GOLD.key(7)), tx.sismember(&CROWD.key(), &7))))
    ///     .await?;
    /// assert_eq!((gold, is_there), (None, false));
    /// # Ok::<_, Error>(())
    /// # }
    /// ```
    pub fn together<R: ReadResults>(
        &mut self,
        reads: impl FnOnce(&mut ReadTx<'a, P>) -> R,
    ) -> Result<R::Values> {
        let outer = self.raw.begin_together()?;
        let results = reads(self);
        self.raw.end_together(outer)?;
        results.into_values()
    }

    /// The value, or `default()` if the key is absent. Nothing is written.
    ///
    /// Cost: a read. On a remote engine one round trip, none if it is cached or prefetched.
    pub fn get_or<F, C>(&mut self, key: &Key<F>, default: impl FnOnce() -> C::Value) -> Result<C::Value>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        C: Codec,
    {
        Ok(self.get(key)?.unwrap_or_else(default))
    }
}

impl<P: Partition> Tx<'_, P> {
    /// Changes the value of an existing key as `change` says, and writes it as [`Tx::put`] does. Returns what
    /// `change` returned; `None` = the key is absent, and nothing was written.
    ///
    /// Cost: a read, as [`ReadTx::get`]; the write is local and sent with the commit.
    pub fn update<F, C, R>(
        &mut self,
        key: &Key<F>,
        change: impl FnOnce(&mut C::Value) -> R,
    ) -> Result<Option<R>>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        let Some(mut value) = self.get(key)? else { return Ok(None) };
        let changed = change(&mut value);
        self.put(key, &value)?;
        Ok(Some(changed))
    }

    /// Runs a part of the transaction that may be refused. `Ok(Err(refusal))` undoes what the part wrote,
    /// appended and published, and nothing else: the transaction goes on without it. What the part read stays
    /// validated, because the refusal may depend on it. Attempts may be nested.
    ///
    /// An outer `Err` is an error of the store; pass it on with `?`.
    ///
    /// Cost: local, beside what the part does.
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Name, Number, Text, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// Gold.
    /// #     pub GOLD = "gold:{realm}:{player}" {
    /// #         kind: Text<Number<i64>>, partition: Realm, parts: (player: u32), ttl: persistent, owner: "docs" } }
    /// # family! { /// Calls.
    /// #     pub CALLS = "calls:{realm}:{player}" {
    /// #         kind: Text<Number<i64>>, partition: Realm, parts: (player: u32), ttl: persistent, owner: "docs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// let paid = scope
    ///     .transact(|tx| {
    ///         tx.incr_by(&CALLS.key(7), 1)?; // counted whether or not the player can pay
    ///         tx.attempt(|tx| {
    ///             tx.incr_by(&GOLD.key(7), -10)?;
    ///             let left = tx.get_or(&GOLD.key(7), || 0)?;
    ///             Ok(if left < 0 { Err("not enough gold") } else { Ok(left) })
    ///         })
    ///     })
    ///     .await?;
    /// assert_eq!(paid, Err("not enough gold"));
    /// assert_eq!((scope.get(&GOLD.key(7)).await?, scope.get(&CALLS.key(7)).await?), (None, Some(1)));
    /// # Ok::<_, Error>(())
    /// # }
    /// ```
    pub fn attempt<T, R>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<Result<T, R>>,
    ) -> Result<Result<T, R>> {
        let savepoint = self.raw.savepoint();
        let result = part(self);
        if !matches!(result, Ok(Ok(_))) {
            self.raw.undo_to(savepoint);
        }
        result
    }
}

/// Results of reads that are made together: tuples of 2 to 8 [`Result`]s. See [`ReadTx::together`].
pub trait ReadResults {
    /// The values of all of them.
    type Values;

    /// The values, or the first error.
    fn into_values(self) -> Result<Self::Values>;
}

macro_rules! together {
    ($($value:ident)+) => {
        impl<$($value),+> ReadResults for ($(Result<$value>,)+) {
            type Values = ($($value,)+);

            fn into_values(self) -> Result<Self::Values> {
                #[allow(non_snake_case)]
                let ($($value,)+) = self;
                Ok(($($value?,)+))
            }
        }
    };
}

together!(A B);
together!(A B C);
together!(A B C D);
together!(A B C D E);
together!(A B C D E F);
together!(A B C D E F G);
together!(A B C D E F G H);
