//! Bad sectors, helpful people, lost files: never loaded silently, never made worse.

use super::*;

/// A disk with a journal of some steps, each synced for itself, closed properly or not.
fn written(count: u64, closed: bool) -> Forgetful {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=count {
        journal.append(&step(n), vec![]).unwrap();
        if closed || n < count {
            writer.turn(NOW).unwrap();
        }
    }
    writer.turn(NOW).unwrap();
    if !closed {
        // The crash came between the last sync and its mark.
        let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
        let mark = bytes.windows(8).rposition(|window| window == b"#EK-SYNC").unwrap();
        bytes.truncate(mark);
        files.overwrite(Path::new(INCREMENT), bytes);
    }
    files
}

/// The same after a rewrite: a base and one increment.
fn rewritten() -> Forgetful {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=9 {
        if n == 6 {
            let mut rewrite = journal.begin_rewrite().unwrap();
            writer.turn(NOW).unwrap();
            for (key, value) in state_after(5) {
                rewrite.write(&key, &[Write::Set(value, Expiry::Never)]).unwrap();
            }
            rewrite.finish().unwrap();
        }
        journal.append(&step(n), vec![]).unwrap();
        writer.turn(NOW).unwrap();
    }
    files
}

fn contents(files: &Forgetful) -> Vec<(PathBuf, Vec<u8>)> {
    files.paths().into_iter().map(|path| (path.clone(), files.contents(&path).unwrap())).collect()
}

fn damage(result: Result<(Recovery, Step)>) -> (String, u64, String) {
    match result {
        Err(Error::DamagedJournal { file, offset, problem, .. }) => (file, offset, problem),
        other => panic!("expected damage, got {other:?}"),
    }
}

/// Flips every bit of every byte of every file, one at a time.
fn flip_each(files: &Forgetful, mut check: impl FnMut(&Path, usize, Result<(Recovery, Step)>)) {
    for (path, bytes) in contents(files) {
        for at in 0..bytes.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let disk = files.crash(0);
                let mut flipped = bytes.clone();
                flipped[at] ^= flip;
                disk.overwrite(&path, flipped);
                let before = contents(&disk);
                let result = reload(&disk);
                if result.is_err() {
                    assert_eq!(contents(&disk), before, "a refusal changes nothing");
                }
                check(&path, at, result);
            }
        }
    }
}

#[test]
fn after_a_proper_end_no_flipped_bit_changes_or_loses_anything_silently() {
    for files in [written(9, true), rewritten()] {
        flip_each(&files, |path, at, result| match result {
            Ok((_, loaded)) => assert_eq!(prefix_length(&loaded), 9, "{} byte {at}", path.display()),
            Err(Error::DamagedJournal { .. }) => {}
            Err(other) => panic!("{other}"),
        });
    }
}

#[test]
fn after_a_crash_a_flipped_bit_costs_at_most_the_last_record_and_is_reported() {
    flip_each(&written(5, false), |path, at, result| match result {
        Ok((recovery, loaded)) if prefix_length(&loaded) < 5 => {
            assert_eq!(prefix_length(&loaded), 4, "{} byte {at}", path.display());
            assert!(recovery.cut_bytes > 0);
        }
        Ok(_) | Err(Error::DamagedJournal { .. }) => {}
        Err(other) => panic!("{other}"),
    });
}

#[test]
fn an_end_torn_at_any_byte_is_cut_there_and_writing_goes_on() {
    let files = written(6, true);
    let bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in header..bytes.len() {
        let disk = files.crash(0);
        disk.overwrite(Path::new(INCREMENT), bytes[..length].to_vec());
        let (journal, mut writer, recovery, loaded) = open(&disk, Durability::Always).unwrap();
        let found = prefix_length(&loaded);
        let whole = length as u64 - recovery.cut_bytes;
        assert_eq!(disk.contents(Path::new(INCREMENT)).unwrap().len() as u64, whole);
        journal.append(&step(found + 1), vec![]).unwrap();
        writer.turn(NOW).unwrap();
        drop((journal, writer));
        let (recovery, loaded) = reload(&disk.crash(0)).unwrap();
        assert_eq!((prefix_length(&loaded), recovery.cut_bytes), (found + 1, 0));
    }
}

#[test]
fn a_torn_group_with_an_intact_record_behind_the_hole_is_cut_because_nobody_was_told() {
    let files = Forgetful::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&step(1), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    let synced = files.contents(Path::new(INCREMENT)).unwrap().len();
    (2..=4).for_each(|n| assert_eq!(journal.append(&step(n), vec![]).unwrap(), n));
    writer.turn(NOW).unwrap();
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let mark = bytes.windows(8).rposition(|window| window == b"#EK-SYNC").unwrap();
    bytes.truncate(mark);
    bytes[synced..synced + 20].fill(0);
    let torn = bytes.len() - synced;
    files.overwrite(Path::new(INCREMENT), bytes);
    drop((journal, writer));
    let (recovery, loaded) = reload(&files).unwrap();
    assert_eq!((prefix_length(&loaded), recovery.cut_bytes), (1, torn as u64));
}

#[test]
fn the_same_hole_before_a_mark_is_damage() {
    let files = written(4, true);
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let second = bytes.windows(6).position(|window| window == b"#EK:2:").unwrap();
    bytes[second..second + 20].fill(0);
    files.overwrite(Path::new(INCREMENT), bytes);
    let (file, offset, _) = damage(reload(&files));
    assert_eq!((file.as_str(), offset), ("appendonly.aof.1.incr.aof", second as u64));
}

#[test]
fn a_missing_record_is_damage() {
    let files = written(4, true);
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let at = |needle: &[u8]| bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    let (second, third) = (at(b"#EK:2:"), at(b"#EK:3:"));
    bytes.drain(second..third);
    files.overwrite(Path::new(INCREMENT), bytes);
    assert_eq!(damage(reload(&files)).2, "transaction 3 follows 1");
}

