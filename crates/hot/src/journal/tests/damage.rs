//! Bad sectors, helpful people, lost files: never loaded silently, never made worse.

use super::*;

/// A disk with a journal of some transactions, each synced for itself, closed properly or not.
fn written(count: u64, closed: bool) -> FaultDisk {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=count {
        journal.append(&transaction(n), vec![]).unwrap();
        if closed || n < count {
            writer.cycle(NOW).unwrap();
        }
    }
    writer.cycle(NOW).unwrap();
    if closed {
        writer.finish().unwrap();
    } else {
        // The crash came between the last sync and its mark.
        let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
        let mark = bytes.windows(8).rposition(|window| window == b"#EK-SYNC").unwrap();
        bytes.truncate(mark);
        files.overwrite(Path::new(INCREMENT), bytes);
    }
    files
}

/// The same after a rewrite: a base and one increment.
fn rewritten() -> FaultDisk {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=9 {
        if n == 6 {
            let mut rewrite = journal.begin_rewrite().unwrap();
            writer.cycle(NOW).unwrap();
            for (key, value) in state_after(5) {
                rewrite.write(&key, &[Write::Set(value, Expiry::Never)]).unwrap();
            }
            rewrite.finish().unwrap();
        }
        journal.append(&transaction(n), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
    }
    writer.finish().unwrap();
    files
}

fn contents(files: &FaultDisk) -> Vec<(PathBuf, Vec<u8>)> {
    files.paths().into_iter().map(|path| (path.clone(), files.contents(&path).unwrap())).collect()
}

fn damage(result: Result<(Recovery, Transaction)>) -> (String, u64, String) {
    match result {
        Err(Error::DamagedJournal { file, offset, problem, .. }) => (file, offset, problem),
        other => panic!("expected damage, got {other:?}"),
    }
}

/// Flips every bit of every byte of every file, one at a time.
fn flip_each(files: &FaultDisk, mut check: impl FnMut(&Path, usize, Result<(Recovery, Transaction)>)) {
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
fn what_a_start_has_loaded_and_synced_is_damage_when_it_breaks_later() {
    let files = written(5, false);
    assert_eq!(prefix_length(&reload(&files).unwrap().1), 5);
    let mut bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let fifth = bytes.windows(6).position(|window| window == b"#EK:5:").unwrap();
    bytes[fifth + 30] ^= 1;
    files.overwrite(Path::new(INCREMENT), bytes);
    assert_eq!(damage(reload(&files)).1, fifth as u64);
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
        let left = disk.contents(Path::new(INCREMENT)).unwrap().split_off(whole as usize);
        assert!(left.is_empty() || left.starts_with(b"#EK-SYNC:"), "nothing but the mark of this start");
        journal.append(&transaction(found + 1), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
        drop((journal, writer));
        let (recovery, loaded) = reload(&disk.crash(0)).unwrap();
        assert_eq!((prefix_length(&loaded), recovery.cut_bytes), (found + 1, 0));
    }
}

#[test]
fn a_torn_group_that_was_never_acknowledged_is_cut_also_before_an_intact_record() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    let synced = journal.disk_bytes() as usize;
    (2..=4).for_each(|n| assert_eq!(journal.append(&transaction(n), vec![]).unwrap(), n));
    writer.cycle(NOW).unwrap();
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
fn cutting_damage_keeps_everything_before_it_and_sets_the_rest_aside() {
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
        journal.append(&transaction(kept + 1), vec![]).unwrap();
        writer.cycle(NOW).unwrap();
        drop((journal, writer));
        assert_eq!(
            prefix_length(&reload(&disk.crash(0)).unwrap().1),
            kept + 1,
            "the next start needs no telling"
        );
    }
}

#[test]
fn cutting_a_damaged_base_keeps_the_readable_part_of_the_state() {
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
            let kept = disk.paths().into_iter().filter(|path| path.to_string_lossy().contains(".damaged"));
            assert!(
                kept.into_iter().any(|path| disk.contents(&path).as_ref() == Some(&bytes)),
                "the original is somewhere"
            );
        }
    }
}

#[test]
fn a_manifest_that_leads_out_of_the_folder_is_refused() {
    let files = FaultDisk::new();
    files.overwrite(Path::new(MANIFEST), b"file ../../etc/passwd seq 1 type i\n".to_vec());
    assert_eq!(damage(reload(&files)).0, "appendonly.aof.manifest");
}

