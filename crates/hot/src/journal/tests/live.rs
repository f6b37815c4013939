//! With the thread, on the real disk.

use super::*;
use futures_util::FutureExt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("emberkeep-journal-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Folder(std::env::temp_dir().join(name))
    }

    fn open(&self, durability: Durability) -> Result<(Journal, Step)> {
        let options = JournalOptions { durability, ..JournalOptions::new(&self.0) };
        let mut loaded = Step::new();
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
            assert_eq!(journal.append(&step(n), vec![]).unwrap(), n);
        }
        journal.close().unwrap();
        assert_eq!((journal.synced(), journal.pending_bytes()), (200, 0));
        assert_eq!(journal.append(&step(201), vec![]), Err(Error::Closed));
        journal.close().unwrap();
        let (_journal, loaded) = folder.open(durability).unwrap();
        assert_eq!(prefix_length(&loaded), 200);
    }
}

#[test]
fn many_threads_share_one_sync_and_hear_of_it_in_order() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    // Stands for the shard locks: number and message belong together.
    let turn = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let guard = turn.lock();
                    let next = journal.appended() + 1;
                    let tell = {
                        let told = Arc::clone(&told);
                        Box::new(move || told.lock().push(next)) as Delivery
                    };
                    let sequence = journal.append(&step(next), vec![tell]).unwrap();
                    drop(guard);
                    wait(journal.settle(sequence)).unwrap();
                    assert!(journal.synced() >= sequence);
                }
            });
        }
    });
    journal.close().unwrap();
    assert_eq!(*told.lock(), (1..=800).collect::<Vec<u64>>());
    assert_eq!(prefix_length(&folder.open(Durability::Always).unwrap().1), 800);
}

#[test]
fn messages_of_a_step_that_writes_nothing_follow_what_came_before() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::Always).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |n: u64| {
        let told = Arc::clone(&told);
        vec![Box::new(move || told.lock().push(n)) as Delivery]
    };
    journal.append(&step(1), tell(1)).unwrap();
    assert_eq!(journal.append(&[], tell(2)).unwrap(), 1, "no number of its own");
    journal.append(&[], vec![Box::new(|| panic!("a bad handler"))]).unwrap();
    journal.append(&step(2), tell(3)).unwrap();
    journal.close().unwrap();
    assert_eq!(*told.lock(), [1, 2, 3]);
}

#[test]
fn a_second_opener_is_refused_and_told_who_has_the_folder() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::No).unwrap();
    let refused = folder.open(Durability::No).err().unwrap();
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    journal.close().unwrap();
    folder.open(Durability::No).unwrap();
}

#[test]
fn a_full_buffer_makes_appenders_wait_and_loses_nothing() {
    let folder = Folder::new();
    let options = JournalOptions { buffer_bytes_max: 2000, ..JournalOptions::new(&folder.0) };
    let (journal, _) = Journal::open(options, &mut |_, _| Ok(())).unwrap();
    thread::scope(|scope| {
        for n in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for _ in 0..500 {
                    journal.append(&[set(&format!("key{n}"), &"x".repeat(300))], vec![]).unwrap();
                    assert!(journal.shared.buffer.lock().bytes.len() <= 2000);
                }
            });
        }
    });
    journal.append(&[set("large", &"x".repeat(10_000))], vec![]).unwrap();
    journal.close().unwrap();
    assert_eq!(folder.open(Durability::No).unwrap().1.len(), 2001);
}

#[test]
fn appenders_that_wait_for_room_hear_that_the_journal_stopped() {
    let files = Forgetful::new();
    let (journal, mut writer, ..) =
        open_with(JournalOptions { buffer_bytes_max: 100, ..options(&files, Durability::Always) }).unwrap();
    journal.append(&[set("key", &"x".repeat(100))], vec![]).unwrap();
    let waiting = AtomicBool::new(false);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            waiting.store(true, Ordering::SeqCst);
            journal.append(&step(2), vec![])
        });
        while !waiting.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        files.power_off_after(0);
        writer.turn(NOW).unwrap_err();
        // The writer makes room before it writes: who was quick enough hears of it when it waits for the disk.
        let heard = blocked.join().unwrap().and_then(|number| journal.settle(number).now_or_never().unwrap());
        assert!(matches!(heard, Err(Error::JournalStopped { .. })), "{heard:?}");
    });
}

#[test]
fn everysec_writes_and_syncs_by_itself() {
    let folder = Folder::new();
    let (journal, _) = folder.open(Durability::EverySec).unwrap();
    journal.append(&step(1), vec![]).unwrap();
    journal.settle(1).now_or_never().unwrap().unwrap();
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
            journal.append(&step(journal.appended() + 1), vec![]).unwrap();
        }
        let mut rewrite = journal.begin_rewrite().unwrap();
        let moment = journal.appended();
        journal.append(&step(moment + 1), vec![]).unwrap();
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
            &step(1),
            vec![Box::new(move || {
                thread::sleep(Duration::from_millis(20));
                drop(held)
            })],
        )
        .unwrap();
    journal.append(&step(2), vec![]).unwrap();
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