#[test]
fn commands_that_redis_appended_are_not_mistaken_for_ours() {
    let files = written(2, true);
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let at = bytes.windows(6).position(|window| window == b"#EK:2:").unwrap();
    bytes.splice(at..at, *b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    files.overwrite(Path::new(INCREMENT), bytes);
    assert!(damage(reload(&files)).2.contains("without a checksum"));
}

#[test]
fn a_missing_file_or_manifest_is_damage() {
    let files = rewritten();
    for name in ["appendonly.aof.2.base.aof", "appendonly.aof.2.incr.aof", "appendonly.aof.manifest"] {
        let disk = files.crash(0);
        disk.remove(&Path::new("/data/appendonlydir").join(name)).unwrap();
        assert_eq!(damage(reload(&disk)).0, name);
    }
}

#[test]
fn a_base_cut_at_any_byte_is_damage() {
    let files = rewritten();
    let base = Path::new("/data/appendonlydir/appendonly.aof.2.base.aof");
    let bytes = files.contents(base).unwrap();
    for length in 0..bytes.len() {
        files.overwrite(base, bytes[..length].to_vec());
        assert_eq!(damage(reload(&files)).0, "appendonly.aof.2.base.aof");
    }
}

#[test]
fn told_to_cut_damage_everything_before_it_is_kept_and_the_rest_set_aside() {
    let files = written(9, true);
    let original = files.contents(Path::new(INCREMENT)).unwrap();
    for at in (0..original.len()).step_by(3) {
        let disk = files.crash(0);
        let mut broken = original.clone();
        broken[at] ^= 0x55;
        disk.overwrite(Path::new(INCREMENT), broken.clone());
        if reload(&disk).is_ok() {
            continue;
        }
        let cut = JournalOptions { cut_damage: true, ..options(&disk, Durability::Always) };
        let (journal, mut writer, recovery, loaded) = open_with(cut).unwrap();
        let kept = prefix_length(&loaded);
        assert_eq!(recovery.set_aside, ["appendonly.aof.1.incr.aof.damaged"]);
        assert_eq!(disk.contents(Path::new(&format!("{INCREMENT}.damaged"))), Some(broken));
        journal.append(&step(kept + 1), vec![]).unwrap();
        writer.turn(NOW).unwrap();
        drop((journal, writer));
        assert_eq!(
            prefix_length(&reload(&disk.crash(0)).unwrap().1),
            kept + 1,
            "the next start needs no telling"
        );
    }
}

#[test]
fn told_to_cut_a_damaged_base_the_readable_part_of_the_state_is_kept() {
    let files = rewritten();
    let base = Path::new("/data/appendonlydir/appendonly.aof.2.base.aof");
    let mut bytes = files.contents(base).unwrap();
    let end = bytes.len() - 5;
    bytes[end] ^= 1;
    files.overwrite(base, bytes);
    let cut = JournalOptions { cut_damage: true, ..options(&files, Durability::Always) };
    let (journal, writer, recovery, loaded) = open_with(cut).unwrap();
    assert_eq!((state_of(&loaded), recovery.set_aside.len()), (state_after(5), 2));
    drop((journal, writer));
    assert_eq!(state_of(&reload(&files.crash(0)).unwrap().1), state_after(5));
}

#[test]
fn cutting_damage_may_be_interrupted_anywhere() {
    let files = written(9, true);
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let fifth = bytes.windows(6).position(|window| window == b"#EK:5:").unwrap();
    bytes[fifth + 30] ^= 1;
    files.overwrite(Path::new(INCREMENT), bytes.clone());
    for n in 0..30 {
        for seed in 0..20 {
            let disk = files.crash(0);
            disk.power_off_after(n);
            let cut = |disk| JournalOptions { cut_damage: true, ..options(disk, Durability::Always) };
            let _ = open_with(cut(&disk));
            let disk = disk.crash(seed);
            let (.., loaded) = open_with(cut(&disk)).unwrap();
            assert_eq!(prefix_length(&loaded), 4);
            let kept = disk.contents(Path::new(&format!("{INCREMENT}.damaged")));
            assert_eq!(kept.as_ref(), Some(&bytes), "the original is somewhere");
        }
    }
}

#[test]
fn a_manifest_that_leads_out_of_the_folder_is_refused() {
    let files = Forgetful::new();
    files.overwrite(Path::new(MANIFEST), b"file ../../etc/passwd seq 1 type i\n".to_vec());
    assert_eq!(damage(reload(&files)).0, "appendonly.aof.manifest");
}

#[test]
fn a_folder_of_redis_is_loaded_and_continued_in_a_file_of_ours() {
    let files = Forgetful::new();
    files.overwrite(Path::new(MANIFEST), b"file appendonly.aof.1.base.aof seq 1 type b\n".to_vec());
    let base = Path::new("/data/appendonlydir/appendonly.aof.1.base.aof");
    let select = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n#TS:1700000000\r\n";
    let multi = "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n*1\r\n$4\r\nEXEC\r\n";
    files.overwrite(base, format!("{select}{multi}").into_bytes());
    let (journal, mut writer, recovery, loaded) = open(&files, Durability::Always).unwrap();
    assert_eq!((prefix_length(&loaded), recovery.commands), (1, 1));
    journal.append(&step(2), vec![]).unwrap();
    writer.turn(NOW).unwrap();
    drop((journal, writer));
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
    for cut in 1..multi.len() {
        files.overwrite(base, format!("{select}{}", &multi[..cut]).into_bytes());
        assert_eq!(damage(reload(&files)).0, "appendonly.aof.1.base.aof");
    }
}
