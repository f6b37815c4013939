//! Strings that are set where they are greater, without a read: what arrives in any order, such as positions.

use super::Scope;
use super::transact::run_transaction;
use crate::command::{RawKey, Write};
use crate::error::{Error, Result};
use crate::limits::{CONDITIONAL_TRANSACTIONS_AT_ONCE, CONDITIONAL_WRITES_MAX};
use crate::tx::encode::encoded;
use crate::tx::{Event, RawTx, Run, Transaction, set_declared};
use bytes::Bytes;
use emberkeep_schema::{Automatic, Codec, Family, Key, Partition, Text, Ttl};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::any::Any;

impl<P: Partition> Scope<P> {
    /// Sets values as [`Tx::put_if_greater`](crate::Tx::put_if_greater) does, any number of them. Returns how many were not
    /// set, because what was stored is as great. Each is atomic by itself: they go in transactions of
    /// [`CONDITIONAL_WRITES_MAX`], some at a time, so that no call keeps a server busy. After an error some may be set.
    ///
    /// ```
    /// # use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// # use emberkeep_schema::{Name, Text, Utf8, family, partition};
    /// # partition! { /// A realm.
    /// #     pub struct Realm(Name) as "realm"; }
    /// # family! { /// Where a player is, and since when.
    /// #     pub PLACE = "place:{realm}:{player}" {
    /// #         kind: Text<Utf8>, partition: Realm, parts: (player: u32), ttl: refresh(120_000), owner: "docs" } }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// # let scope = store.scope(Realm(Name::new("north").expect("a word")));
    /// let tick = [(PLACE.key(7), "gate,1200".to_owned()), (PLACE.key(8), "well,1200".to_owned())];
    /// assert_eq!(scope.put_each_if_greater(tick).await?, 0);
    /// let late = [(PLACE.key(7), "road,1150".to_owned())];
    /// assert_eq!(scope.put_each_if_greater(late).await?, 1);
    /// assert_eq!(scope.get(&PLACE.key(7)).await?.as_deref(), Some("gate,1200"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn put_each_if_greater<F, C>(
        &self,
        values: impl IntoIterator<Item = (Key<F>, C::Value)>,
    ) -> Result<usize>
    where
        F: Family<Partition = P, Kind = Text<C>>,
        F::Ttl: Automatic,
        C: Codec,
    {
        self.caller.rights().map_or(Ok(()), |rights| rights.check(F::DECLARATION))?;
        let write = |(key, value): (Key<F>, C::Value)| Ok((self.raw(&key), encoded::<F, C>(&value)?));
        let writes: Vec<_> = values.into_iter().map(write).collect::<Result<_>>()?;
        let chunks = writes.chunks(CONDITIONAL_WRITES_MAX).map(<[_]>::to_vec);
        stream::iter(chunks.map(|chunk| self.put_together_if_greater(chunk, F::DECLARATION.ttl)))
            .buffer_unordered(CONDITIONAL_TRANSACTIONS_AT_ONCE)
            .try_fold(0, async |sum, not_greater| Ok(sum + not_greater))
            .await
    }

    async fn put_together_if_greater(&self, writes: Vec<(RawKey, Bytes)>, ttl: Ttl) -> Result<usize> {
        let run = Run::new(self.caller.store.layout, self.caller.operation, self.caller.rights());
        let transaction = PutIfGreater { writes, ttl, run, result: Ok(()), not_greater: 0 };
        let done = run_transaction(&self.caller, transaction).await?;
        done.result.map(|()| done.not_greater)
    }
}

/// Sets strings that are greater, and counts those that are not.
struct PutIfGreater {
    writes: Vec<(RawKey, Bytes)>,
    ttl: Ttl,
    run: Run,
    result: Result<()>,
    not_greater: usize,
}

impl Transaction for PutIfGreater {
    fn run(&mut self, mut raw: RawTx<'_>) -> bool {
        self.run.begin();
        let mut writes = self.writes.iter();
        self.result = writes.try_for_each(|(key, text)| {
            set_declared(&mut raw, key.clone(), self.ttl, |expiry| Write::SetIfGreater(text.clone(), expiry))
        });
        self.result.is_ok()
    }

    fn fail(&mut self, error: Error) -> Result<()> {
        self.result = Err(error.in_transaction(self.run.name()));
        Ok(())
    }

    fn name(&self) -> Option<&'static str> {
        self.run.name()
    }

    fn observe(&mut self, event: Event) {
        match event {
            Event::NotGreater(count) => self.not_greater = count,
            event => self.run.observe(event),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
