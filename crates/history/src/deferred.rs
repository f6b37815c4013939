//! A store that cannot be reached yet: its calls are `Unavailable` until it was opened.

use crate::backoff::Backoff;
use crate::contract::{
    Applied, ConditionalWrite, Fold, Folded, HistoryStore, Pending, RangeRequest, RawPage, RawRow, RawTotals,
    Source, Stats, Write, Written,
};
use crate::embedded::Ticker;
use crate::error::{Error, Result};
use crate::history::History;
use crate::limits::{OPEN_PAUSE_MAX, OPEN_PAUSE_MIN};
use emberkeep_schema::{TableDeclaration, TotalsDeclaration, Value};
use parking_lot::Mutex;
use std::fmt::Display;
use std::future::ready;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A history store that is opened later. A program can start without it: until then every call is
/// [`Error::Unavailable`], which consumers of an outbox and callers repeat.
pub struct Deferred {
    name: String,
    opened: OnceLock<History>,
    ticker: Ticker,
    /// Why it is not open yet.
    reason: Mutex<String>,
    is_closed: AtomicBool,
}

impl Deferred {
    /// A store with a name for messages, without credentials, and the reason why it is not open.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Deferred {
        let (name, reason) = (name.into(), Mutex::new(reason.into()));
        Deferred {
            name,
            opened: OnceLock::new(),
            ticker: Ticker::default(),
            reason,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Opens the store, with growing pauses after each error. Ends when it is open or was closed. It can be
    /// dropped at any point.
    pub async fn open<E: Display>(&self, open: impl Fn() -> Pending<'static, Result<History, E>>) {
        let mut backoff = Backoff::new(OPEN_PAUSE_MIN, OPEN_PAUSE_MAX);
        while !self.is_open() && !self.is_closed.load(Relaxed) {
            match open().await {
                Ok(history) => {
                    tracing::info!("{} is open; what waited is delivered", self.name);
                    // Another opening of the same store may have been quicker.
                    let _ = self.opened.set(history);
                }
                Err(error) => {
                    tracing::warn!("{} is not open yet: {error}", self.name);
                    *self.reason.lock() = error.to_string();
                    backoff.wait().await;
                }
            }
        }
    }

    fn store(&self) -> Result<&dyn HistoryStore> {
        if self.is_closed.load(Relaxed) {
            return Err(Error::Closed);
        }
        let waiting =
            || Error::Unavailable { backend: self.name.clone(), reason: self.reason.lock().clone() };
        self.opened.get().map(|history| &**history.store()).ok_or_else(waiting)
    }

    fn call<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a dyn HistoryStore) -> Pending<'a, Result<T>>,
    ) -> Pending<'a, Result<T>> {
        match self.store() {
            Ok(store) => call(store),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl HistoryStore for Deferred {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn now(&self) -> i64 {
        self.opened.get().map_or_else(|| self.ticker.now(), |history| history.store().now())
    }

    fn write(&self, table: &'static TableDeclaration, write: Write) -> Pending<'_, Result<Written>> {
        self.call(|store| store.write(table, write))
    }

    fn write_if(
        &self,
        table: &'static TableDeclaration,
        write: ConditionalWrite,
    ) -> Pending<'_, Result<Applied<RawRow>>> {
        self.call(|store| store.write_if(table, write))
    }

    fn get(&self, table: &'static TableDeclaration, key: Vec<Value>) -> Pending<'_, Result<Option<RawRow>>> {
        self.call(|store| store.get(table, key))
    }

    fn range(&self, request: RangeRequest) -> Pending<'_, Result<RawPage>> {
        self.call(|store| store.range(request))
    }

    fn fold(&self, folds: Vec<Fold>) -> Pending<'_, Result<Folded>> {
        self.call(|store| store.fold(folds))
    }

    fn totals(
        &self,
        totals: &'static TotalsDeclaration,
        key: Value,
    ) -> Pending<'_, Result<Option<RawTotals>>> {
        self.call(|store| store.totals(totals, key))
    }

    fn close_source(&self, totals: &'static TotalsDeclaration, source: Source) -> Pending<'_, Result<()>> {
        self.call(|store| store.close_source(totals, source))
    }

    fn sync(&self) -> Pending<'_, Result<()>> {
        self.call(|store| store.sync())
    }

    fn is_open(&self) -> bool {
        self.opened.get().is_some()
    }

    fn stats(&self) -> Stats {
        self.opened.get().map(History::stats).unwrap_or_default()
    }

    fn close(&self) -> Pending<'_, Result<()>> {
        self.is_closed.store(true, Relaxed);
        match self.opened.get() {
            Some(history) => history.store().close(),
            None => Box::pin(ready(Ok(()))),
        }
    }
}
