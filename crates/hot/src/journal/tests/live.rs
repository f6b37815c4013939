//! With the thread, on the real disk.

use super::*;
use futures_util::FutureExt;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("emberkeep-journal-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Folder(std::env::temp_dir().join(name))
    }

    fn open(&self, durability: Durability) -> Result<(Journal, Transaction)> {
        let options = JournalOptions { durability, ..JournalOptions::new(&self.0) };
        let mut loaded = Transaction::new();
        let (journal, _) = Journal::open(options, &mut |key, write| {
            loaded.push((key, write));
            Ok(())
        })?;
        Ok((journal, loaded))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits on a plain thread: there is no runtime here, and none is needed.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn what_was_closed_is_loaded() {
    for durability in [Durability::Always, Durability::EverySec, Durability::No] {
        let folder = Folder::new();
        let (journal, _) = folder.open(durability).unwrap();
        for n in 1..=200 {
            assert_eq!(journal.append(&transaction(n), vec![]).unwrap(), n);
        }
        journal.close().unwrap();
        assert_eq!((journal.synced(), journal.pending_bytes()), (200, 0));
        assert_eq!(journal.append(&transaction(201), vec![]), Err(Error::Closed));
        journal.close().unwrap();
        let (_journal, loaded) = folder.open(durability).unwrap();
        assert_eq!(prefix_length(&loaded), 200);
    }
}

#[test]
fn many_threads_share_one_sync_and_hear_of_it_in_order() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    let delivered = Arc::new(Mutex::new(Vec::new()));
    // Stands for the shard locks: number and message belong together.
    let turn = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let guard = turn.lock();
                    let next = journal.appended() + 1;
                    let tell = {
                        let delivered = Arc::clone(&delivered);
                        Box::new(move || delivered.lock().push(next)) as Delivery
                    };
                    let sequence = journal.append(&transaction(next), vec![tell]).unwrap();
                    drop(guard);
                    wait(journal.wait_durable(sequence)).unwrap();
                    assert!(journal.synced() >= sequence);
                }
            });
        }
    });
    journal.close().unwrap();
    assert_eq!(*delivered.lock(), (1..=800).collect::<Vec<u64>>());
    assert_eq!(prefix_length(&folder.open(Durability::Always).unwrap().1), 800);
}

#[test]
fn messages_of_a_transaction_that_writes_nothing_follow_what_came_before() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let tell = |n: u64| {
        let delivered = Arc::clone(&delivered);
        vec![Box::new(move || delivered.lock().push(n)) as Delivery]
    };
    journal.append(&transaction(1), tell(1)).unwrap();
    assert_eq!(journal.append(&[], tell(2)).unwrap(), 1, "no number of its own");
    journal.append(&[], vec![Box::new(|| panic!("a bad handler"))]).unwrap();
    journal.append(&transaction(2), tell(3)).unwrap();
    journal.close().unwrap();
    assert_eq!(*delivered.lock(), [1, 2, 3]);
}

#[test]
fn a_second_opener_is_refused_with_the_owner_of_the_folder() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::No).unwrap();
    let refused = folder.open(Durability::No).err().unwrap();
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    journal.close().unwrap();
    folder.open(Durability::No).unwrap();
}

#[test]
fn records_of_any_size_from_many_threads_fill_one_space_after_the_other() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::EverySec).unwrap();
    thread::scope(|scope| {
        for n in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for _ in 0..2_000 {
                    journal.append(&[set(&format!("key{n}"), &"x".repeat(300))], vec![]).unwrap();
                }
            });
        }
    });
    let large = 2 * JOURNAL_RESERVE_BYTES_MAX + 1;
    journal.append(&[set("large", &"x".repeat(large))], vec![]).unwrap();
    let content = journal.disk_bytes();
    let file = folder.0.join("appendonlydir/appendonly.aof.1.incr.aof");
    let on_disk = || std::fs::metadata(&file).unwrap().len();
    assert!(on_disk() >= content && on_disk() <= content + 3 * JOURNAL_RESERVE_BYTES_MAX as u64);
    journal.close().unwrap();
    assert_eq!(on_disk(), journal.disk_bytes(), "a proper end leaves no reserved space");
    let (_journal, loaded) = folder.open(Durability::No).unwrap();
    assert_eq!(loaded.len(), 8_001);
}

