//! Event logs outside a transaction: read, trim, follow. See `Tx::append` for writing.

use super::follow::Follower;
use super::{LogPage, LogPosition, Scope};
use crate::command::Read;
use crate::error::Result;
use crate::tx::log::LAST;
use bytes::Bytes;
use emberkeep_schema::{Codec, Family, Keep, Key, Log, LogBound, Partition};

impl<P: Partition> Scope<P> {
    /// Up to `limit` entries after a position (0 = from the start), in a transaction of its own. See
    /// `Tx::log_after`.
    pub async fn log_after<F, C, B>(
        &self,
        log: &Key<F>,
        after: impl Into<LogPosition>,
        limit: usize,
    ) -> Result<LogPage<C::Value>>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        C::Value: Send,
        B: LogBound,
    {
        let (log, after) = (log.clone(), after.into());
        self.transact(move |tx| tx.log_after(&log, after, limit)).await
    }

    /// The same with the bytes of each event, in a transaction of its own. See `Tx::log_after_encoded`.
    pub async fn log_after_encoded<F, C, B>(
        &self,
        log: &Key<F>,
        after: impl Into<LogPosition>,
        limit: usize,
    ) -> Result<LogPage<Bytes>>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let (log, after) = (log.clone(), after.into());
        self.transact(move |tx| tx.log_after_encoded(&log, after, limit)).await
    }

    /// The position of the newest entry; sequence 0 = there is no log.
    pub async fn log_last<F, C, B>(&self, log: &Key<F>) -> Result<LogPosition>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let log = log.clone();
        self.transact(move |tx| tx.log_last(&log)).await
    }

    /// Removes the entries before `through`, in a transaction of its own. See `Tx::log_trim`.
    pub async fn log_trim<F, C, B>(&self, log: &Key<F>, through: impl Into<LogPosition>) -> Result<()>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        let (log, through) = (log.clone(), through.into());
        self.transact(move |tx| tx.log_trim(&log, through)).await
    }

    /// Follows a log from a position (0 = from its start, `log_last` = from now on): every entry after it, and
    /// then each new one when it is committed.
    ///
    /// ```
    /// use emberkeep_hot::store::LogItem;
    /// use emberkeep_hot::{Error, Store, embedded::Embedded};
    /// use emberkeep_schema::{Log, Number, RefuseAbove, Text, Utf8, family, partition};
    ///
    /// partition! {
    ///     /// One auction house.
    ///     pub struct House(u32) as "house";
    /// }
    /// family! {
    ///     /// Gold in the till.
    ///     pub TILL = "till:{house}" {
    ///         kind: Text<Number<i64>>, partition: House, parts: (), ttl: persistent, owner: "auctions"
    ///     }
    /// }
    /// family! {
    ///     /// What was sold.
    ///     pub SALES = "log:sales:{house}" {
    ///         kind: Log<Utf8, RefuseAbove<10_000>>, partition: House, parts: (), ttl: persistent, owner: "auctions"
    ///     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
    /// let scope = store.scope(House(1));
    /// // State and event are committed together, or neither is.
    /// scope.transact(|tx| {
    ///     tx.incr_by(&TILL.key(), 30)?;
    ///     tx.append(&SALES.key(), &"a rusty sword".to_owned())
    /// }).await?;
    ///
    /// let mut sales = scope.follow(&SALES.key(), 0);
    /// while let Some(item) = sales.next().await {
    ///     match item? {
    ///         LogItem::Entry { position, event } => {
    ///             assert_eq!((position.sequence, event.as_str()), (1, "a rusty sword"));
    ///             // Stored elsewhere, with its position: the log need not keep it.
    ///             scope.log_trim(&SALES.key(), position.sequence).await?;
    ///             break;
    ///         }
    ///         LogItem::Missed(count) => panic!("{count} sales were lost"),
    ///         LogItem::Unreadable { error, .. } => return Err(error),
    ///         LogItem::Reset => println!("the log was set back: compare position by position"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow<F, C, B>(&self, log: &Key<F>, after: impl Into<LogPosition>) -> Follower<F, C>
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        Follower::new(self.clone(), log.clone(), self.raw(log), after.into())
    }

    /// The same scope. Its transactions prefetch what `Tx::append_numbered` reads of this log, see
    /// [`Scope::prefetch`].
    pub fn prefetch_log<F, C, B>(self, log: &Key<F>) -> Self
    where
        F: Family<Partition = P, Kind = Log<C, B>>,
        C: Codec,
        B: LogBound,
    {
        match B::KEEP {
            Keep::Newest(_) => self.prefetch(log, LAST),
            Keep::RefuseAbove(_) => self.prefetch(log, LAST).prefetch(log, Read::LLen),
        }
    }
}
