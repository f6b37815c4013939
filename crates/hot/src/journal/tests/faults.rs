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

#[test]
fn a_full_disk_ends_writing_and_the_half_record_is_cut_at_the_next_start() {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&step(1), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    files.fill_at_write(1);
    let sequence = journal.append(&step(2), vec![]).unwrap();
    assert!(journal.settle(sequence).now_or_never().is_none(), "not yet known");
    writer.turn(NOW).unwrap_err();
    assert!(stopped(journal.settle(sequence).now_or_never().unwrap()).contains("cannot write"));
    assert!(stopped(journal.append(&step(3), vec![])).contains("cannot write"));
    stopped(journal.begin_rewrite().map(|_| ()));
    stopped(journal.close());
    drop((journal, writer));
    let (recovery, loaded) = reload(&files.crash(1)).unwrap();
    assert_eq!(prefix_length(&loaded), 1, "{recovery:?}");
}

#[test]
fn a_disk_that_fills_at_any_write_never_loses_what_was_settled() {
    for n in 1..40 {
        let files = Forgetful::new();
        let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
        files.fill_at_write(n);
        for n in 1..=12 {
            if journal.append(&step(n), vec![]).is_err() || writer.turn(NOW).is_err() {
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
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&step(1), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    files.break_at_sync(1);
    let told = Arc::new(AtomicU64::new(0));
    let tell = {
        let told = Arc::clone(&told);
        Box::new(move || _ = told.fetch_add(1, Ordering::SeqCst))
    };
    let sequence = journal.append(&step(2), vec![tell]).unwrap();
    writer.turn(NOW).unwrap_err();
    let syncs = files.operations();
    writer.turn(NOW).ok();
    assert_eq!(files.operations(), syncs, "no second try");
    assert!(stopped(journal.settle(sequence).now_or_never().unwrap()).contains("cannot sync"));
    journal.settle(1).now_or_never().unwrap().unwrap();
    assert_eq!((journal.synced(), told.load(Ordering::SeqCst)), (1, 0), "nobody was told");
    drop((journal, writer));
    // The kernel dropped the pages: whatever is there instead is cut.
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 1);
}

#[test]
fn with_everysec_a_failed_sync_is_told_to_the_next_writer() {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::EverySec).unwrap();
    files.break_at_sync(1);
    journal.append(&step(1), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    journal.settle(1).now_or_never().unwrap().unwrap();
    writer.turn(Duration::from_secs(1)).unwrap_err();
    stopped(journal.append(&step(2), vec![]));
    stopped(journal.settle(1).now_or_never().unwrap());
}

#[test]
fn a_rewrite_that_fails_harms_nobody() {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&step(1), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    let mut rewrite = journal.begin_rewrite().unwrap();
    writer.turn(NOW).unwrap();
    rewrite.write(b"count", &[Write::Set(bytes("1"), Expiry::Never)]).unwrap();
    files.fill_at_write(1);
    assert!(matches!(rewrite.finish(), Err(Error::Folder { .. })));
    files.fill_at_write(u64::MAX / 2);
    journal.append(&step(2), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    drop((journal, writer));
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
    assert!(
        !files.paths().iter().any(|path| path.to_string_lossy().contains("base")),
        "its remains are removed"
    );
}
