//! Damaged files: a flipped byte is noticed or does not matter. Never are there fewer rows without an error.

mod folders;

use emberkeep_history::embedded::Options;
use emberkeep_history::testing::{CombatEvent, NOW, PlayerStats, Sample, event, kills, schema};
use emberkeep_history::{Embedded, Error, History, Source};
use emberkeep_schema::{Table as _, Timestamp, Value};
use folders::{Folder, options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROWS: i64 = 60;

fn rows() -> Vec<CombatEvent> {
    (0..ROWS).map(|n| event(1, n * 1_800_000, n as u128)).collect()
}

/// A folder with rows of two days and totals, by several commits.
async fn fill(folder: &Folder, is_clean: bool) {
    let history = History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()));
    let source = Source::of_log("s", "l", "i");
    for (number, chunk) in rows().chunks(10).enumerate() {
        history.insert_many(chunk.to_vec()).await.unwrap();
        history.fold(&source, [kills(number as u64 + 1, 7, 1)]).await.unwrap();
    }
    if is_clean {
        history.close().await.unwrap();
    }
}

/// Reads everything in the table's order and by a lookup.
async fn read_all(path: &Path, options: Options) -> Result<(Vec<CombatEvent>, Vec<CombatEvent>, i64), Error> {
    let history = History::new(Arc::new(Embedded::open(path, schema(), options)?));
    let days = || Timestamp(NOW - ROWS * 1_800_000).day()..=Timestamp(NOW).day();
    let table = history.range(CombatEvent::partition(days())).rows_max(1_000).page(None).await?;
    let lookup = history.range(CombatEvent::by_attacker(1, days())).rows_max(1_000).page(None).await?;
    let totals = history.totals::<PlayerStats>(7).await?;
    Ok((table.into_rows()?, lookup.into_rows()?, totals.map_or(0, |totals| totals.sums.total_kills)))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// A file in memory: what was written, and its length with the reserved space of a journal.
struct Image {
    name: PathBuf,
    written: Vec<u8>,
    length: u64,
}

fn images(folder: &Path) -> Vec<Image> {
    let mut all = Vec::new();
    files(folder, &mut all);
    let image = |path: PathBuf| {
        let mut written = std::fs::read(&path).unwrap();
        let length = written.len() as u64;
        written.truncate(written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Image { name: path.strip_prefix(folder).unwrap().to_owned(), written, length }
    };
    all.into_iter().map(image).collect()
}

fn write(folder: &Path, image: &Image) {
    let path = folder.join(&image.name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, &image.written).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(image.length).unwrap();
}

/// Flips a byte at places of each file: what is read is everything, or an error.
async fn flips(is_clean: bool, per_file: usize) {
    let original = Folder::new();
    fill(&original, is_clean).await;
    let images = images(original.path());
    let (mut noticed, mut harmless, mut silent) = (0, 0, Vec::new());
    for image in &images {
        let (name, written) = (&image.name, image.written.len());
        // The journal is the file that fjall repairs by itself.
        let is_journal = name.extension().is_some_and(|extension| extension == "jnl");
        let count = if is_journal { 6 * per_file } else { per_file }.min(written);
        for step in 0..count {
            let at = written * step / count;
            let damaged = Folder::new();
            images.iter().for_each(|image| write(damaged.path(), image));
            let mut bytes = image.written.clone();
            bytes[at] ^= 0x55;
            write(damaged.path(), &Image { name: name.clone(), written: bytes, length: image.length });
            match read_all(damaged.path(), options()).await {
                Ok((table, lookup, kills)) if table == rows() && lookup == rows() && kills == 6 => {
                    harmless += 1
                }
                Ok((table, lookup, kills)) => {
                    silent.push((name.clone(), at, table.len(), lookup.len(), kills))
                }
                Err(Error::Damaged { .. } | Error::Folder { .. }) => noticed += 1,
                Err(other) => panic!("{} at {at}: {other}", name.display()),
            }
        }
    }
    assert!(silent.is_empty(), "rows were lost in silence: {silent:?}");
    assert!(noticed > 0 && harmless > 0, "{noticed} noticed, {harmless} harmless");
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bytes_after_a_proper_stop() {
    flips(true, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bytes_after_a_crash() {
    flips(false, 8).await;
}

fn journal(folder: &Path) -> PathBuf {
    let mut all = Vec::new();
    files(folder, &mut all);
    let journals =
        all.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_cut_off_is_noticed_and_can_be_accepted() {
    let folder = Folder::new();
    fill(&folder, false).await;
    let path = journal(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let written = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(&path, &bytes[..written * 3 / 4]).unwrap();
    // The error stays: a second try does not load what the first one refused.
    for _ in 0..2 {
        let error = read_all(folder.path(), options()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Damaged { problem, .. } if problem.contains("batches are missing")),
            "{error}"
        );
        assert!(error.to_string().contains("*.jnl"), "{error}");
    }
    let copies = std::fs::read_dir(folder.path().join("journal-before-recovery")).unwrap();
    assert!(copies.count() > 0, "the journal is kept as it was found");
    let accepted = Options { accept_loss: true, ..options() };
    let (table, lookup, _) = read_all(folder.path(), accepted).await.unwrap();
    assert!(table.len() < ROWS as usize && !table.is_empty(), "{}", table.len());
    assert_eq!(table, lookup);
    assert_eq!(table[..], rows()[..table.len()], "whole batches, from the first one on");
    assert_eq!(read_all(folder.path(), options()).await.unwrap().0, table);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_ledger_is_noticed() {
    let folder = Folder::new();
    fill(&folder, true).await;
    std::fs::remove_file(folder.path().join("LEDGER")).unwrap();
    let error = read_all(folder.path(), options()).await.unwrap_err();
    assert!(matches!(&error, Error::Damaged { place, .. } if place.ends_with("LEDGER")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_damaged_row_does_not_hide_its_range_and_can_be_written_again() {
    let folder = Folder::new();
    let open = || History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()));
    let row = |player_id| Sample {
        name: "damage".into(),
        id: uuid::Uuid::from_u128(player_id),
        small: 1,
        tiny: 2,
        int: 3,
        big: 4,
        float: 5.0,
        double: 6.0,
        truth: true,
        bytes: vec![7],
        address: "10.0.0.1".parse().unwrap(),
        texts: Default::default(),
        tuples: vec![],
        note: None,
    };
    let history = open();
    history.upsert_many((0..5).map(row)).await.unwrap();
    history.close().await.unwrap();
    drop(history);
    let database = fjall::Database::builder(folder.path().join("store")).open().unwrap();
    let keyspace = database.keyspace("samples@0", fjall::KeyspaceCreateOptions::default).unwrap();
    let (key, value) = keyspace.iter().nth(2).unwrap().into_inner().unwrap();
    let mut changed = value.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    keyspace.insert(key, changed).unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((keyspace, database));
    let history = open();
    let page = history.range(Sample::partition("damage")).page(None).await.unwrap();
    assert_eq!(page.rows, [row(0), row(1), row(3), row(4)]);
    assert_eq!(page.unreadable[0].key[1], Value::Uuid(row(2).id));
    assert!(matches!(page.unreadable[0].error, Error::Damaged { .. }), "{:?}", page.unreadable);
    assert!(matches!(page.into_rows(), Err(Error::Damaged { .. })));
    assert!(matches!(history.get(row(2).row_key()).await, Err(Error::Damaged { .. })));
    history.upsert(row(2)).await.unwrap();
    assert_eq!(
        history.range(Sample::partition("damage")).page(None).await.unwrap().into_rows().unwrap().len(),
        5
    );
}