#[test]
fn a_folder_of_redis_is_loaded_and_continued_in_a_file_of_ours() {
    let files = FaultDisk::new();
    files.overwrite(Path::new(MANIFEST), b"file appendonly.aof.1.base.aof seq 1 type b\n".to_vec());
    let base = Path::new("/data/appendonlydir/appendonly.aof.1.base.aof");
    let select = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n#TS:1700000000\r\n";
    let multi = "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n*1\r\n$4\r\nEXEC\r\n";
    files.overwrite(base, format!("{select}{multi}").into_bytes());
    let (journal, mut writer, recovery, loaded) = open(&files, Durability::Always).unwrap();
    assert_eq!((prefix_length(&loaded), recovery.commands), (1, 1));
    journal.append(&transaction(2), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    drop((journal, writer));
    assert_eq!(prefix_length(&reload(&files.crash(0)).unwrap().1), 2);
    for cut in 1..multi.len() {
        let disk = files.crash(0);
        disk.overwrite(base, format!("{select}{}", &multi[..cut]).into_bytes());
        let (file, offset, _) = damage(reload(&disk));
        assert_eq!((file.as_str(), offset), ("appendonly.aof.1.base.aof", select.len() as u64));
        let (.., loaded) = repaired(&disk);
        assert_eq!(loaded, vec![], "a transaction without its end is none");
        assert_eq!(reload(&disk).expect("the repair lasts").1, vec![]);
    }
}

/// Opens a damaged journal as `emberkeep repair` does, and closes it.
fn repaired(files: &FaultDisk) -> (Recovery, Transaction) {
    let cut = JournalOptions { cut_damage: true, ..options(files, Durability::Always) };
    let (_journal, _writer, recovery, loaded) = open_with(cut).unwrap();
    (recovery, loaded)
}

#[test]
fn a_lost_manifest_beside_a_base_without_an_end_is_no_reason_to_load_increments_alone() {
    let files = rewritten();
    let base = Path::new("/data/appendonlydir/appendonly.aof.2.base.aof");
    let whole = files.contents(base).unwrap();
    let end = whole.windows(8).rposition(|window| window == b"#EK-END:").unwrap();
    for bytes in [Some(whole[..end].to_vec()), Some(whole[..20].to_vec()), None] {
        let disk = files.crash(0);
        disk.remove(Path::new(MANIFEST)).unwrap();
        // The rewrite had removed it; the crash brought it back.
        disk.remove(Path::new(INCREMENT)).unwrap();
        let readable = bytes.as_ref().is_some_and(|bytes| bytes.len() == end);
        match bytes {
            Some(bytes) => disk.overwrite(base, bytes),
            None => disk.remove(base).unwrap(),
        }
        damage(reload(&disk));
        let examined = repair::examine(&disk, Path::new("/data/appendonlydir")).unwrap();
        let found = examined.damage.expect("damage").to_string();
        assert!(
            found.contains(if readable { "the base has no end" } else { "no file before it" }),
            "{found}"
        );
        let kept = if readable { state_after(5) } else { State::new() };
        let (recovery, loaded) = repaired(&disk);
        assert_eq!(state_of(&loaded), kept);
        let aside = &recovery.set_aside;
        assert!(aside.iter().any(|name| name == "appendonly.aof.2.incr.aof.damaged"), "{aside:?}");
        assert_eq!(state_of(&reload(&disk).unwrap().1), kept);
    }
}

#[test]
fn a_lost_manifest_beside_a_rewrite_that_did_not_end_costs_nothing() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    let mut rewrite = journal.begin_rewrite().unwrap();
    rewrite
        .write(b"count", &[Write::Set(bytes(&"1".repeat(JOURNAL_BASE_RECORD_BYTES)), Expiry::Never)])
        .unwrap();
    journal.append(&transaction(2), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    let disk = files.crash(1);
    disk.remove(Path::new(MANIFEST)).unwrap();
    damage(reload(&disk));
    assert_eq!(prefix_length(&repaired(&disk).1), 2);
    assert_eq!(prefix_length(&reload(&disk).unwrap().1), 2);
}

#[test]
fn an_increment_whose_header_is_not_readable_is_not_passed_over() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    for n in 1..=3 {
        journal.append(&transaction(n), vec![]).unwrap();
        drop(journal.begin_rewrite().unwrap());
        writer.cycle(NOW).unwrap();
    }
    journal.append(&transaction(4), vec![]).unwrap();
    writer.cycle(NOW).unwrap();
    writer.finish().unwrap();
    files.remove(Path::new(MANIFEST)).unwrap();
    let second = Path::new("/data/appendonlydir/appendonly.aof.2.incr.aof");
    let mut bytes = files.contents(second).unwrap();
    bytes[12] ^= 1;
    files.overwrite(second, bytes.clone());
    drop((journal, writer));
    let (recovery, loaded) = repaired(&files);
    assert_eq!(prefix_length(&loaded), 1);
    assert_eq!(recovery.set_aside.len(), 3, "it and what follows: {:?}", recovery.set_aside);
    assert_eq!(files.contents(&second.with_file_name("appendonly.aof.2.incr.aof.damaged")), Some(bytes));
    assert_eq!(prefix_length(&reload(&files).unwrap().1), 1);
}

