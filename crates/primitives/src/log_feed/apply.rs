//! Applying entries of a source and moving its position, in one transaction.

use super::feed::{Feed, FeedRecord};
use super::{EntryReader, FedEntry, FeedError, FeedStats};
use bytes::Bytes;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::LogPosition;
use emberkeep_hot::{Error, Scope, Tx};
use emberkeep_schema::{Codec, Family, Hash, Json, Log, Newest, Partition, Persistent, Raw, Utf8};
use std::sync::{Arc, Mutex, PoisonError};

type Effect<P, E> = dyn Fn(&mut Tx<'_, P>, &[FedEntry<E>]) -> Result<(), FeedError> + Send + Sync;

/// State that is fed, with what entries do to it.
pub struct EntryFeed<P: Partition, S: Family, A: Family, E> {
    pub(super) scope: Scope<P>,
    pub(super) feed: Feed<S, A>,
    effect: Arc<Effect<P, E>>,
    stats: Mutex<FeedStats>,
}

/// An entry of a source.
pub(super) struct Entry {
    pub(super) position: LogPosition,
    /// `None` = it is not an entry; an external client overwrote it.
    pub(super) event: Option<Bytes>,
}

impl<P, S, A, E, const MAX: usize> EntryFeed<P, S, A, E>
where
    P: Partition,
    S: Family<Partition = P, Kind = Hash<Utf8, Json<FeedRecord>>, Ttl = Persistent>,
    A: Family<Partition = P, Kind = Log<Raw, Newest<MAX>>, Ttl = Persistent>,
    E: Send + Sync + 'static,
{
    /// State and the positions of its sources. The effect runs in a transaction, possibly several times, and gets entries
    /// in order.
    pub fn new(
        scope: &Scope<P>,
        feed: Feed<S, A>,
        effect: impl Fn(&mut Tx<'_, P>, &[FedEntry<E>]) -> Result<(), FeedError> + Send + Sync + 'static,
    ) -> Self {
        let scope = scope.clone().named("log_feed.apply");
        EntryFeed { scope, feed, effect: Arc::new(effect), stats: Mutex::default() }
    }

    pub(super) async fn position(&self, source: &str) -> Result<LogPosition, Error> {
        let (feed, source) = (self.feed.clone(), source.to_owned());
        self.scope.read(move |tx| feed.position(tx, &source)).await
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut FeedStats)) {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn stats(&self) -> FeedStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies entries after a position. A part that is refused is cut in half until the entry that is refused stands alone.
    /// Returns how many were applied; `None` = another process was first.
    pub(super) async fn apply_after<C: Codec<Value = E>>(
        &self,
        source: &str,
        mut position: LogPosition,
        entries: &[Entry],
    ) -> Result<Option<u64>, FeedError> {
        let (mut parts, mut applied) = (vec![entries], 0);
        while let Some(part) = parts.pop() {
            let decoded: Vec<_> = part.iter().filter_map(decoded::<C>).collect();
            let (fed, skipped) = (decoded.len() as u64, (part.len() - decoded.len()) as u64);
            match self.commit(source, position, part, decoded).await {
                Ok(true) => {
                    self.count(|stats| {
                        stats.applied += fed;
                        stats.skipped += skipped;
                    });
                    applied += fed;
                }
                Ok(false) => return Ok(None),
                Err(error) if error.is_refusal() && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                    continue;
                }
                Err(error) if error.is_refusal() => {
                    let sequence = part[0].position.sequence;
                    tracing::error!(source, sequence, %error, "an entry of a log is skipped");
                    if !self.commit(source, position, part, Vec::new()).await? {
                        return Ok(None);
                    }
                    self.count(|stats| stats.skipped += 1);
                }
                Err(error) => return Err(error),
            }
            position = part.last().map_or(position, |last| last.position);
        }
        Ok(Some(applied))
    }

    /// Applies entries and moves the position over all of a part, in one transaction. `false` = another process was first.
    async fn commit(
        &self,
        source: &str,
        expected: LogPosition,
        part: &[Entry],
        decoded: Vec<FedEntry<E>>,
    ) -> Result<bool, FeedError> {
        let (feed, source, effect) = (self.feed.clone(), source.to_owned(), self.effect.clone());
        let positions: Vec<_> = part.iter().map(|entry| entry.position).collect();
        let transaction = self.scope.transact_with(decoded, move |tx, decoded| {
            if !feed.advance(tx, &source, expected, &positions)? {
                return Ok(false);
            }
            if !decoded.is_empty() {
                effect(tx, decoded)?;
            }
            Ok::<_, FeedError>(true)
        });
        transaction.await
    }
}

/// `None` = it is not an entry, or cannot be decoded.
fn decoded<C: Codec>(entry: &Entry) -> Option<FedEntry<C::Value>> {
    let event = C::decode(entry.event.as_ref()?).ok()?;
    Some(FedEntry { sequence: entry.position.sequence, event })
}

/// Entries of sources that number them once and for ever, such as the openings of a spool.
pub struct NumberedFeed<P: Partition, S: Family, A: Family, C: Codec>(EntryFeed<P, S, A, C::Value>);

impl<P: Partition, S: Family, A: Family, C: Codec> From<EntryFeed<P, S, A, C::Value>>
    for NumberedFeed<P, S, A, C>
{
    fn from(feed: EntryFeed<P, S, A, C::Value>) -> Self {
        NumberedFeed(feed)
    }
}

impl<P, S, A, C, const MAX: usize> EntryReader for NumberedFeed<P, S, A, C>
where
    P: Partition,
    S: Family<Partition = P, Kind = Hash<Utf8, Json<FeedRecord>>, Ttl = Persistent>,
    A: Family<Partition = P, Kind = Log<Raw, Newest<MAX>>, Ttl = Persistent>,
    C: Codec,
    C::Value: Sync,
{
    fn apply<'a>(
        &'a self,
        source: &'a str,
        entries: &'a [(u64, Bytes)],
    ) -> Pending<'a, Result<u64, FeedError>> {
        Box::pin(async move {
            let mut applied = 0;
            loop {
                let position = self.0.position(source).await?;
                let new = entries.iter().filter(|(number, _)| *number > position.sequence);
                let new = new.take(crate::limits::FEED_PAGE_ENTRIES).map(|(number, event)| Entry {
                    position: LogPosition::from(*number),
                    event: Some(event.clone()),
                });
                let new: Vec<_> = new.collect();
                if new.is_empty() {
                    return Ok(applied);
                }
                // Another process that was first delivers a copy of the same source.
                applied += self.0.apply_after::<C>(source, position, &new).await?.unwrap_or(0);
            }
        })
    }

    fn stats(&self) -> FeedStats {
        self.0.stats()
    }
}
