//! The embedded store passes the suite, and does what only a store in a folder does: it is opened again, it is
//! opened once, it refuses when it must, and it drops what has expired.

mod folders;

use emberkeep_history::embedded::{Durability, Options};
use emberkeep_history::testing::{
    AllTimeBoard, CombatEvent, NOW, Name, PlayerStats, Profile, event, kills, run_all, schema,
};
use emberkeep_history::{
    Clock, Embedded, Error, Fold, FoldEntry, History, HistorySchema, ManualClock, Source, TotalsEntry,
};
use emberkeep_schema::{Table, Timestamp, Totals, Value, table, totals};
use folders::{Folder, options};
use std::sync::Arc;
use std::time::Duration;

fn open(folder: &Folder) -> History {
    History::new(Arc::new(Embedded::open(folder.path(), schema(), options()).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite() {
    let folder = Folder::new();
    run_all(&open(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_when_every_write_is_synced() {
    let folder = Folder::new();
    let options = Options { durability: Durability::Always, ..options() };
    run_all(&History::new(Arc::new(Embedded::open(folder.path(), schema(), options).unwrap()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_there_after_it_is_opened_again() {
    let folder = Folder::new();
    let rows: Vec<_> = (0..100).map(|n| event(1, n * 3_600_000, n as u128)).collect();
    for round in 0..4 {
        let history = open(&folder);
        if round == 0 {
            history.insert_many(rows.clone()).await.unwrap();
            let source = Source::of_log("s", "l", "i");
            history.fold(&source, [kills(1, 7, 3)]).await.unwrap();
        }
        let days = rows[99].timestamp.day()..=Timestamp(NOW).day();
        let found =
            history.range(CombatEvent::by_attacker(1, days)).rows_max(1_000).page(None).await.unwrap();
        assert_eq!(found.rows, rows, "round {round}");
        assert_eq!(history.totals::<PlayerStats>(7).await.unwrap().unwrap().sums.total_kills, 3);
        // With and without a proper stop.
        if round % 2 == 0 {
            history.close().await.unwrap();
            assert_eq!(history.insert(event(1, 1, 1)).await, Err(Error::Closed));
            assert_eq!(history.get(event(1, 1, 1).row_key()).await, Err(Error::Closed));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_has_one_user() {
    let folder = Folder::new();
    let history = open(&folder);
    let error = Embedded::open(folder.path(), schema(), options()).err().unwrap();
    assert!(
        matches!(&error, Error::Folder { problem, .. } if problem.contains("in use by process")),
        "{error}"
    );
    drop(history);
    open(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_dropped_when_all_their_rows_have_expired() {
    let folder = Folder::new();
    let clock = ManualClock::at(NOW);
    let options = Options { clock: Clock::Manual(clock.clone()), ..options() };
    let store = Arc::new(Embedded::open(folder.path(), schema(), options).unwrap());
    let history = History::new(store.clone());
    let day = 86_400_000;
    let rows: Vec<_> = (0..5).map(|n| event(1, n * day, n as u128)).collect();
    history.insert_many(rows.clone()).await.unwrap();
    history.insert_if_absent(Name { name: "n".into(), player_id: 1, token: None }).await.unwrap();
    assert_eq!(history.stats().windows, 6);
    // The last millisecond of the oldest row, and the one after it.
    clock.advance(26 * day as u64 - 1);
    assert_eq!(history.get(rows[4].row_key()).await.unwrap(), Some(rows[4].clone()));
    clock.advance(1);
    assert_eq!(history.get(rows[4].row_key()).await.unwrap(), None, "expired, although it is still stored");
    let days = rows[4].timestamp.day()..=Timestamp(NOW).day();
    let found = history.range(CombatEvent::by_attacker(1, days)).page(None).await.unwrap();
    assert_eq!(found.rows, rows[..4]);
    store.retain().await.unwrap();
    assert_eq!(history.stats().windows_dropped, 0, "other rows of that day live on");
    clock.advance(day as u64);
    store.retain().await.unwrap();
    assert_eq!((history.stats().windows, history.stats().windows_dropped), (5, 1));
    assert_eq!(history.get(Name::key("n".into())).await.unwrap(), None);
    drop((history, store));
    let reopened = open(&folder);
    assert_eq!(reopened.stats().windows, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_writes_nothing() {
    let folder = Folder::new();
    let options = Options { free_bytes_min: u64::MAX, ..options() };
    let history = History::new(Arc::new(Embedded::open(folder.path(), schema(), options).unwrap()));
    let error = history.insert(event(1, 1, 1)).await.unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }) && error.is_transient(), "{error}");
    assert_eq!(history.get(event(1, 1, 1).row_key()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_visible_and_refuses_in_time() {
    let folder = Folder::new();
    let options = Options { queue_rows_max: 10_000, queue_wait: Duration::ZERO, ..options() };
    let history = History::new(Arc::new(Embedded::open(folder.path(), schema(), options).unwrap()));
    let calls: Vec<_> = (0..20)
        .map(|call| {
            let history = history.clone();
            tokio::spawn(
                async move { history.insert_many((0..5_000).map(|n| event(call, n, n as u128))).await },
            )
        })
        .collect();
    let (mut stored, mut busy) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(written) => stored += written.rows,
            Err(Error::Busy { .. }) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let stats = history.stats();
    assert_eq!(stats.queued_rows, 0);
    assert_eq!((stats.refused, stats.rows_written), (busy, stored as u64));
    assert_eq!(stored + 5_000 * busy as usize, 100_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_queue_is_refused() {
    let folder = Folder::new();
    let options = Options { queue_rows_max: 0, ..options() };
    let error = Embedded::open(folder.path(), schema(), options).err().unwrap();
    assert!(error.to_string().contains("queue_rows_max"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_close_has_the_same_result_and_the_folder_stays_locked_until_the_end() {
    let folder = Folder::new();
    let history = open(&folder);
    history.insert(event(1, 1, 1)).await.unwrap();
    let closes: Vec<_> = (0..8)
        .map(|_| {
            let history = history.clone();
            tokio::spawn(async move { history.close().await })
        })
        .collect();
    for close in closes {
        close.await.unwrap().unwrap();
    }
    history.close().await.unwrap();
    assert_eq!(history.insert(event(1, 2, 2)).await, Err(Error::Closed));
    let error = Embedded::open(folder.path(), schema(), options()).err().unwrap();
    assert!(error.to_string().contains("in use by process"), "{error}");
    drop(history);
    assert!(open(&folder).get(event(1, 1, 1).row_key()).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_that_cannot_write_its_files_is_an_error_and_ends() {
    let folder = Folder::new();
    let history = open(&folder);
    history.insert(event(1, 1, 1)).await.unwrap();
    // Renamed in one step: a removal would race with the files that the store makes in the background.
    std::fs::rename(folder.path().join("store/keyspaces"), folder.path().join("gone")).unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(30), history.close()).await.unwrap();
    assert!(closed.is_err(), "{closed:?}");
    assert_eq!(history.close().await, closed, "the same result again");
    assert!(!folder.path().join("CLEAN").exists());
}

totals! {
    /// Sums of a name.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ByName = "sums_by_name" by "sums_by_name_and_source" {
        key: name: String,
        sums: {
            /// How many.
            count,
        },
        owner: "test",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_too_long_is_refused_and_the_writer_goes_on() {
    let folder = Folder::new();
    let schema = HistorySchema::new().totals::<ByName>();
    let history = History::new(Arc::new(Embedded::open(folder.path(), schema, options()).unwrap()));
    let source = Source::of_log("s", "l", "i");
    let long = "n".repeat(70_000);
    let entry = |name: &str| TotalsEntry {
        position: 1,
        key: name.to_owned(),
        at: Timestamp(NOW),
        amounts: ByName { count: 1 },
    };
    let error = history.fold(&source, [entry(&long)]).await.unwrap_err();
    assert_eq!(error.code(), "too_large", "{error}");
    assert_eq!(history.totals::<ByName>(long.clone()).await.unwrap_err().code(), "too_large");
    // A caller of the store itself is not checked before the writer.
    let entries = vec![FoldEntry { position: 1, key: Value::Text(long), amounts: vec![1], at_ms: 0 }];
    let unchecked = Fold { totals: ByName::DECLARATION, source: source.clone(), entries };
    let error = history.store().fold(vec![unchecked]).await.unwrap_err();
    assert!(matches!(error.code(), "too_large" | "internal"), "{error}");
    history.fold(&source, [entry("n")]).await.unwrap();
    assert_eq!(history.totals::<ByName>("n".to_owned()).await.unwrap().unwrap().sums.count, 1);
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_a_newer_format_is_refused_and_one_without_a_format_is_the_first() {
    let folder = Folder::new();
    let path = folder.path().join("FORMAT");
    let open = || Embedded::open(folder.path(), schema(), options());
    let history = History::new(Arc::new(open().unwrap()));
    history.insert(event(1, 0, 1)).await.unwrap();
    history.close().await.unwrap();
    drop(history);
    let first = std::fs::read_to_string(&path).unwrap();
    assert!(first.starts_with("emberkeep history 1 "), "{first}");

    std::fs::remove_file(&path).unwrap();
    let history = History::new(Arc::new(open().unwrap()));
    assert!(history.get(event(1, 0, 1).row_key()).await.unwrap().is_some());
    history.close().await.unwrap();
    drop(history);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first, "it is written");

    let text = "emberkeep history 70";
    let newer = format!("{text} {:08x}\n", crc32c::crc32c(text.as_bytes()));
    std::fs::write(&path, &newer).unwrap();
    for accept_loss in [false, true] {
        let error =
            Embedded::open(folder.path(), schema(), Options { accept_loss, ..options() }).err().unwrap();
        assert!(matches!(error, Error::NewerFormat { found: 70, known: 1, .. }), "{error}");
        assert!(
            error.to_string().contains("has format 70, and this version reads formats up to 1"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer, "nothing is changed");
    }

    for text in ["", "1", "emberkeep history 1 00000000\n"] {
        std::fs::write(&path, text).unwrap();
        let error = open().err().unwrap();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    drop(Embedded::open(folder.path(), schema(), Options { accept_loss: true, ..options() }).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
}

macro_rules! visits {
    ($name:ident, $days:literal) => {
        table! {
            /// Visits of players.
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name = "visits" {
                /// The player.
                pub player_id: i64,
                /// When.
                pub at: Timestamp,
                /// Where.
                pub zone_id: i32,
            }
            partition: (player_id),
            clustering: (at desc),
            ttl: days($days) of at,
            lookups: (by_zone(zone_id)),
            writes: rows,
            owner: "test",
        }
    };
}
visits!(LongVisit, 30);
visits!(ShortVisit, 10);

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_ttl_has_ended_changes_nothing() {
    let folder = Folder::new();
    let open = |schema| History::new(Arc::new(Embedded::open(folder.path(), schema, options()).unwrap()));
    let at = Timestamp(NOW - 20 * 86_400_000);
    let history = open(HistorySchema::new().table::<LongVisit>());
    history.upsert(LongVisit { player_id: 1, at, zone_id: 5 }).await.unwrap();
    drop(history);
    let history = open(HistorySchema::new().table::<ShortVisit>());
    let written = history.upsert(ShortVisit { player_id: 1, at, zone_id: 6 }).await.unwrap();
    assert_eq!((written.rows, written.expired), (0, 1));
    let found = history.range(ShortVisit::by_zone(5)).page(None).await.unwrap();
    assert_eq!(found.rows, [ShortVisit { player_id: 1, at, zone_id: 5 }], "it was written to live 30 days");
}

mod older {
    //! The profile as an older version declared it: fewer columns, another lookup.
    use emberkeep_schema::table;

    table! {
        /// Rows that change.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Profile = "player_profiles" {
            /// The key, which stays the same.
            pub player_id: i64,
            /// A text without a lookup.
            pub username: String,
            /// A text without a lookup.
            pub email: String,
            /// A number that stays the same.
            pub level: i32,
        }
        partition: (player_id),
        clustering: (),
        ttl: persistent,
        writes: rows,
        owner: "accounts",
    }

    table! {
        /// A column of another type.
        #[derive(Clone, Debug, PartialEq)]
        pub struct OtherType = "player_profiles" {
            /// The player.
            pub player_id: i64,
            /// The name.
            pub username: i64,
        }
        partition: (player_id),
        clustering: (),
        ttl: persistent,
        writes: rows,
        owner: "accounts",
    }

    table! {
        /// Another key.
        #[derive(Clone, Debug, PartialEq)]
        pub struct OtherKey = "player_profiles" {
            /// The player.
            pub player_id: i64,
            /// The name.
            pub username: String,
        }
        partition: (username),
        clustering: (),
        ttl: persistent,
        writes: rows,
        owner: "accounts",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_older_declaration_stay_readable() {
    let folder = Folder::new();
    let old =
        older::Profile { player_id: 1, username: "ann".into(), email: "ann@example.org".into(), level: 3 };
    let schema_of_old = || HistorySchema::new().table::<older::Profile>();
    let open_old =
        || History::new(Arc::new(Embedded::open(folder.path(), schema_of_old(), options()).unwrap()));
    open_old().upsert(old.clone()).await.unwrap();
    let history = open(&folder);
    let mut new = history.get(Profile::key(1)).await.unwrap().unwrap();
    assert_eq!((new.username.as_str(), new.last_known_ip), ("ann", None));
    let found = history.range(Profile::by_username("ann")).page(None).await.unwrap();
    assert_eq!(found.rows, [new.clone()], "a new lookup finds old rows");
    new.last_known_ip = "10.0.0.1".parse().ok();
    history.upsert(new.clone()).await.unwrap();
    drop(history);
    let history = open_old();
    history.upsert(older::Profile { username: "bob".into(), ..old }).await.unwrap();
    drop(history);
    let history = open(&folder);
    let found = history.get(Profile::key(1)).await.unwrap().unwrap();
    assert_eq!(
        found,
        Profile { username: "bob".into(), ..new },
        "a column of a newer declaration is preserved"
    );
    let found = history.range(Profile::by_username("bob")).page(None).await.unwrap();
    assert_eq!(found.rows.len(), 1, "the lookup was not maintained by the older version, and is built anew");
    let stale = history.range(Profile::by_username("ann")).page(None).await.unwrap();
    assert_eq!(stale.rows, []);
    drop(history);
    for schema in
        [HistorySchema::new().table::<older::OtherType>(), HistorySchema::new().table::<older::OtherKey>()]
    {
        let error = Embedded::open(folder.path(), schema, options()).err().unwrap();
        assert_eq!(error.code(), "schema_mismatch", "{error}");
    }
    let twice = HistorySchema::new().table::<Profile>().table::<older::Profile>();
    assert_eq!(Embedded::open(folder.path(), twice, options()).err().unwrap().code(), "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_is_remembered_for_a_week_and_then_swept() {
    let folder = Folder::new();
    let clock = ManualClock::at(NOW);
    let options = Options { clock: Clock::Manual(clock.clone()), ..options() };
    let store = Arc::new(Embedded::open(folder.path(), schema(), options).unwrap());
    let history = History::new(store.clone());
    let board = AllTimeBoard { category: "kills".into(), entries: vec![] };
    history.upsert_at(board.clone(), 5).await.unwrap();
    history.delete_at(board.row_key(), 7).await.unwrap();
    clock.advance(7 * 86_400_000 - 1);
    store.retain().await.unwrap();
    history.upsert_at(board.clone(), 6).await.unwrap();
    assert_eq!(history.get(board.row_key()).await.unwrap(), None);
    clock.advance(1);
    store.retain().await.unwrap();
    history.upsert_at(board.clone(), 6).await.unwrap();
    assert_eq!(history.get(board.row_key()).await.unwrap(), Some(board));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_full_of_bytes_refuses_too() {
    let folder = Folder::new();
    let options = Options { queue_bytes_max: 1_000_000, queue_wait: Duration::ZERO, ..options() };
    let history = History::new(Arc::new(Embedded::open(folder.path(), schema(), options).unwrap()));
    let calls: Vec<_> = (0..20)
        .map(|call| {
            let history = history.clone();
            let large =
                CombatEvent { server_instance: "x".repeat(700_000), ..event(call, call, call as u128) };
            tokio::spawn(async move { history.insert(large).await })
        })
        .collect();
    let mut busy = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => {}
            Err(Error::Busy { .. }) => busy += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let stats = history.stats();
    assert_eq!((stats.queued_bytes, stats.queue_bytes_max, stats.refused), (0, 1_000_000, busy));
    assert_eq!(stats.rows_written, 20 - busy);
    assert!(busy > 0);
    // One that is larger than the queue is written when the queue is empty.
    history.insert_many((0..4_000).map(|n| event(50, n, n as u128))).await.unwrap();
}

/// A process that was killed while it made its first store: the next one makes it anew.
#[tokio::test]
async fn a_store_that_was_not_finished_is_made_anew() {
    let folder = Folder::new();
    for files in [&["lock"][..], &["lock", "0.jnl"], &["lock", "0.jnl", "version"]] {
        let store = folder.path().join("store");
        std::fs::create_dir_all(store.join("keyspaces/0")).unwrap();
        for file in files {
            std::fs::write(store.join(file), "").unwrap();
        }
        open(&folder).close().await.unwrap();
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
}
