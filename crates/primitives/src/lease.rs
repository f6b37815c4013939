//! A lease with an epoch: one holder at a time, and a number that proves which one (a fencing token).
//!
//! Promises:
//! 1. At any time at most one epoch passes [`check`](Lease::check). Called in a transaction that changes
//!    something, it refuses a holder that was paused for too long, at the moment of the commit: what the new
//!    holder reads cannot be changed by the old one.
//! 2. Every [`acquire`](Lease::acquire) that is granted gets an epoch that is greater than all earlier ones.
//!    It is at least the engine's milliseconds since 1970. So it also grows after a loss of the key, such as
//!    by a failover, as long as the clock of the new server is not behind the last epoch. If it is behind, a
//!    later epoch can be smaller than one that was granted before the loss. Without a loss no clock matters.
//! 3. A lease ends by [`release`](Lease::release) or by time; the engine's clock decides. After that any caller
//!    may acquire it. A holder that acquires its own lease again, such as a process that was restarted, gets
//!    it at once: the name of a holder belongs to one process at a time.
//! 4. A holder whose time has passed may still [`renew`](Lease::renew) while no other holder has acquired the lease.
//!
//! One key, the caller's: a [`LeaseRecord`] that never expires, because the epoch must survive the lease.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::{Clock, Embedded, ManualClock}};
//! use emberkeep_primitives::lease::{Acquisition, Lease, LeaseError, LeaseRecord};
//! use emberkeep_schema::{Json, Number, Text, family, partition};
//! use std::{sync::Arc, time::Duration};
//!
//! partition! {
//!     /// One galaxy.
//!     pub struct Galaxy = "galaxy";
//! }
//! family! {
//!     /// Which process runs the ticks.
//!     pub TICKER = "ember:ticker" {
//!         kind: Text<Json<LeaseRecord>>, partition: Galaxy, parts: (), ttl: persistent, owner: "ticks"
//!     }
//! }
//! family! {
//!     /// The last tick.
//!     pub TICK = "game:tick" {
//!         kind: Text<Number<i64>>, partition: Galaxy, parts: (), ttl: persistent, owner: "ticks"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = ManualClock::at(1_000);
//! let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
//! let scope = Store::new(Arc::new(engine)).scope(Galaxy);
//! let lease = Lease::new(TICKER.key(), Duration::from_secs(10))?;
//! let acquire = |holder: &'static str| {
//!     let lease = lease.clone();
//!     scope.transact(move |tx| lease.acquire(tx, holder))
//! };
//! let tick = |epoch| {
//!     let lease = lease.clone();
//!     scope.transact(move |tx| {
//!         lease.check(tx, epoch)?;
//!         let tick = tx.get(&TICK.key())?.unwrap_or(0) + 1;
//!         tx.put(&TICK.key(), &tick)?;
//!         Ok::<_, LeaseError>(tick)
//!     })
//! };
//! let Acquisition::Granted { epoch: first, .. } = acquire("one").await? else { panic!("no holder has it") };
//! assert_eq!(tick(first).await?, 1);
//! assert!(matches!(acquire("two").await?, Acquisition::Held { .. }));
//! clock.advance(10_001);
//! let Acquisition::Granted { epoch: second, .. } = acquire("two").await? else { panic!("its time passed") };
//! assert!(matches!(tick(first).await, Err(LeaseError::Superseded { .. })));
//! assert_eq!(tick(second).await?, 2);
//! # Ok(())
//! # }
//! ```

use crate::limits::{HOLDER_BYTES_MAX, LEASE_MS_MAX, NOTE_BYTES_MAX};
use emberkeep_hot::{Error, ReadTx, Result, Tx};
use emberkeep_schema::{Family, Json, Key, Partition, Persistent, Text, record};
use std::time::Duration;

record! {
    /// A lease as stored.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LeaseRecord {
        /// Who has it, or had it last.
        pub holder: String => "holder",
        /// The number of this grant.
        pub epoch: i64 => "epoch",
        /// The last millisecond in which it is held, since 1970. 0 = it was released.
        pub until_ms: i64 => "until",
        /// What a holder left for those after it, such as how far it has come.
        pub note: Option<String> => "note" optional,
    }
}

/// A lease at a key.
#[derive(Clone, Debug)]
pub struct Lease<F: Family> {
    key: Key<F>,
    ttl_ms: i64,
}

/// The result of [`Lease::acquire`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquisition {
    /// The caller has the lease after the commit.
    Granted {
        /// What every later call of this holder passes.
        epoch: i64,
        /// The last millisecond of the lease unless it is renewed, since 1970.
        until_ms: i64,
    },
    /// Another holder has it.
    Held {
        /// The holder's name, as it gave it to `acquire`.
        by: String,
        /// How long it lasts unless it is renewed.
        left: Duration,
    },
}

/// Why a holder is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LeaseError {
    /// Another grant came after this one, or the lease was lost with its key.
    #[error(
        "the lease with epoch {epoch} is over: epoch {current} is the present one; stop, and acquire it anew"
    )]
    Superseded {
        /// The epoch that the caller passed.
        epoch: i64,
        /// The greatest epoch; 0 if the key is gone.
        current: i64,
    },
    /// It was not renewed in time. No other holder has it yet.
    #[error("the lease with epoch {epoch} ended {ago:?} ago; renew it, or acquire it anew")]
    Ended {
        /// The epoch that the caller passed.
        epoch: i64,
        /// How long ago, by the engine's clock.
        ago: Duration,
    },
    /// Its holder released it.
    #[error("the lease with epoch {epoch} was released; acquire it anew")]
    Released {
        /// The epoch that the caller passed.
        epoch: i64,
    },
    /// An error of the store, unchanged: inside a transaction, pass it on with `?`.
    #[error(transparent)]
    Store(#[from] Error),
}

