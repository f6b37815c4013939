//! The spool: events recorded in a local folder, delivered into real history. Processes that are killed, folders that
//! are copied, files that are torn and damaged.

mod arena;
mod folders;

use arena::*;
use emberkeep_history::spool::{Recorded, Spool, SpoolConsumer, SpoolMode, SpoolOptions};
use emberkeep_history::testing::NOW;
use emberkeep_history::{Error, History};
use emberkeep_schema::Json;
use folders::Folder;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use uuid::Uuid;

type Kills = Spool<Json<KillEvent>>;

fn event(killer: i64) -> KillEvent {
    KillEvent::new(Uuid::new_v4(), killer, NOW)
}

fn events(killer: i64, count: usize) -> Vec<KillEvent> {
    (0..count).map(|_| event(killer)).collect()
}

fn open(folder: &Path, mode: SpoolMode) -> Kills {
    Spool::open(folder, SpoolOptions { mode, ..SpoolOptions::default() }).unwrap()
}

async fn deliver(spool: &Kills, history: &History) -> usize {
    SpoolConsumer::new(spool, history.clone(), project).drain_once().await.unwrap()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "seg")).collect();
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in segments(from) {
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_every_mode_are_delivered_once() {
    let folder = Folder::new();
    let history = history_in(&folder.path().join("history"));
    for (killer, mode) in [(1, SpoolMode::Always), (2, SpoolMode::EverySec), (3, SpoolMode::Memory)] {
        let spool = open(&folder.path().join(format!("spool-{killer}")), mode);
        let recorded = spool.record_events(&events(killer, 5)).await.unwrap();
        assert_eq!(recorded, Recorded { mode, position: 5 });
        assert_eq!(spool.record(&event(killer)).await.unwrap().position, 6);
        assert_eq!(spool.stats().waiting, 6);
        assert_eq!(deliver(&spool, &history).await, 6);
        assert_eq!((deliver(&spool, &history).await, spool.stats().waiting), (0, 0));
        spool.record_events(&events(killer, 2_500)).await.unwrap();
        assert_eq!(deliver(&spool, &history).await, 2_500);
        assert_eq!(kills_of(&history, killer).await, 2_506, "{mode:?}");
        spool.close().unwrap();
        assert_eq!(spool.record(&event(killer)).await, Err(Error::Closed));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_delivered_waits_for_the_next_opening() {
    let folder = Folder::new();
    let (place, history) = (folder.path().join("spool"), history_in(&folder.path().join("history")));
    for round in 1..=3 {
        let spool = open(&place, SpoolMode::EverySec);
        assert_eq!(spool.stats().waiting, if round == 1 { 0 } else { 10 });
        assert_eq!(deliver(&spool, &history).await, if round == 1 { 0 } else { 10 });
        spool.record_events(&events(7, 10)).await.unwrap();
        spool.close().unwrap();
    }
    assert_eq!(segments(&place).len(), 1, "delivered segments are removed");
    assert_eq!(deliver(&open(&place, SpoolMode::EverySec), &history).await, 10);
    assert_eq!(kills_of(&history, 7).await, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_spool_refuses_and_goes_on() {
    let folder = Folder::new();
    let store = store_in(&folder.path().join("history"));
    for (killer, mode) in [(1, SpoolMode::EverySec), (2, SpoolMode::Memory)] {
        let options = SpoolOptions { mode, bytes_max: 64 * 1024, segment_bytes: 8 * 1024 };
        let spool: Kills = Spool::open(folder.path().join("spool"), options).unwrap();
        let mut recorded = 0;
        for _ in 0..3 {
            let refused = loop {
                match spool.record_events(&events(killer, 10)).await {
                    Ok(_) => recorded += 10,
                    Err(refused) => break refused,
                }
            };
            assert!(matches!(refused, Error::SpoolFull { bytes_max: 65_536, .. }), "{refused}");
            assert!(refused.is_transient() && spool.stats().used_bytes <= 64 * 1024);
            deliver(&spool, &History::new(store.clone())).await;
            assert_eq!(kills_of(&History::new(store.clone()), killer).await, recorded, "{mode:?}");
        }
        assert!(spool.stats().refused == 30 && recorded > 300, "{recorded}");
        spool.close().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_folder_delivers_old_events_once_and_new_ones_under_its_own_id() {
    let folder = Folder::new();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let history = history_in(&folder.path().join("history"));
    let spool = open(&first, SpoolMode::EverySec);
    spool.record_events(&events(7, 10)).await.unwrap();
    // While the first one runs and goes on.
    copy(&first, &second);
    let copied = open(&second, SpoolMode::EverySec);
    copied.record_events(&events(8, 4)).await.unwrap();
    spool.record_events(&events(7, 5)).await.unwrap();
    deliver(&copied, &history).await;
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (10, 4));
    deliver(&spool, &history).await;
    spool.record_events(&events(8, 3)).await.unwrap();
    deliver(&spool, &history).await;
    assert_eq!((kills_of(&history, 7).await, kills_of(&history, 8).await), (15, 7));
    let error = Kills::open(&first, SpoolOptions::default()).err().expect("one process per folder");
    assert!(error.to_string().contains("in use"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_fails_anywhere_is_repeated() {
    let folder = Folder::new();
    let store = store_in(&folder.path().join("history"));
    let spool = open(&folder.path().join("spool"), SpoolMode::EverySec);
    for (round, is_after) in (1..=12).flat_map(|round| [(2 * round - 1, false), (2 * round, true)]) {
        spool.record_events(&events(7, 3)).await.unwrap();
        let failed = AtomicBool::new(false);
        let calls = std::sync::atomic::AtomicI64::new(0);
        let faulty = Faults::new(store.clone(), move |_| {
            let is_now = calls.fetch_add(1, Ordering::Relaxed) == (round - 1) / 2;
            (is_now && !failed.swap(true, Ordering::Relaxed)).then_some(if is_after {
                Fault::After
            } else {
                Fault::Before
            })
        });
        let _ = SpoolConsumer::new(&spool, History::new(faulty), project).drain_once().await;
        let history = History::new(store.clone());
        deliver(&spool, &history).await;
        assert_eq!(kills_of(&history, 7).await, 3 * round, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_history_cannot_take_are_dead_letters() {
    let folder = Folder::new();
    let history = history_in(&folder.path().join("history"));
    let spool = open(&folder.path().join("spool"), SpoolMode::EverySec);
    spool.record_events(&[event(7), event(REJECTED), event(7)]).await.unwrap();
    let consumer = SpoolConsumer::new(&spool, history.clone(), project);
    consumer.drain_once().await.unwrap();
    assert_eq!((consumer.stats().delivered, consumer.stats().dead_letters), (3, 1));
    assert_eq!(kills_of(&history, 7).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn spools_with_dead_letters_are_known() {
    let folder = Folder::new();
    let history = history_in(&folder.path().join("history"));
    for (name, killers) in [("one", [7, 7]), ("other", [REJECTED, 7]), ("third", [REJECTED, REJECTED])] {
        let spool = open(&folder.path().join(name), SpoolMode::Always);
        for killer in killers {
            spool.record(&event(killer)).await.unwrap();
        }
        assert_eq!(deliver(&spool, &history).await, 2);
    }
    let known = history.spools_with_dead_letters().await.unwrap();
    let mut counts = Vec::new();
    for log in &known {
        counts.push(dead_letters(&history, log).await.len());
    }
    counts.sort();
    assert_eq!(counts, [1, 2], "{known:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_end_is_cut_and_damage_is_named() {
    let folder = Folder::new();
    let (place, history) = (folder.path().join("spool"), history_in(&folder.path().join("history")));
    let spool = open(&place, SpoolMode::Always);
    spool.record_events(&events(7, 20)).await.unwrap();
    // As a crash leaves it, with the space that was reserved.
    let (torn, damaged) = (folder.path().join("torn"), folder.path().join("damaged"));
    copy(&place, &torn);
    copy(&place, &damaged);
    let content_end = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let path = segments(&torn).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = content_end(&bytes);
    // Half a record behind the end.
    bytes[end..end + 30].copy_from_slice(&b"#EK:22:150:00000000\r\n{\"id\":\"123456"[..30]);
    std::fs::write(&path, &bytes).unwrap();
    let spool = open(&torn, SpoolMode::EverySec);
    assert_eq!(spool.stats().waiting, 20, "what was answered is there, and half a record is not");
    assert_eq!(deliver(&spool, &history).await, 20);
    assert_eq!(kills_of(&history, 7).await, 20);

    let path = segments(&damaged).remove(0);
    let bytes = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for at in (40..content_end(&bytes) - 60).step_by(37) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        let error =
            Kills::open(&damaged, SpoolOptions::default()).err().unwrap_or_else(|| panic!("byte {at}"));
        assert!(
            matches!(&error, Error::Damaged { place, .. } if place.ends_with(".seg")),
            "byte {at}: {error}"
        );
        refused += 1;
    }
    assert!(refused > 50, "{refused}");
}

/// A segment that was closed was synced to its end, also if that was before its first mark.
#[tokio::test(flavor = "multi_thread")]
async fn damage_in_a_closed_segment_is_named() {
    let folder = Folder::new();
    let spool = open(folder.path(), SpoolMode::EverySec);
    spool.record_events(&events(7, 20)).await.unwrap();
    spool.close().unwrap();
    let path = segments(folder.path()).remove(0);
    let bytes = std::fs::read(&path).unwrap();
    for at in (40..bytes.len() - 60).step_by(37) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        let error = Kills::open(folder.path(), SpoolOptions::default()).err();
        assert!(matches!(&error, Some(Error::Damaged { .. })), "byte {at}: {error:?}");
        assert_eq!(std::fs::read(&path).unwrap(), changed, "a damaged file is left as it is");
    }
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(open(folder.path(), SpoolMode::EverySec).stats().waiting, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_missing_is_named() {
    let folder = Folder::new();
    let options = SpoolOptions { mode: SpoolMode::Always, segment_bytes: 1_024, ..SpoolOptions::default() };
    let spool = Kills::open(folder.path(), options).unwrap();
    for _ in 0..30 {
        spool.record(&event(7)).await.unwrap();
    }
    spool.close().unwrap();
    let found = segments(folder.path());
    assert!(found.len() > 2, "{found:?}");
    std::fs::remove_file(&found[1]).unwrap();
    let error = Kills::open(folder.path(), SpoolOptions::default()).err();
    assert!(matches!(&error, Some(Error::Damaged { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consumers_of_one_spool_deliver_each_event_once() {
    let folder = Folder::new();
    let history = history_in(&folder.path().join("history"));
    for (killer, mode) in [(1, SpoolMode::Always), (2, SpoolMode::Memory)] {
        let spool = open(&folder.path().join(format!("spool-{killer}")), mode);
        spool.record_events(&events(killer, 3_500)).await.unwrap();
        let (one, two) = tokio::join!(deliver(&spool, &history), deliver(&spool, &history));
        assert_eq!((one + two, kills_of(&history, killer).await), (3_500, 3_500), "{mode:?}");
    }
}

const FOLDER: &str = "EMBERKEEP_SPOOL_CHILD_FOLDER";
const MODE: &str = "EMBERKEEP_SPOOL_CHILD_MODE";

/// The process that is killed: records, answers and delivers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let mode = if std::env::var(MODE).is_ok() { SpoolMode::Always } else { SpoolMode::EverySec };
    let options = SpoolOptions { mode, segment_bytes: 16 * 1024, ..SpoolOptions::default() };
    let spool: Kills = Spool::open(Path::new(&folder).join("spool"), options).unwrap();
    let history = history_in(&Path::new(&folder).join("history"));
    let consumer = Arc::new(SpoolConsumer::new(&spool, history, project));
    tokio::spawn(async move { consumer.run(std::future::pending()).await });
    // Bounded, if no test kills it.
    for _ in 0..100_000 {
        spool.record_events(&events(7, 3)).await.unwrap();
        writeln!(std::io::stdout(), "answered 3").unwrap();
    }
}

async fn kill_many(mode: SpoolMode, kills: usize) {
    let folder = Folder::new();
    let mut answered = 0;
    for _ in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
        if mode == SpoolMode::Always {
            command.env(MODE, "always");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut answers = lines.filter(|line| line.contains("answered"));
        let before = answers.by_ref().take(fastrand::usize(..100)).count();
        std::thread::sleep(Duration::from_micros(fastrand::u64(..5_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        answered += 3 * (before + answers.count()) as i64;
    }
    let history = history_in(&folder.path().join("history"));
    let spool = open(&folder.path().join("spool"), mode);
    let late = deliver(&spool, &history).await;
    let found = kills_of(&history, 7).await;
    emberkeep_testkit::report!(
        "spool {mode:?}: {kills} kills -9, {answered} answered, {found} in history, {late} at the end"
    );
    // At most one call of each process was recorded and not answered.
    assert!((answered..=answered + 3 * kills as i64).contains(&found), "{answered} answered, {found} found");
    assert_eq!(spool.stats().waiting, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_answered_is_delivered_once() {
    kill_many(SpoolMode::EverySec, 40).await;
    kill_many(SpoolMode::Always, 15).await;
}