/// Records in a folder that loads, whatever they mean.
fn records(result: &Result<(Recovery, Transaction)>) -> Option<usize> {
    result.as_ref().ok().map(|(_, loaded)| loaded.len())
}

#[test]
fn a_manifest_cut_at_any_byte_emptied_or_deleted_never_costs_a_record_silently() {
    for files in [written(9, true), written(1, true), rewritten()] {
        let whole = records(&reload(&files.crash(0))).unwrap();
        let manifest = files.contents(Path::new(MANIFEST)).unwrap();
        let mut texts: Vec<Vec<u8>> = (0..manifest.len()).map(|length| manifest[..length].to_vec()).collect();
        texts.extend([b"# a comment\n".to_vec(), b"\n".to_vec(), b"#EK-MANIFEST:1:00000000\n".to_vec()]);
        for text in texts.into_iter().map(Some).chain([None]) {
            let disk = files.crash(0);
            match &text {
                Some(text) => disk.overwrite(Path::new(MANIFEST), text.clone()),
                None => disk.remove(Path::new(MANIFEST)).unwrap(),
            }
            let before = contents(&disk);
            let (file, _, _) = damage(reload(&disk));
            assert_eq!(file, "appendonly.aof.manifest");
            assert_eq!(contents(&disk), before, "a refusal changes nothing");
            // The remedy: the files know their order, so nothing is lost.
            let cut = JournalOptions { cut_damage: true, ..options(&disk, Durability::Always) };
            let (journal, writer, _, loaded) = open_with(cut).unwrap();
            assert_eq!(loaded.len(), whole);
            drop((journal, writer));
            assert_eq!(records(&reload(&disk.crash(0))), Some(whole));
        }
    }
}

#[test]
fn files_with_records_that_no_manifest_names_are_renamed_and_never_removed() {
    let files = written(9, true);
    let stray = Path::new("/data/appendonlydir/appendonly.aof.2.incr.aof");
    let bytes = files.contents(Path::new(INCREMENT)).unwrap();
    for n in 1..=2 {
        files.overwrite(stray, bytes.clone());
        let (recovery, loaded) = reload(&files).unwrap();
        let name = format!("appendonly.aof.2.incr.aof.unlisted-{n}");
        assert_eq!((prefix_length(&loaded), recovery.set_aside), (9, vec![name.clone()]));
        assert_eq!(files.contents(&stray.with_file_name(name)), Some(bytes.clone()));
        assert_eq!(files.contents(stray), None);
    }
}

#[test]
fn a_manifest_of_redis_that_lost_its_last_line_is_damage() {
    let files = FaultDisk::new();
    let command = b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n".to_vec();
    let manifest =
        "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.0.incr.aof seq 0 type h\n";
    files.overwrite(Path::new(MANIFEST), manifest.into());
    for name in ["1.base", "0.incr", "1.incr"] {
        files
            .overwrite(Path::new(&format!("/data/appendonlydir/appendonly.aof.{name}.aof")), command.clone());
    }
    let (file, _, problem) = damage(reload(&files));
    assert_eq!(file, "appendonly.aof.manifest");
    assert!(problem.contains("appendonly.aof.1.incr.aof"), "{problem}");
    let whole = format!("{manifest}file appendonly.aof.1.incr.aof seq 1 type i\n");
    files.overwrite(Path::new(MANIFEST), whole.into());
    assert_eq!(prefix_length(&reload(&files).unwrap().1), 2, "what Redis calls history is not needed");
}

