//! The store on a real PostgreSQL: the suite, and a server that is away, restarted or refuses.

use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_snapshot::testing::{self, fresh_ring, keys_of, put_ships, state};
use emberkeep_snapshot::{Error, KeyChoice, Label, Progress, SnapshotStore, Snapshots};
use emberkeep_snapshot_postgres::PostgresStore;
use emberkeep_testkit::{
    Certificates, PostgresServer, SmallDisk, block_on, postgres, require, scratch, shared_postgres,
};
use std::sync::Arc;

fn embedded() -> Store {
    Store::new(Arc::new(Embedded::in_memory()))
}

async fn connected(url: &str) -> Arc<dyn SnapshotStore> {
    PostgresStore::connect(url).await.expect("the server of the test is up").shared()
}

#[test]
fn every_case() {
    let Some(server) = shared_postgres() else { return };
    block_on(async { testing::run_all(embedded(), connected(&server.fresh_database()).await).await });
}

#[test]
fn tables_are_made_once_by_processes_that_start_together() {
    let Some(server) = shared_postgres() else { return };
    let url = server.fresh_database();
    block_on(async {
        let (first, second) = tokio::join!(PostgresStore::connect(&url), PostgresStore::connect(&url));
        assert!(first.is_ok() && second.is_ok());
    });
    server.sql(&url, "UPDATE ember_snapshot_version SET version = 99");
    let refused = block_on(PostgresStore::connect(&url)).err();
    assert!(matches!(refused, Some(Error::NewerFormat { found: 99, .. })), "{refused:?}");
}

/// Snapshots of a partition with some thousand keys.
async fn filled(url: &str) -> (Store, Snapshots, testing::Ring) {
    let hot = embedded();
    let ring = fresh_ring(&hot);
    put_ships(&hot, &ring, 0..20_000, 1).await;
    let snapshots = Snapshots::new(hot.clone(), connected(url).await);
    (hot, snapshots, ring)
}

async fn put_notes(hot: &Store, ring: &testing::Ring, ids: std::ops::Range<u32>, text: String) {
    for id in ids {
        let life = std::time::Duration::from_secs(3_600);
        hot.scope(ring.clone())
            .put_for(&testing::NOTE.key(id), text.clone(), life)
            .await
            .expect("a transaction");
    }
}

fn restart_at_the_first_keys(server: &PostgresServer) -> impl FnMut(Progress) + Send {
    let mut is_first = true;
    move |_| {
        if std::mem::take(&mut is_first) {
            server.restart().expect("it starts again");
        }
    }
}

#[test]
fn a_server_that_is_restarted_during_a_copy_has_nothing_of_it() {
    let Some(server) = postgres() else { return };
    let url = server.fresh_database();
    block_on(async {
        let (_, snapshots, ring) = filled(&url).await;
        let keys = keys_of(&ring);
        let broken = snapshots.create(&keys, Label::default(), &mut restart_at_the_first_keys(&server)).await;
        assert!(matches!(broken, Err(Error::Unavailable { .. })), "{broken:?}");
        assert_eq!(snapshots.list().await.expect("a list").snapshots, []);
        assert_eq!(server.sql(&url, "SELECT count(*) FROM ember_snapshot_key"), "0");
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        assert_eq!(taken.keys, 20_000);
        server.kill9();
        for away in
            [snapshots.list().await.err(), snapshots.create(&keys, Label::default(), &mut |_| ()).await.err()]
        {
            assert!(matches!(away, Some(Error::Unavailable { .. })), "{away:?}");
        }
        server.restart().expect("it starts again");
        assert_eq!(snapshots.verify(&taken.id).await.as_ref(), Ok(&taken), "what was committed is there");
    });
}

#[test]
fn a_restore_whose_server_goes_away_goes_on_later() {
    let Some(server) = postgres() else { return };
    let url = server.fresh_database();
    block_on(async {
        let hot = embedded();
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), connected(&url).await));
        let keys = keys_of(&ring);
        // More than the buffers between the server and us hold.
        let notes = |text: &'static str| put_notes(&hot, &ring, 0..300, text.repeat(200_000));
        notes("a").await;
        let before = state(&hot, &keys).await;
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        notes("b").await;
        let mut progress = restart_at_the_first_keys(&server);
        let broken = snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut progress).await;
        assert!(matches!(broken, Err(Error::Unavailable { .. })), "{broken:?}");
        assert!(snapshots.unfinished(&keys).await.expect("a mark").is_some());
        let report =
            snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
        assert!(report.resumed && report.generation == 1, "{report:?}");
        assert_eq!(state(&hot, &keys).await, before);
    });
}

