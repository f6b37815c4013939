//! A follower of a log: its entries as a stream.
//!
//! Budget: one page of the log at a time; a read after each wake-up, and one every
//! [`LOG_POLL_EVERY`](crate::limits::LOG_POLL_EVERY) without any. Stop condition: the store is closed, or the
//! follower is dropped. While the store is unavailable it reads again with growing pauses.

use super::{LogEntry, LogPage, LogPosition, Scope};
use crate::command::RawKey;
use crate::error::{Error, Result};
use crate::limits::{LOG_PAGE_ENTRIES, LOG_POLL_EVERY, LOG_RETRY_PAUSE_MAX, LOG_RETRY_PAUSE_MIN};
use crate::pubsub::Subscription;
use emberkeep_schema::{Codec, Family, Key, Log, LogBound};
use futures_util::stream::{Stream, unfold};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// What a follower of a log yields.
#[derive(Debug, Clone, PartialEq)]
pub enum LogItem<E> {
    /// The next entry of the log, in order and without a gap.
    Entry {
        /// Its place: store it when the event has been dealt with, and follow from there after a restart.
        position: LogPosition,
        /// The event as the codec of the log decodes it.
        event: E,
    },
    /// The next entry, whose event cannot be read. The follower goes on after it.
    Unreadable {
        /// Its place. Without a mark, an external client overwrote the whole entry.
        position: LogPosition,
        /// Why; it names the key.
        error: Error,
    },
    /// So many entries were dropped or trimmed before they were read.
    Missed(u64),
    /// The position is not one of the log (any more): it was set back by a failover or a restore, or removed
    /// and begun anew. The follower goes on with the oldest entry that is there. Entries that come again have
    /// the same position, mark included; others are new, also those of a sequence that came before.
    Reset,
}

/// Entries of a log from a position on. Made by [`Scope::follow`].
///
/// What it notices: entries that were dropped or trimmed ([`LogItem::Missed`]); a log that ends before its
/// position, or has another entry there ([`LogItem::Reset`]). What it cannot notice: a log that was set back
/// and then lost the entry at its position too, because it kept only newer ones. A consumer that trims
/// with `Scope::log_trim` up to its own position keeps that entry.
///
/// Each follower has a subscription of its own; on Redis that is a connection. A lost message only delays it.
pub struct Follower<F: Family, C: Codec> {
    scope: Scope<F::Partition>,
    log: Key<F>,
    channel: RawKey,
    /// Where the next page begins.
    read_to: LogPosition,
    /// The position of the last entry that was yielded.
    position: LogPosition,
    /// The next page is the first one after a reset.
    was_reset: bool,
    ready: VecDeque<LogItem<C::Value>>,
    subscription: Option<Subscription>,
    poll_every: Duration,
    /// The next pause while the store is unavailable.
    pause: Duration,
    /// The last call returned an error that does not go away by itself, or the whole log was read.
    waits: bool,
}

impl<F, C, B> Follower<F, C>
where
    F: Family<Kind = Log<C, B>>,
    C: Codec,
    C::Value: Send,
    B: LogBound,
{
    /// The same follower, which reads again after this time without a wake-up. A message may be lost, and
    /// none comes if the user of a Redis may not subscribe to the channel, which is named like the key.
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll_every = interval;
        self
    }

    /// The position of the last entry that was yielded; the given one before the first, and the start after a
    /// reset.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// The next item; waits for one. `None` when the store is closed. While the store is unavailable it waits
    /// and reads again. Other errors are returned, such as a key of another type; the call after one waits for
    /// a wake-up or the poll interval and reads again. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<LogItem<C::Value>>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                match &item {
                    LogItem::Entry { position, .. } | LogItem::Unreadable { position, .. } => {
                        self.position = *position
                    }
                    LogItem::Reset => self.position = LogPosition::START,
                    LogItem::Missed(_) => {}
                }
                return Some(Ok(item));
            }
            if self.waits {
                self.wait().await;
                self.waits = false;
            }
            match self.read().await {
                Ok(()) => {
                    self.pause = LOG_RETRY_PAUSE_MIN;
                    self.waits = self.ready.is_empty();
                }
                Err(Error::Closed) => return None,
                Err(Error::Unavailable { .. } | Error::Conflict { .. } | Error::OutcomeUnknown { .. }) => {
                    sleep(self.pause).await;
                    self.pause = (2 * self.pause).min(LOG_RETRY_PAUSE_MAX);
                }
                Err(error) => {
                    self.waits = true;
                    return Some(Err(error));
                }
            }
        }
    }

    /// The items as a stream; it ends when the store is closed.
    pub fn into_stream(self) -> impl Stream<Item = Result<LogItem<C::Value>>> {
        unfold(self, |mut follower| async move { follower.next().await.map(|item| (item, follower)) })
    }

    /// Reads the next page. Subscribes first, so that no entry comes between the page and the first message.
    async fn read(&mut self) -> Result<()> {
        if self.subscription.is_none() {
            // Without it the follower polls; the next read tries again.
            let channels = vec![self.channel.clone()];
            self.subscription = self.scope.store().subscribe(channels, vec![]).await.ok();
        }
        // A message from before this read tells nothing new.
        while self.subscription.as_mut().is_some_and(|messages| messages.try_next().is_some()) {}
        let page = self.scope.log_after(&self.log, self.read_to, LOG_PAGE_ENTRIES).await?;
        self.take(page);
        Ok(())
    }

    fn take(&mut self, page: LogPage<C::Value>) {
        if page.is_reset {
            self.ready.push_back(LogItem::Reset);
            (self.read_to, self.was_reset) = (LogPosition::START, true);
            return;
        }
        // After a reset it is not known which of the entries before the first one were read.
        if page.missed > 0 && !self.was_reset {
            self.ready.push_back(LogItem::Missed(page.missed));
        }
        self.was_reset &= page.entries.is_empty();
        for entry in page.entries {
            self.read_to = entry.position();
            self.ready.push_back(item_of(entry));
        }
    }

    async fn wait(&mut self) {
        let Some(messages) = &mut self.subscription else { return sleep(self.poll_every).await };
        if let Ok(None) = timeout(self.poll_every, messages.next()).await {
            // The store was closed, or the subscription ended: the next read tells.
            self.subscription = None;
        }
    }
}

impl<F: Family, C: Codec> Follower<F, C> {
    pub(super) fn new(
        scope: Scope<F::Partition>,
        log: Key<F>,
        channel: RawKey,
        position: LogPosition,
    ) -> Self {
        Follower {
            scope,
            log,
            channel,
            read_to: position,
            position,
            was_reset: false,
            ready: VecDeque::new(),
            subscription: None,
            poll_every: LOG_POLL_EVERY,
            pause: LOG_RETRY_PAUSE_MIN,
            waits: false,
        }
    }
}

fn item_of<E>(entry: LogEntry<E>) -> LogItem<E> {
    let position = entry.position();
    match entry.event {
        Ok(event) => LogItem::Entry { position, event },
        Err(error) => LogItem::Unreadable { position, error },
    }
}