impl<P, F> Lease<F>
where
    P: Partition,
    F: Family<Partition = P, Kind = Text<Json<LeaseRecord>>, Ttl = Persistent>,
{
    /// The lease at a key. Each grant and each renewal is for `ttl`, from 1 ms to [`LEASE_MS_MAX`].
    pub fn new(key: Key<F>, ttl: Duration) -> Result<Self> {
        match i64::try_from(ttl.as_millis()) {
            Ok(ttl_ms @ 1..=LEASE_MS_MAX) => Ok(Lease { key, ttl_ms }),
            _ => Err(Error::Invalid {
                what: "lease",
                problem: format!(
                    "{ttl:?}, expected 1 ms to {:?}",
                    Duration::from_millis(LEASE_MS_MAX as u64)
                ),
            }),
        }
    }

    /// Acquires the lease if it is free or the holder's own.
    pub fn acquire(&self, tx: &mut Tx<'_, P>, holder: &str) -> Result<Acquisition> {
        check_text("holder", holder, HOLDER_BYTES_MAX)?;
        let (now, stored) = (tx.now(), tx.get(&self.key)?);
        if let Some(LeaseRecord { holder: by, until_ms, .. }) = &stored
            && *until_ms >= now
            && by != holder
        {
            // A lease is held in its last millisecond.
            let left = Duration::from_millis((until_ms - now).max(1) as u64);
            return Ok(Acquisition::Held { by: by.clone(), left });
        }
        let last = stored.as_ref().map_or(0, |stored| stored.epoch);
        let epoch = last.checked_add(1).ok_or_else(|| Error::Invalid {
            what: "epoch",
            problem: format!("{last} has no successor; an external client wrote it, delete the key"),
        })?;
        let (epoch, until_ms) = (epoch.max(now), now + self.ttl_ms);
        let (note, extra) = stored.map(|stored| (stored.note, stored.extra)).unwrap_or_default();
        tx.put(&self.key, &LeaseRecord { holder: holder.to_owned(), epoch, until_ms, note, extra })?;
        Ok(Acquisition::Granted { epoch, until_ms })
    }

    /// Extends the lease and returns its new last millisecond.
    pub fn renew(&self, tx: &mut Tx<'_, P>, epoch: i64) -> Result<i64, LeaseError> {
        let mut record = self.current(tx, epoch)?;
        record.until_ms = tx.now() + self.ttl_ms;
        tx.put(&self.key, &record)?;
        Ok(record.until_ms)
    }

    /// Ends the lease. `false` = it was not the caller's any more, or has ended.
    pub fn release(&self, tx: &mut Tx<'_, P>, epoch: i64) -> Result<bool> {
        let mut record = match self.current(tx, epoch) {
            Ok(record) => record,
            Err(LeaseError::Store(error)) => return Err(error),
            Err(_) => return Ok(false),
        };
        let held = record.until_ms >= tx.now();
        record.until_ms = 0;
        tx.put(&self.key, &record)?;
        Ok(held)
    }

    /// Refuses a caller that does not hold the lease now. For the transactions that it protects.
    pub fn check(&self, tx: &mut ReadTx<'_, P>, epoch: i64) -> Result<(), LeaseError> {
        let (until, now) = (self.current(tx, epoch)?.until_ms, tx.now());
        if until < now { Err(LeaseError::Ended { epoch, ago: since(until, now) }) } else { Ok(()) }
    }

    /// Leaves a note for the holders after this one. It refuses like [`check`](Self::check), and stays when the lease
    /// ends.
    pub fn leave_note(&self, tx: &mut Tx<'_, P>, epoch: i64, note: &str) -> Result<(), LeaseError> {
        check_text("note", note, NOTE_BYTES_MAX)?;
        self.check(tx, epoch)?;
        let mut record = self.current(tx, epoch)?;
        if record.note.as_deref() != Some(note) {
            record.note = Some(note.to_owned());
            tx.put(&self.key, &record)?;
        }
        Ok(())
    }

    /// The note of the last holder that left one.
    pub fn note(&self, tx: &mut ReadTx<'_, P>) -> Result<Option<String>> {
        Ok(tx.get(&self.key)?.and_then(|record| record.note))
    }

    /// Who holds it now.
    pub fn holder(&self, tx: &mut ReadTx<'_, P>) -> Result<Option<LeaseRecord>> {
        let now = tx.now();
        Ok(tx.get(&self.key)?.filter(|record| record.until_ms >= now))
    }

    /// The record of this epoch.
    fn current(&self, tx: &mut ReadTx<'_, P>, epoch: i64) -> Result<LeaseRecord, LeaseError> {
        match tx.get(&self.key)? {
            Some(record) if record.epoch == epoch && record.until_ms == 0 => {
                Err(LeaseError::Released { epoch })
            }
            Some(record) if record.epoch == epoch => Ok(record),
            other => {
                let current = other.map_or(0, |record| record.epoch);
                Err(LeaseError::Superseded { epoch, current })
            }
        }
    }
}

fn since(end_ms: i64, now_ms: i64) -> Duration {
    Duration::from_millis(now_ms.saturating_sub(end_ms).max(0) as u64)
}

fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<()> {
    let bytes = text.len();
    if (1..=bytes_max).contains(&bytes) {
        return Ok(());
    }
    Err(Error::Invalid { what, problem: format!("{bytes} bytes, expected 1 to {bytes_max}") })
}