#[test]
fn a_changed_row_is_found_before_anything_is_restored() {
    let Some(server) = shared_postgres() else { return };
    let url = server.fresh_database();
    block_on(async {
        let hot = embedded();
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), connected(&url).await));
        let keys = keys_of(&ring);
        testing::plant_all_types(&hot, &ring).await;
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        let changes = [
            "UPDATE ember_snapshot_key SET deadline = 77 WHERE position = 1",
            "UPDATE ember_snapshot_key SET value = '\\x01' WHERE position = 2",
            "DELETE FROM ember_snapshot_key WHERE position = 0",
        ];
        put_ships(&hot, &ring, 0..3, 7).await;
        let before = state(&hot, &keys).await;
        for change in changes {
            server.sql(&url, change);
            let refused = snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await;
            let error = refused.expect_err(change);
            assert!(
                matches!(&error, Error::Damaged { snapshot, .. } if snapshot.contains(taken.id.as_str())),
                "{error}"
            );
        }
        assert_eq!(state(&hot, &keys).await, before);
    });
}

#[test]
fn rights_and_databases_that_are_missing_are_named_without_the_password() {
    let Some(server) = shared_postgres() else { return };
    let url = server.fresh_database();
    server.sql(&url, "CREATE USER guest PASSWORD 'verysecret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let guest = url.replace("tester@", "guest:verysecret@");
    let missing = format!("{guest}no");
    for wrong in [guest, missing] {
        let error = block_on(PostgresStore::connect(&wrong)).err().expect("it is refused");
        assert!(matches!(error, Error::Denied { .. }), "{error:?}");
        assert!(!error.to_string().contains("verysecret"), "{error}");
    }
}

#[test]
fn a_full_server_keeps_nothing_of_a_snapshot_and_takes_the_next_one() {
    let scratch = scratch();
    let Some(disk) = require(SmallDisk::mount(scratch.join("small"), 24 * 1024)) else { return };
    let Some(server) = postgres() else { return };
    let url = server.database_in(disk.path());
    block_on(async {
        let hot = embedded();
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), connected(&url).await));
        let keys = keys_of(&ring);
        // Noise, which cannot be compressed.
        let mut state = 1u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b' ' + (state % 90) as u8)
        };
        for id in 0..150 {
            put_notes(&hot, &ring, id..id + 1, (0..200_000).map(|_| noise()).collect()).await;
        }
        let full = snapshots.create(&keys, Label::default(), &mut |_| ()).await;
        assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
        assert_eq!(snapshots.list().await.expect("a list").snapshots, []);
        disk.resize(200 * 1024);
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        assert_eq!(snapshots.verify(&taken.id).await.map(|info| info.keys), Ok(150));
    });
    drop(server);
}

#[test]
fn a_private_authority_is_trusted_when_it_is_named_and_only_then() {
    let (Some(certificates), Some(server)) = (require(Certificates::make()), postgres()) else { return };
    let url = server.fresh_database();
    server.require_tls(&certificates);
    let ca = |certificates: &Certificates| format!("{url}?ca={}", certificates.path("ca.pem").display());
    block_on(async {
        let store = connected(&ca(&certificates)).await;
        assert_eq!(store.raise_generation("Ring:r", 0).await, Ok(1));
        let other = Certificates::make().expect("openssl worked a moment ago");
        for untrusted in [ca(&other), format!("{url}?sslmode=require")] {
            let error = PostgresStore::connect(&untrusted).await.err().expect("it is refused");
            assert!(error.to_string().contains("certificate"), "{error}");
        }
        let plain = PostgresStore::connect(&url).await.err();
        assert!(matches!(plain, Some(Error::Denied { .. })), "{plain:?}");
        let missing = PostgresStore::connect(&format!("{url}?ca=/no/such/ca.pem")).await.err();
        assert!(matches!(missing, Some(Error::Invalid { .. })), "{missing:?}");
    });
}
