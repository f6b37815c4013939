//! A disk that is really full: a typed error, and everything that was acknowledged is there when there is space again.

mod folders;

use emberkeep_history::embedded::Options;
use emberkeep_history::testing::{CombatEvent, NOW, event, schema};
use emberkeep_history::{Embedded, Error, History};
use emberkeep_schema::Timestamp;
use emberkeep_testkit::{SmallDisk, require};
use folders::{Folder, options};
use std::path::Path;
use std::sync::Arc;

const ROWS_PER_CALL: i64 = 100;
/// Far more than the disk holds.
const CALLS_MAX: i64 = 2_000;

fn open(path: &Path, free_bytes_min: u64) -> Result<History, Error> {
    let options = Options { free_bytes_min, ..options() };
    Ok(History::new(Arc::new(Embedded::open(path, schema(), options)?)))
}

/// Writes until it is refused: how many calls were acknowledged, and the error.
async fn fill(history: &History) -> (i64, Error) {
    let mut random = fastrand::Rng::with_seed(5);
    for call in 0..CALLS_MAX {
        let rows = (0..ROWS_PER_CALL).map(|n| {
            // Random, so that it is not compressed.
            let server_instance = std::iter::repeat_with(|| random.alphanumeric()).take(1_000).collect();
            let id = (call * ROWS_PER_CALL + n) as u128;
            CombatEvent { server_instance, ..event(call, n, id) }
        });
        if let Err(error) = history.insert_many(rows.collect::<Vec<_>>()).await {
            return (call, error);
        }
    }
    panic!("the disk was never full");
}

async fn check(history: &History, calls: i64) {
    for call in 0..calls {
        let query = history.range(CombatEvent::by_attacker(call, Timestamp(NOW).day())).rows_max(1_000);
        let rows = query.page(None).await.unwrap().into_rows().unwrap();
        assert_eq!(rows.len() as i64, ROWS_PER_CALL, "call {call} of {calls}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_before_the_disk_was_full_is_there() {
    let folder = Folder::new();
    let Some(disk) = require(SmallDisk::mount(folder.path().join("small"), 48 * 1024)) else { return };
    let path = disk.path().join("history");
    let history = open(&path, 0).unwrap();
    let (calls, error) = fill(&history).await;
    assert!(matches!(error, Error::Stopped { .. } | Error::DiskFull { .. }), "{error}");
    assert!(calls > 0);
    let again = history.insert(event(0, 1, 1)).await.unwrap_err();
    assert!(matches!(again, Error::Stopped { .. } | Error::DiskFull { .. }), "{again}");
    drop(history);
    disk.resize(512 * 1024);
    let history = open(&path, 0).unwrap();
    check(&history, calls).await;
    history.insert(event(5_000, 1, u128::MAX)).await.unwrap();
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_keeps_space_free_goes_on_by_itself() {
    let folder = Folder::new();
    let Some(disk) = require(SmallDisk::mount(folder.path().join("small"), 64 * 1024)) else { return };
    let path = disk.path().join("history");
    let history = open(&path, 40 * 1024 * 1024).unwrap();
    disk.resize(48 * 1024);
    let (calls, error) = fill(&history).await;
    assert!(matches!(error, Error::DiskFull { .. }) && error.is_transient(), "{error}");
    disk.resize(512 * 1024);
    // It looks at the free space every second.
    let waiting = async {
        while let Err(error) = history.insert(event(5_000, 1, u128::MAX)).await {
            assert!(matches!(error, Error::DiskFull { .. }), "{error}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), waiting).await.unwrap();
    check(&history, calls).await;
    history.close().await.unwrap();
}
