//! The engine as a whole, one file per promise.

mod checked;
mod contention;
mod dump;
mod dumps;
mod durability;
mod expiry;
mod keyspace;
mod model;
mod speed;
mod transactions;
mod yields;

use self::dump::dump;
use super::*;
use crate::command::*;
use crate::tx::RawTx;
use bytes::Bytes;
use std::time::Duration;

/// A body made of a closure.
struct Body<F>(F);

impl<F: FnMut(&mut RawTx<'_>) -> bool + Send + 'static> Transaction for Body<F> {
    fn run(&mut self, mut tx: RawTx<'_>) -> bool {
        (self.0)(&mut tx)
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

const T0: i64 = 1_700_000_000_000;

/// An engine whose time stands still until the test moves it, without a thread of its own.
fn by_hand() -> (Embedded, ManualClock) {
    let clock = ManualClock::at(T0);
    (options(&clock).open().unwrap(), clock)
}

fn options(clock: &ManualClock) -> Options {
    Embedded::builder().clock(Clock::Manual(clock.clone())).seed(7).background(false)
}

fn key(text: impl Into<String>) -> RawKey {
    Bytes::from(text.into())
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Commits a list of writes.
fn write(engine: &Embedded, writes: Vec<(RawKey, Write)>) -> Result<()> {
    transaction(engine, move |tx| {
        writes.iter().try_for_each(|(key, write)| tx.write(key.clone(), write.clone()))
    })
}

fn set(engine: &Embedded, name: &str, value: &str) {
    write(engine, vec![(key(name), Write::Set(bytes(value), Expiry::Never))]).unwrap();
}

/// Runs a body; the body's own error is the transaction's.
fn transaction<T: Send + 'static>(
    engine: &Embedded,
    mut body: impl FnMut(&mut RawTx<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let slot = Arc::new(Mutex::new(None));
    let result = slot.clone();
    let mut body = Body(move |tx: &mut RawTx<'_>| {
        let outcome = body(tx);
        let commits = outcome.is_ok();
        *slot.lock() = Some(outcome);
        commits
    });
    engine.run_local(b"test", &mut body, 1).expect("the embedded engine runs transactions in place").result?;
    let outcome = result.lock().take();
    outcome.expect("the body ran")
}

fn read(engine: &Embedded, name: &str, read: Read) -> Reply {
    engine.inner.read(name.as_bytes(), &read)
}

fn text(engine: &Embedded, name: &str) -> Option<String> {
    let mut out = b"something of before".to_vec();
    let found = engine.get_local(name.as_bytes(), &mut out).expect("answered at once").unwrap();
    found.then(|| String::from_utf8(out).unwrap())
}

fn number(tx: &mut RawTx<'_>, name: &RawKey) -> Result<i64> {
    let text = tx.text(name)?;
    Ok(text.map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap()))
}

fn put_number(tx: &mut RawTx<'_>, name: &RawKey, number: i64) -> Result<()> {
    tx.write(name.clone(), Write::Set(Bytes::from(number.to_string()), Expiry::Never))
}