#[test]
fn a_small_journal_takes_little_space() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::EverySec).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    let file = folder.0.join("appendonlydir/appendonly.aof.1.incr.aof");
    assert!(std::fs::metadata(&file).unwrap().len() <= 3 * JOURNAL_RESERVE_BYTES_MIN as u64);
}

#[test]
fn a_writer_that_panics_stops_the_journal_and_no_call_hangs() {
    let files = FaultDisk::new();
    let (journal, _) = Journal::open(options(&files, Durability::Always), &mut |_, _| Ok(())).unwrap();
    files.panic_at_sync(1);
    let settled =
        journal.append(&transaction(1), vec![]).and_then(|sequence| wait(journal.wait_durable(sequence)));
    assert!(matches!(settled, Err(Error::JournalStopped { .. })), "{settled:?}");
    assert!(matches!(journal.append(&transaction(2), vec![]), Err(Error::JournalStopped { .. })));
    assert!(journal.running().is_err() && journal.stopped().is_some());
}

/// A log whose every line panics, as one on a full disk may.
struct PanickingLog;

impl tracing::Subscriber for PanickingLog {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        panic!("the log cannot be written")
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_journal_that_fails_is_marked_even_if_its_log_line_panics() {
    for (durability, full) in [Durability::Always, Durability::EverySec].into_iter().zip([false, true]) {
        let files = FaultDisk::new();
        let (journal, writer, ..) = open(&files, durability).unwrap();
        journal.append(&transaction(1), vec![]).unwrap();
        files.break_at_sync(1);
        if full {
            files.fill_at_write(1);
        }
        let thread = thread::spawn(|| tracing::subscriber::with_default(PanickingLog, || writer.run()));
        let deadline = Instant::now() + Duration::from_secs(20);
        while journal.running().is_ok() {
            assert!(Instant::now() < deadline, "the journal is marked");
            thread::yield_now();
        }
        assert!(matches!(journal.append(&transaction(2), vec![]), Err(Error::JournalStopped { .. })));
        let settled = wait(journal.wait_durable(1));
        assert!(full || matches!(settled, Err(Error::JournalStopped { .. })), "{settled:?}");
        let _ = journal.close();
        thread.join().expect("no panic leaves the writer");
    }
}

#[test]
fn everysec_writes_and_syncs_by_itself() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::EverySec).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    journal.wait_durable(1).now_or_never().unwrap().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while journal.synced() < 1 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rewrite_runs_beside_appends() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    for round in 1..=3 {
        for _ in 0..50 {
            journal.append(&transaction(journal.appended() + 1), vec![]).unwrap();
        }
        let mut rewrite = journal.begin_rewrite().unwrap();
        let moment = journal.appended();
        journal.append(&transaction(moment + 1), vec![]).unwrap();
        for (key, value) in state_after(moment) {
            rewrite.write(&key, &[Write::Set(value, Expiry::Never)]).unwrap();
        }
        rewrite.finish().unwrap();
        assert_eq!(journal.appended(), round * 51);
    }
    drop(journal);
    assert_eq!(prefix_length(&folder.open(Durability::Always).unwrap().1), 153);
}

#[test]
fn the_last_handle_may_be_dropped_by_a_message() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    let journal = Arc::new(journal);
    let held = Arc::clone(&journal);
    journal
        .append(
            &transaction(1),
            vec![Box::new(move || {
                thread::sleep(Duration::from_millis(20));
                drop(held)
            })],
        )
        .unwrap();
    journal.append(&transaction(2), vec![]).unwrap();
    drop(journal);
    let deadline = Instant::now() + Duration::from_secs(20);
    let loaded = loop {
        match folder.open(Durability::Always) {
            Ok((_, loaded)) => break loaded,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(prefix_length(&loaded), 2);
}
