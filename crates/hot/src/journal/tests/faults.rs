//! The disk is full, the disk fails: writing ends loudly, and nothing is pretended.

use super::*;
use futures_util::FutureExt;
use std::sync::atomic::AtomicU64;

fn stopped(result: Result<impl fmt::Debug>) -> String {
    match result {
        Err(Error::JournalStopped { reason }) => reason,
        other => panic!("expected JournalStopped, got {other:?}"),
    }
}

/// Appends until the disk refuses; answers how many it took.
fn fill(journal: &Journal) -> u64 {
    let full = (1..10_000).find_map(|_| journal.append(&transaction(journal.appended() + 1), vec![]).err());
    assert!(stopped(Err::<(), _>(full.expect("full at last"))).contains("resumes by itself"));
    journal.appended()
}

#[test]
fn a_full_disk_refuses_before_anything_is_written_and_goes_on_when_it_has_space() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    files.fill_at_write(1);
    let taken = fill(&journal);
    let content = journal.disk_bytes() as usize;
    let written = |files: &FaultDisk| files.contents(Path::new(INCREMENT)).unwrap()[..content].to_vec();
    let before = written(&files);
    stopped(journal.running());
    stopped(journal.begin_rewrite().map(|_| ()));
    assert_eq!(journal.stopped(), None, "not for good");
    writer.cycle(NOW).unwrap();
    assert_eq!(journal.synced(), taken, "what was taken is synced all the same");
    let ms = Duration::from_millis;
    writer.cycle(ms(1)).unwrap();
    stopped(journal.append(&transaction(taken + 1), vec![]));
    assert_eq!(journal.appended(), taken, "what was refused has no number");
    assert!(written(&files) == before);
    files.fill_at_write(u64::MAX / 2);
    writer.cycle(ms(500)).unwrap();
    stopped(journal.running());
    writer.cycle(ms(1_000)).unwrap();
    journal.running().unwrap();
    assert_eq!(journal.append(&transaction(taken + 1), vec![]).unwrap(), taken + 1);
    writer.cycle(ms(1_001)).unwrap();
    drop((journal, writer));
    let (recovery, loaded) = reload(&files.crash(0)).unwrap();
    assert_eq!((prefix_length(&loaded), recovery.cut_bytes), (taken + 1, 0));
}

#[test]
fn one_huge_record_that_does_not_fit_is_refused_alone() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    files.fill_at_write(1);
    stopped(journal.append(&[set("huge", &"x".repeat(JOURNAL_RESERVE_BYTES_MAX))], vec![]));
    journal.append(&transaction(2), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
}

#[test]
fn a_copy_that_fails_stops_the_journal_for_good_and_the_half_record_is_cut() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    // The line is copied, the body is not.
    files.power_off_after(1);
    assert!(stopped(journal.append(&transaction(2), vec![])).contains("cannot write"));
    assert!(stopped(journal.append(&transaction(3), vec![])).contains("cannot write"));
    assert!(journal.stopped().is_some());
    writer.cycle(NOW).unwrap_err();
    stopped(journal.close());
    drop((journal, writer));
    for seed in 0..20 {
        assert_eq!(prefix_length(&reload(&files.crash(seed)).unwrap().1), 1);
    }
}

#[test]
fn a_disk_that_fills_at_any_write_never_loses_what_was_settled() {
    for n in 1..40 {
        let files = FaultDisk::new();
        let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
        files.fill_at_write(n);
        for n in 1..=12 {
            if journal.append(&transaction(n), vec![]).is_err() || writer.cycle(NOW).is_err() {
                break;
            }
        }
        let settled = journal.synced();
        drop((journal, writer));
        for seed in 0..20 {
            assert!(prefix_length(&reload(&files.crash(seed)).unwrap().1) >= settled);
        }
    }
}

#[test]
fn a_failed_sync_is_not_tried_again_and_its_transactions_are_not_settled() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    files.break_at_sync(1);
    let delivered = Arc::new(AtomicU64::new(0));
    let tell = {
        let delivered = Arc::clone(&delivered);
        Box::new(move || _ = delivered.fetch_add(1, Ordering::SeqCst))
    };
    let sequence = journal.append(&transaction(2), vec![tell]).unwrap();
    writer.cycle(NOW).unwrap_err();
    let syncs = files.operations();
    writer.cycle(NOW).ok();
    assert_eq!(files.operations(), syncs, "no second try");
    assert!(stopped(journal.wait_durable(sequence).now_or_never().unwrap()).contains("cannot sync"));
    journal.wait_durable(1).now_or_never().unwrap().unwrap();
    assert_eq!((journal.synced(), delivered.load(Ordering::SeqCst)), (1, 0), "nothing was delivered");
    drop((journal, writer));
    // The kernel dropped the pages: whatever is there instead is cut.
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 1);
}

