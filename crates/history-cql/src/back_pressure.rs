//! Bounds of what is under way: rows and bytes of all calls, and requests to the cluster.

use crate::options::CqlOptions;
use emberkeep_history::{Error, Result, Stats};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes are counted in units of this size.
const UNIT_BYTES: usize = 1024;

/// The bounds of a store with its counters.
#[derive(Debug)]
pub(crate) struct BackPressure {
    rows: Semaphore,
    rows_max: usize,
    units: Semaphore,
    units_max: usize,
    requests: Semaphore,
    requests_max: usize,
    wait: Duration,
    waits: AtomicU64,
    refused: AtomicU64,
    rows_written: AtomicU64,
    commits: AtomicU64,
}

/// The place of a call; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'b> {
    _rows: SemaphorePermit<'b>,
    _units: SemaphorePermit<'b>,
}

impl BackPressure {
    pub(crate) fn new(options: &CqlOptions) -> BackPressure {
        let (rows_max, requests_max) = (options.queue_rows_max.max(1), options.in_flight_max.max(1));
        let units_max = (options.queue_bytes_max / UNIT_BYTES).max(1);
        BackPressure {
            rows: Semaphore::new(rows_max),
            rows_max,
            units: Semaphore::new(units_max),
            units_max,
            requests: Semaphore::new(requests_max),
            requests_max,
            wait: options.queue_wait,
            waits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            rows_written: AtomicU64::new(0),
            commits: AtomicU64::new(0),
        }
    }

    /// A place for so many rows and bytes. A call larger than all places gets all of them.
    pub(crate) async fn enter(&self, rows: usize, bytes: usize) -> Result<Place<'_>> {
        let rows = rows.clamp(1, self.rows_max) as u32;
        let units = (bytes / UNIT_BYTES + 1).min(self.units_max) as u32;
        if let (Ok(rows), Ok(units)) = (self.rows.try_acquire_many(rows), self.units.try_acquire_many(units))
        {
            return Ok(Place { _rows: rows, _units: units });
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let places = async {
            // Rows first in every call, so that two calls never wait for each other.
            let rows = self.rows.acquire_many(rows).await;
            (rows, self.units.acquire_many(units).await)
        };
        match tokio::time::timeout(self.wait, places).await {
            Ok((Ok(rows), Ok(units))) => Ok(Place { _rows: rows, _units: units }),
            Ok(_) => Err(Error::Closed),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                let queued_rows = self.rows_max - self.rows.available_permits();
                Err(Error::Busy { queued_rows, waited: began.elapsed() })
            }
        }
    }

    /// A place for one request to the cluster.
    pub(crate) async fn request(&self) -> Result<SemaphorePermit<'_>> {
        let began = Instant::now();
        match tokio::time::timeout(self.wait, self.requests.acquire()).await {
            Ok(permit) => permit.map_err(|_| Error::Closed),
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                let queued_rows = self.rows_max - self.rows.available_permits();
                Err(Error::Busy { queued_rows, waited: began.elapsed() })
            }
        }
    }

    /// Requests that one call may have under way.
    pub(crate) fn requests_max(&self) -> usize {
        self.requests_max
    }

    pub(crate) fn count_commit(&self, rows: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.rows_written.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Waits until no write is under way, and refuses new ones.
    pub(crate) async fn close(&self) {
        let all = self.rows.acquire_many(self.rows_max as u32).await;
        self.rows.close();
        self.requests.close();
        drop(all);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            rows_written: self.rows_written.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            queued_rows: self.rows_max - self.rows.available_permits().min(self.rows_max),
            queue_rows_max: self.rows_max,
            queued_bytes: (self.units_max - self.units.available_permits().min(self.units_max)) * UNIT_BYTES,
            queue_bytes_max: self.units_max * UNIT_BYTES,
            waits: self.waits.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            ..Stats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_store_refuses_and_counts() {
        let options =
            CqlOptions { queue_rows_max: 10, queue_wait: Duration::from_millis(1), ..CqlOptions::default() };
        let bounds = BackPressure::new(&options);
        let first = bounds.enter(8, 0).await.unwrap();
        let error = bounds.enter(3, 0).await.unwrap_err();
        assert!(matches!(error, Error::Busy { queued_rows: 8, .. }), "{error}");
        let stats = bounds.stats();
        assert_eq!((stats.queued_rows, stats.queue_rows_max, stats.waits, stats.refused), (8, 10, 1, 1));
        drop(first);
        assert!(bounds.enter(1_000, usize::MAX).await.is_ok(), "a call larger than the queue has it alone");
        bounds.close().await;
        assert_eq!(bounds.enter(1, 0).await.unwrap_err(), Error::Closed);
    }
}
