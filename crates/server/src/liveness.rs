//! Whether the process needs a restart, for `/healthz`.

use crate::limits::JOURNAL_STOPPED_MAX;
use emberkeep_hot::{self as hot, Store};
use parking_lot::Mutex;
use std::time::Instant;

/// When a probe first saw that the journal had stopped for good.
#[derive(Default)]
pub(crate) struct Liveness(Mutex<Option<Instant>>);

impl Liveness {
    /// The journal's error, once it has been stopped for longer than [`JOURNAL_STOPPED_MAX`].
    pub(crate) fn needs_restart(&self, store: &Store, now: Instant) -> Option<hot::Error> {
        let (stopped, mut since) = (store.stopped(), self.0.lock());
        if stopped.is_none() {
            *since = None;
        }
        stopped.filter(|_| now.duration_since(*since.get_or_insert(now)) >= JOURNAL_STOPPED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_hot::embedded::Embedded;
    use emberkeep_hot::journal::fault_disk::FaultDisk;
    use emberkeep_schema::{Number, Text, family, partition};
    use std::sync::Arc;
    use std::time::Duration;

    partition! {
        /// The one partition of this test.
        pub struct Everything = "everything";
    }
    family! {
        /// Transactions done.
        pub COUNT = "count" { kind: Text<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
    }

    fn on(disk: &FaultDisk) -> Store {
        let options = Embedded::builder().data("/data").files(Arc::new(disk.clone()));
        Store::new(Arc::new(options.open().expect("opens")))
    }

    /// Writes until the journal refuses.
    async fn refused(store: &Store) -> hot::Error {
        for n in 0..10_000 {
            let scope = store.scope(Everything);
            if let Err(error) = scope.transact(move |tx| tx.put(&COUNT.key(), &n)).await {
                return error;
            }
        }
        panic!("the journal takes everything");
    }

    #[tokio::test]
    async fn a_journal_that_does_not_resume_asks_for_a_restart() {
        let (full, broken) = (FaultDisk::new(), FaultDisk::new());
        let (resumes, stopped) = (on(&full), on(&broken));
        full.fill_at_write(1);
        broken.break_at_copy(1);
        for store in [&resumes, &stopped] {
            assert!(matches!(refused(store).await, hot::Error::JournalStopped { .. }));
            assert!(store.ready().await.is_err());
        }
        let (liveness, start, second) = (Liveness::default(), Instant::now(), Duration::from_secs(1));
        let asks = |store: &Store, after: Duration| liveness.needs_restart(store, start + after).is_some();
        assert!(!asks(&resumes, Duration::ZERO));
        assert!(!asks(&resumes, JOURNAL_STOPPED_MAX), "a full disk resumes by itself, however late");
        assert!(!asks(&stopped, second), "since now");
        assert!(!asks(&stopped, JOURNAL_STOPPED_MAX));
        assert!(asks(&stopped, JOURNAL_STOPPED_MAX + second));
        assert!(!asks(&resumes, JOURNAL_STOPPED_MAX + second), "another store");
        assert!(!asks(&stopped, JOURNAL_STOPPED_MAX + 2 * second), "a new stop");
    }
}