#[test]
fn with_everysec_a_failed_sync_is_reported_to_the_next_writer() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::EverySec).unwrap();
    files.break_at_sync(1);
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    journal.wait_durable(1).now_or_never().unwrap().unwrap();
    writer.cycle(Duration::from_secs(1)).unwrap_err();
    stopped(journal.append(&transaction(2), vec![]));
    stopped(journal.wait_durable(1).now_or_never().unwrap());
}

#[test]
fn a_rewrite_that_fails_does_no_harm() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    let mut rewrite = journal.begin_rewrite().unwrap();
    writer.cycle(NOW).unwrap();
    rewrite.write(b"count", &[Write::Set(bytes("1"), Expiry::Never)]).unwrap();
    files.fill_at_write(1);
    assert!(matches!(rewrite.finish(), Err(Error::Folder { .. })));
    files.fill_at_write(u64::MAX / 2);
    journal.append(&transaction(2), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    drop((journal, writer));
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
    assert!(
        !files.paths().iter().any(|path| path.to_string_lossy().contains("base")),
        "its remains are removed"
    );
}

#[test]
fn nothing_is_taken_behind_a_copy_that_failed() {
    for round in 0..300 {
        let files = FaultDisk::new();
        let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
        files.break_at_copy(round % 40 + 10);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..30 {
                        let appended = journal.append(&[(bytes("count"), Write::IncrBy(1))], vec![]);
                        taken.fetch_add(u64::from(appended.is_ok()), Ordering::SeqCst);
                    }
                });
            }
            // Its marks are copied as well, and may be what fails.
            scope.spawn(|| (0..30).for_each(|_| _ = writer.cycle(NOW)));
        });
        assert!(journal.stopped().is_some());
        drop((journal, writer));
        let found = reload(&files).unwrap().1.len() as u64;
        assert_eq!(found, taken.into_inner(), "round {round}");
    }
}

#[test]
fn a_rewrite_that_cannot_be_prepared_leaves_no_file_and_is_not_tried_again_at_once() {
    let faults: [fn(&FaultDisk); 5] = [
        |files| files.fill_at_write(1),
        |files| files.fill_at_write(2),
        |files| files.fill_at_write(3),
        |files| files.break_at_sync(1),
        |files| files.break_at_sync(2),
    ];
    for (number, fail) in faults.into_iter().enumerate() {
        let files = FaultDisk::new();
        let small = JournalOptions { rewrite_bytes_min: 50, ..options(&files, Durability::Always) };
        let (journal, mut writer, ..) = open_with(small).unwrap();
        journal.append(&transaction(1), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
        assert!(journal.wants_rewrite());
        let data = || -> Vec<_> {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            files.paths().iter().map(name).filter(|name| unlisted_files::data_name(name).is_some()).collect()
        };
        fail(&files);
        journal.begin_rewrite().map(drop).unwrap_err();
        assert_eq!(data(), ["appendonly.aof.1.incr.aof"], "fault {number}");
        assert!(!journal.wants_rewrite(), "fault {number}");
        files.fill_at_write(u64::MAX / 2);
        journal.append(&[set("key", &"x".repeat(50))], vec![]).unwrap();
        writer.cycle(NOW).unwrap();
        assert!(journal.wants_rewrite(), "it has grown further");
        drop(journal.begin_rewrite().unwrap());
        drop((journal, writer));
        assert_eq!(reload(&files.crash(0)).unwrap().1.len(), 2);
    }
}

#[test]
fn with_always_messages_without_writes_pass_on_a_full_disk() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    files.fill_at_write(1);
    let taken = fill(&journal);
    let delivered = Arc::new(AtomicU64::new(0));
    let tell: Delivery = {
        let delivered = Arc::clone(&delivered);
        Box::new(move || _ = delivered.fetch_add(1, Ordering::SeqCst))
    };
    assert_eq!(journal.append(&[], vec![tell]).unwrap(), taken);
    writer.cycle(NOW).unwrap();
    assert_eq!((journal.synced(), delivered.load(Ordering::SeqCst)), (taken, 1));
}

#[test]
fn whichever_of_two_closes_returns_first_everything_is_on_disk_and_the_folder_free() {
    for _ in 0..200 {
        let files = FaultDisk::new();
        let (journal, _) = Journal::open(options(&files, Durability::No), &mut |_, _| Ok(())).unwrap();
        journal.append(&transaction(1), vec![]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    journal.close().unwrap();
                    assert_eq!(journal.synced(), 1);
                });
            }
        });
        assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 1);
    }
}
