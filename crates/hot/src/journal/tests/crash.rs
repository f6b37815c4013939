//! The power goes at any moment.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// What a player does to a journal.
#[derive(Debug, Clone)]
enum Act {
    Append,
    /// The writer takes its turn after that many milliseconds.
    Turn(u64),
    /// The process ends without closing anything and starts again.
    Kill,
    /// The power goes; the disk keeps what this seed says.
    PowerLoss(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => Just(Act::Append),
        3 => (0u64..700).prop_map(Act::Turn),
        1 => Just(Act::Kill),
        1 => any::<u64>().prop_map(Act::PowerLoss),
    ];
    vec(act, 1..60)
}

/// Plays the acts. After each start the state is a prefix of what was appended, and holds all that was
/// synced.
fn play(durability: Durability, acts: &[Act]) {
    let mut files = FaultDisk::new();
    let (mut journal, mut writer, ..) = open(&files, durability).unwrap();
    let mut now = NOW;
    for act in acts {
        match act {
            Act::Append => {
                let next = journal.appended() + 1;
                assert_eq!(journal.append(&transaction(next), vec![]).unwrap(), next);
                continue;
            }
            Act::Turn(ms) => {
                now += Duration::from_millis(*ms);
                writer.cycle(now).unwrap();
                if durability == Durability::Always {
                    assert_eq!(journal.synced(), journal.appended(), "a turn settles all");
                }
                continue;
            }
            Act::Kill => {}
            Act::PowerLoss(seed) => files = files.crash(*seed),
        }
        let appended = journal.appended();
        // A process takes nothing with it that it had appended; a loss of power, nothing that was synced.
        let certain = if matches!(act, Act::Kill) { appended } else { journal.synced() };
        drop((journal, writer));
        let (again, again_writer, _, loaded) = open(&files, durability).unwrap();
        let found = prefix_length(&loaded);
        assert!((certain..=appended).contains(&found), "{found} of {certain}..={appended}");
        assert_eq!(again.appended(), found, "numbers go on where the state does");
        (journal, writer, now) = (again, again_writer, NOW);
    }
}

proptest! {
    #[test]
    fn always_keeps_all_that_was_settled(acts in acts()) {
        play(Durability::Always, &acts);
    }

    #[test]
    fn everysec_keeps_all_that_was_synced(acts in acts()) {
        play(Durability::EverySec, &acts);
    }

    #[test]
    fn without_syncs_a_crash_still_leaves_a_prefix(acts in acts()) {
        play(Durability::No, &acts);
    }
}

/// A mark says that all before it was synced. Without syncs there is none, also after the minute in which a kernel writes
/// data back: it need not have.
#[test]
fn without_syncs_an_old_journal_is_not_taken_for_damaged() {
    for lost in 0..200 {
        let files = FaultDisk::new();
        let (journal, mut writer, ..) = open(&files, Durability::No).unwrap();
        for n in 1..=5 {
            journal.append(&transaction(n), vec![]).unwrap();
            writer.cycle(Duration::from_secs(61 * (n - 1))).unwrap();
        }
        if let Err(error) = reload(&files.crash(lost)) {
            panic!("power loss {lost}: {error}");
        }
    }
}

#[test]
fn everysec_loses_at_most_the_last_second() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::EverySec).unwrap();
    for (n, at_ms) in [(1, 0), (2, 400), (3, 999), (4, 1000), (5, 1500), (6, 1999)] {
        journal.append(&transaction(n), vec![]).unwrap();
        writer.cycle(Duration::from_millis(at_ms)).unwrap();
    }
    assert_eq!(journal.synced(), 4, "the sync of second 1 took what was there");
    let (_, loaded) = reload(&files.crash(0)).unwrap();
    assert_eq!(prefix_length(&loaded), 4);
    writer.cycle(Duration::from_millis(2000)).unwrap();
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 6);
}

#[test]
fn a_killed_process_loses_nothing_that_it_had_appended() {
    for durability in [Durability::Always, Durability::EverySec, Durability::No] {
        let files = FaultDisk::new();
        let (journal, mut writer, ..) = open(&files, durability).unwrap();
        journal.append(&transaction(1), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
        journal.append(&transaction(2), vec![]).unwrap();
        drop((journal, writer));
        let (recovery, loaded) = reload(&files).unwrap();
        assert_eq!((prefix_length(&loaded), recovery.cut_bytes), (2, 0));
        // What has been shown after a start is on disk, even if the first process never synced it.
        assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
    }
}

#[test]
fn unwritten_space_is_cut_off_and_a_record_torn_in_the_middle_of_its_copy_too() {
    let files = FaultDisk::new();
    let (journal, writer, ..) = open(&files, Durability::EverySec).unwrap();
    (1..=3).for_each(|n| assert_eq!(journal.append(&transaction(n), vec![]).unwrap(), n));
    let content = journal.disk_bytes() as usize;
    drop((journal, writer));
    let bytes = files.contents(Path::new(INCREMENT)).unwrap();
    assert!(bytes.len() >= content + 1000 && bytes[content..].iter().all(|byte| *byte == 0));
    let second = bytes.windows(6).position(|window| window == b"#EK:3:").unwrap();
    for at in second..=content {
        let disk = files.crash(1);
        let mut torn = bytes.clone();
        torn[at..].fill(0);
        disk.overwrite(Path::new(INCREMENT), torn);
        let (recovery, loaded) = reload(&disk).unwrap();
        let whole = at == content;
        assert_eq!(prefix_length(&loaded), if whole { 3 } else { 2 });
        let kept = if whole { content } else { second };
        let left = disk.contents(Path::new(INCREMENT)).unwrap().split_off(kept);
        assert!(left.starts_with(b"#EK-SYNC:") && left.len() < 40, "the mark of this start, and no space");
        assert_eq!(recovery.cut_bytes > 0, !whole && at > second, "byte {at}");
    }
}

#[test]
fn the_first_start_may_be_interrupted_anywhere() {
    let whole = FaultDisk::new();
    open(&whole, Durability::Always).unwrap();
    for n in 0..=whole.operations() {
        for seed in 0..50 {
            let files = FaultDisk::new();
            files.power_off_after(n);
            let _ = open(&files, Durability::Always);
            let (_, loaded) = reload(&files.crash(seed)).unwrap();
            assert_eq!(prefix_length(&loaded), 0);
        }
    }
}

#[test]
fn the_start_after_a_crash_may_crash_too() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=4 {
        journal.append(&transaction(n), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
    }
    let mut torn = files.contents(Path::new(INCREMENT)).unwrap();
    torn.extend_from_slice(b"#EK:5:300:");
    files.overwrite(Path::new(INCREMENT), torn);
    drop((journal, writer));
    for n in 0..8 {
        for seed in 0..20 {
            let disk = files.crash(0);
            disk.power_off_after(n);
            let _ = reload(&disk);
            assert_eq!(prefix_length(&reload(&disk.crash(seed)).unwrap().1), 4);
        }
    }
}

#[test]
fn new_folders_survive_with_what_is_in_them() {
    let files = FaultDisk::new();
    let options = || JournalOptions {
        files: Arc::new(files.clone()),
        durability: Durability::Always,
        ..JournalOptions::new("/new/folders/data")
    };
    let (journal, mut writer, ..) = open_with(options()).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    let after = JournalOptions { files: Arc::new(files.crash(0)), ..options() };
    assert_eq!(prefix_length(&open_with(after).unwrap().3), 1);
}
