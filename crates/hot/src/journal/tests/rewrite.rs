//! Replacing the history by the state, interrupted anywhere.

use super::*;

/// Five transactions, a rewrite among further appends, another rewrite, and on. Ends where the power does.
fn scenario(files: &FaultDisk) -> (u64, u64) {
    let Ok((journal, mut writer, ..)) = open(files, Durability::Always) else { return (0, 0) };
    let _ = play(&journal, &mut writer);
    (journal.synced(), journal.appended())
}

fn play(journal: &Journal, writer: &mut Writer) -> Result<(), String> {
    let append =
        || journal.append(&transaction(journal.appended() + 1), vec![]).map(drop).map_err(|e| e.to_string());
    for _ in 0..2 {
        for _ in 0..3 {
            append()?;
            writer.cycle(NOW)?;
        }
        append()?;
        let moment = journal.appended();
        let mut rewrite = journal.begin_rewrite().map_err(|e| e.to_string())?;
        append()?;
        writer.cycle(NOW)?;
        for (key, value) in state_after(moment) {
            rewrite.write(&key, &[Write::Set(value, Expiry::Never)]).map_err(|e| e.to_string())?;
        }
        append()?;
        writer.cycle(NOW)?;
        rewrite.finish().map_err(|e| e.to_string())?;
    }
    append()?;
    writer.cycle(NOW)
}

#[test]
fn a_rewrite_interrupted_after_any_operation_loses_nothing() {
    let whole = FaultDisk::new();
    assert_eq!(scenario(&whole), (13, 13));
    for n in 0..=whole.operations() {
        for seed in 0..40 {
            let files = FaultDisk::new();
            files.power_off_after(n);
            let (settled, appended) = scenario(&files);
            let (_, loaded) =
                reload(&files.crash(seed)).unwrap_or_else(|e| panic!("operation {n} seed {seed}: {e}"));
            let found = prefix_length(&loaded);
            assert!(
                (settled..=appended).contains(&found),
                "operation {n}: {found} of {settled}..={appended}"
            );
        }
    }
}

#[test]
fn after_a_rewrite_only_the_base_and_what_followed_are_there() {
    let files = FaultDisk::new();
    scenario(&files);
    let manifest = String::from_utf8(files.contents(Path::new(MANIFEST)).unwrap()).unwrap();
    let (_, lines) = manifest.split_once('\n').unwrap();
    assert_eq!(
        lines,
        "file appendonly.aof.3.base.aof seq 3 type b by emberkeep\n\
         file appendonly.aof.3.incr.aof seq 3 type i by emberkeep\n"
    );
    let data = files
        .paths()
        .iter()
        .filter(|path| unlisted_files::data_name(path.file_name().unwrap().to_str().unwrap()).is_some())
        .count();
    assert_eq!(data, 2);
    assert_eq!(prefix_length(&reload(&files).unwrap().1), 13);
}

#[test]
fn an_abandoned_rewrite_leaves_files_that_load() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=4 {
        journal.append(&transaction(n), vec![]).unwrap();
        let mut rewrite = journal.begin_rewrite().unwrap();
        rewrite.write(b"half", &[Write::Del]).unwrap();
        assert!(journal.begin_rewrite().is_err_and(|error| error.is_transient()), "one at a time");
        drop(rewrite);
        writer.cycle(NOW).unwrap();
    }
    drop((journal, writer));
    let (recovery, loaded) = reload(&files.crash(0)).unwrap();
    assert_eq!((prefix_length(&loaded), recovery.files.len()), (4, 5));
}

#[test]
fn a_rewrite_is_wanted_when_the_files_have_doubled() {
    let files = FaultDisk::new();
    let small = JournalOptions { rewrite_bytes_min: 1000, ..options(&files, Durability::Always) };
    let (journal, mut writer, ..) = open_with(small.clone()).unwrap();
    let mut grow = |journal: &Journal| {
        let before = journal.disk_bytes();
        while !journal.wants_rewrite() {
            journal.append(&[set("key", &"x".repeat(100))], vec![]).unwrap();
            writer.cycle(NOW).unwrap();
        }
        journal.disk_bytes() - before
    };
    grow(&journal);
    drop(journal.begin_rewrite().unwrap());
    assert!(!journal.wants_rewrite(), "what was abandoned is not tried again at once");
    assert!(grow(&journal) >= 1000);
    let mut rewrite = journal.begin_rewrite().unwrap();
    assert!(!journal.wants_rewrite(), "one is running");
    writer.cycle(NOW).unwrap();
    for n in 0..30 {
        rewrite
            .write(format!("key{n}").as_bytes(), &[Write::Set(bytes(&"x".repeat(100)), Expiry::Never)])
            .unwrap();
    }
    rewrite.finish().unwrap();
    let base = journal.disk_bytes();
    assert!(!journal.wants_rewrite());
    writer.finish().unwrap();
    let on_disk: usize = files
        .paths()
        .iter()
        .filter(|p| unlisted_files::data_name(p.file_name().unwrap().to_str().unwrap()).is_some())
        .map(|path| files.contents(path).unwrap().len())
        .sum();
    assert_eq!(base as usize, on_disk, "sizes are exact");
}

#[test]
fn finishing_after_the_journal_was_closed_is_refused_and_touches_nothing() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    let mut rewrite = journal.begin_rewrite().unwrap();
    writer.cycle(NOW).unwrap();
    rewrite.write(b"count", &[Write::Set(bytes("1"), Expiry::Never)]).unwrap();
    journal.close().unwrap();
    drop((journal, writer));
    let next = open(&files, Durability::Always).unwrap();
    let before = files.paths();
    assert_eq!(rewrite.finish(), Err(Error::Closed));
    drop(next);
    assert!(files.paths().starts_with(&before[..1]));
    assert_eq!(prefix_length(&reload(&files).unwrap().1), 1);
}
