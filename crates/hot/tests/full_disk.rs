//! A disk that is full, for real: a small file system in memory. Nothing acknowledged is lost, writes are
//! refused and do not hang, and they go on when there is space again.

use emberkeep_hot::embedded::Embedded;
use emberkeep_hot::journal::Durability;
use emberkeep_hot::{Error, Store};
use emberkeep_schema::{Number, Text, family, partition};
use emberkeep_testkit::{SmallDisk, require, scratch};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

partition! {
    /// The one partition of this test.
    pub struct Everything = "everything";
}
family! {
    /// Transactions done.
    pub COUNT = "count" { kind: Text<Number<i64>>, partition: Everything, parts: (), ttl: persistent, owner: "test" }
}

async fn add(store: &Store) -> Result<i64, Error> {
    let scope = store.scope(Everything);
    let transact = scope.transact(|tx| {
        let n = tx.get(&COUNT.key())?.unwrap_or(0) + 1;
        tx.put(&COUNT.key(), &n).map(|_| n)
    });
    tokio::time::timeout(Duration::from_secs(20), transact).await.expect("a write never hangs")
}

fn open(folder: &Path, durability: Durability) -> Store {
    Store::new(Arc::new(Embedded::builder().data(folder).durability(durability).open().expect("opens")))
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_takes_them_again_when_it_has_space() {
    let folder = scratch();
    let Some(disk) = require(SmallDisk::mount(folder.join("small"), 600)) else { return };
    for (name, durability) in [("always", Durability::Always), ("everysec", Durability::EverySec)] {
        let data = disk.path().join(name);
        let store = open(&data, durability);
        // All the rest, so that little is left for the journal.
        let ballast = disk.path().join("ballast");
        let mut last = add(&store).await.expect("there is space");
        let _ = std::fs::write(&ballast, vec![1u8; 1024 * 1024]);
        let refused = loop {
            match add(&store).await {
                Ok(n) => last = n,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::JournalStopped { .. }), "{refused}");
        assert!(store.engine().ready().await.is_err(), "a health check sees it");
        std::fs::remove_file(&ballast).expect("removed");
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Err(error) = add(&store).await.map(|n| last = n) {
            assert!(Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        store.engine().ready().await.expect("ready again");
        // No close: as if it had been killed here. The folder's lock goes with the process, so a copy is
        // opened.
        let copy = folder.join(format!("copy-{name}"));
        copy_folder(&data, &copy);
        let found = open(&copy, durability).scope(Everything).get(&COUNT.key()).await.expect("readable");
        assert_eq!(found, Some(last), "{name}: memory and file agree");
        store.close().await.expect("closes");
        std::fs::remove_dir_all(&data).expect("removed");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let inner = to.join("appendonlydir");
    std::fs::create_dir_all(&inner).expect("a folder");
    for file in std::fs::read_dir(from.join("appendonlydir")).expect("a folder") {
        let file = file.expect("an entry");
        std::fs::copy(file.path(), inner.join(file.file_name())).expect("copied");
    }
}