#[test]
fn a_manifest_of_redis_that_lost_the_line_of_its_dump_is_damage_and_the_dump_stays() {
    let files = FaultDisk::new();
    let dump = Path::new("/data/appendonlydir/appendonly.aof.1.base.rdb");
    let increment = Path::new("/data/appendonlydir/appendonly.aof.1.incr.aof");
    files.overwrite(Path::new(MANIFEST), b"file appendonly.aof.1.incr.aof seq 1 type i\n".to_vec());
    files.overwrite(increment, b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n".to_vec());
    files.overwrite(dump, b"REDIS0012 the state".to_vec());
    let (file, _, problem) = damage(reload(&files));
    assert_eq!(file, "appendonly.aof.manifest");
    assert!(problem.contains("appendonly.aof.1.base.rdb"), "{problem}");
    let examined = repair::examine(&files, Path::new("/data/appendonlydir")).unwrap();
    assert_eq!(examined.left_out, ["appendonly.aof.1.base.rdb"]);
    assert_eq!(examined.lost_bytes as usize, contents_of(&files, dump) + contents_of(&files, increment));
    assert_eq!(repaired(&files).1, vec![]);
    // Also beside a manifest of ours, which proves that it is old.
    reload(&files).unwrap();
    assert_eq!(files.contents(dump).as_deref(), Some(&b"REDIS0012 the state"[..]));
}

fn contents_of(files: &FaultDisk, path: &Path) -> usize {
    files.contents(path).unwrap().len()
}

#[test]
fn files_that_a_lost_manifest_leaves_out_are_counted_before_they_are_set_aside() {
    let files = rewritten();
    let stray = Path::new("/data/appendonlydir/appendonly.aof.1.base.aof");
    files.overwrite(stray, b"#EK-FILE of something else *".to_vec());
    files.remove(Path::new(MANIFEST)).unwrap();
    let examined = repair::examine(&files, Path::new("/data/appendonlydir")).unwrap();
    assert_eq!(examined.left_out, ["appendonly.aof.1.base.aof"]);
    assert_eq!(examined.lost_bytes as usize, contents_of(&files, stray));
    assert_eq!(repaired(&files).0.set_aside, ["appendonly.aof.1.base.aof.unlisted-1"]);
}

#[test]
fn a_second_repair_keeps_what_the_first_set_aside() {
    let files = FaultDisk::new();
    for n in 0..3 {
        files.overwrite(Path::new(MANIFEST), format!("no manifest {n}").into());
        let (recovery, _) = repaired(&files);
        let (copy, number) = ("appendonly.aof.manifest.damaged", format!("-{n}"));
        let copy = format!("{copy}{}", if n == 0 { "" } else { &number });
        assert_eq!(recovery.set_aside, std::slice::from_ref(&copy));
        let kept = files.contents(&Path::new(MANIFEST).with_file_name(copy)).unwrap();
        assert_eq!(kept, format!("no manifest {n}").into_bytes());
    }
}

#[test]
fn a_torn_end_before_a_file_that_is_missing_is_damage() {
    let files = FaultDisk::new();
    let (journal, mut writer, ..) = open(&files, Durability::Always).unwrap();
    journal.append(&transaction(1), vec![]).unwrap();
    drop(journal.begin_rewrite().unwrap());
    writer.cycle(NOW).unwrap();
    writer.finish().unwrap();
    drop((journal, writer));
    let bytes = files.contents(Path::new(INCREMENT)).unwrap();
    files.overwrite(Path::new(INCREMENT), bytes[..bytes.len() - 3].to_vec());
    files.remove(Path::new("/data/appendonlydir/appendonly.aof.2.incr.aof")).unwrap();
    assert_eq!(damage(reload(&files)).0, "appendonly.aof.1.incr.aof");
    assert_eq!(prefix_length(&repaired(&files).1), 0);
}

#[test]
fn damage_that_is_cut_leaves_the_same_state_in_memory_as_on_disk() {
    let files = written(3, true);
    let bytes = files.contents(Path::new(INCREMENT)).unwrap();
    let reader =
        reader::Reader::open(reader::Window::new(files.open(Path::new(INCREMENT)).unwrap()).unwrap());
    let salt = reader.unwrap().unwrap().header.salt;
    // A record with a right checksum whose second command means nothing.
    let body = b"*3\r\n$6\r\nINCRBY\r\n$5\r\ncount\r\n$1\r\n1\r\n*1\r\n$4\r\nPING\r\n";
    let mut bad = bytes;
    crate::journal::format::RecordHeader::encode(4, body.len(), crc32c::crc32c(body), salt, &mut bad);
    bad.extend_from_slice(body);
    files.overwrite(Path::new(INCREMENT), bad);
    damage(reload(&files));
    let cut = JournalOptions { cut_damage: true, ..options(&files, Durability::Always) };
    let (journal, writer, _, loaded) = open_with(cut).unwrap();
    assert_eq!(prefix_length(&loaded), 3);
    drop((journal, writer));
    assert_eq!(reload(&files).unwrap().1, loaded);
}
