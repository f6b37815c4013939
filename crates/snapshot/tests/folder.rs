//! The store in a folder: the suite on every engine, damage, processes that die.

use emberkeep_hot::command::{Content, KeyDump, Score};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::{Store, embedded::Embedded};
use emberkeep_hot_redis::RedisEngine;
use emberkeep_snapshot::limits::BLOCK_BYTES;
use emberkeep_snapshot::testing::{self, FLEET, NOTE, SHIP, fresh_ring, keys_of, plant, put_ships, state};
use emberkeep_snapshot::{Error, FileStore, KeyChoice, KeySource, Label, SnapshotStore, Snapshots};
use emberkeep_testkit::{SmallDisk, block_on, require, scratch, shared_cluster, shared_redis};
use proptest::prelude::*;
use std::fs;
use std::sync::Arc;

fn embedded() -> Store {
    Store::new(Arc::new(Embedded::in_memory()))
}

async fn on_server(url: &str) -> Store {
    Store::new(RedisEngine::connect(url).await.expect("the server of the test is up"))
}

fn folder(path: &std::path::Path) -> Arc<dyn SnapshotStore> {
    FileStore::open(path).expect("a folder").shared()
}

#[test]
fn every_case_on_the_embedded_engine() {
    let scratch = scratch();
    block_on(testing::run_all(embedded(), folder(scratch.path())));
}

#[test]
fn every_case_on_redis() {
    let Some(redis) = shared_redis() else { return };
    let scratch = scratch();
    block_on(async { testing::run_all(on_server(&redis.fresh_db()).await, folder(scratch.path())).await });
}

#[test]
fn every_case_on_a_cluster() {
    let Some(cluster) = shared_cluster() else { return };
    let scratch = scratch();
    block_on(async { testing::run_all(on_server(&cluster.url()).await, folder(scratch.path())).await });
}

#[test]
fn a_snapshot_of_one_engine_is_restored_on_another() {
    let Some(cluster) = shared_cluster() else { return };
    let scratch = scratch();
    block_on(async {
        let (here, there) = (embedded(), on_server(&cluster.url()).await);
        let ring = fresh_ring(&there);
        let keys = keys_of(&ring);
        testing::plant_all_types(&here, &ring).await;
        let taken =
            Snapshots::new(here, folder(scratch.path())).create(&keys, Label::default(), &mut |_| ()).await;
        let snapshots = Snapshots::new(there.clone(), folder(scratch.path()));
        let id = taken.expect("a snapshot").id;
        let report = snapshots.restore(&id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
        assert_eq!(report.changes.added, 5);
        assert!(snapshots.diff_live(&id, &keys, &KeyChoice::all()).await.expect("a diff").is_empty());
    });
}

/// A source that returns much at once, as a page of large keys of a server.
struct OnePage {
    at: i64,
    keys: Option<Vec<KeyDump>>,
}

impl KeySource for OnePage {
    fn at(&self) -> i64 {
        self.at
    }

    fn is_one_moment(&self) -> bool {
        false
    }

    fn next(&mut self) -> Pending<'_, emberkeep_hot::Result<Option<Vec<KeyDump>>>> {
        let keys = self.keys.take();
        Box::pin(async { Ok(keys) })
    }
}

#[test]
fn a_page_of_many_bytes_is_stored_in_blocks() {
    let scratch = scratch();
    block_on(async {
        let (hot, store) = (embedded(), folder(scratch.path()));
        let (ring, layout) = (fresh_ring(&hot), hot.key_layout().clone());
        let (sizes, large) = ([1_000, BLOCK_BYTES / 3, 2 * BLOCK_BYTES], 2 * BLOCK_BYTES);
        let key = |id: u32| KeyDump {
            key: NOTE.key(id).to_text(&layout, &ring).into(),
            content: Content::Text(vec![b'x'; sizes[id as usize % 3]].into()),
            deadline: None,
        };
        let keys: Vec<KeyDump> = (0..30).map(key).collect();
        let mut source = OnePage { at: hot.now().await.expect("a time"), keys: Some(keys.clone()) };
        let snapshots = Snapshots::new(hot, store.clone());
        let taken = snapshots.create_from(&keys_of(&ring), &mut source, Label::default(), &mut |_| ()).await;
        let mut reader = store.open(&taken.expect("a snapshot").id).await.expect("it is whole");
        let mut read = Vec::new();
        while let Some(block) = reader.next().await.expect("a block") {
            let bytes: usize = block.iter().map(KeyDump::bytes).sum();
            assert!(bytes <= BLOCK_BYTES || (block.len() == 1 && bytes < large + 1_000), "{bytes}");
            read.extend(block);
        }
        assert_eq!(read, keys);
    });
}

/// Every byte of the file, changed: the file is named and refused, and hot state stays as it is.
#[test]
fn a_damaged_file_is_named_and_refused_as_a_whole() {
    let scratch = scratch();
    block_on(async {
        let (hot, store) = (embedded(), folder(scratch.path()));
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
        let keys = keys_of(&ring);
        testing::plant_all_types(&hot, &ring).await;
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        put_ships(&hot, &ring, 0..3, 7).await;
        let changed = state(&hot, &keys).await;
        let path = scratch.join(format!("{}.snapshot", taken.id));
        let sound = fs::read(&path).expect("the file");
        for place in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[place] ^= 0x10;
            fs::write(&path, &damaged).expect("the file");
            let refused = snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await;
            let error = refused.expect_err("damage is found");
            let is_named = error.to_string().contains(taken.id.as_str());
            let is_typed = matches!(error, Error::Damaged { .. } | Error::NewerFormat { .. });
            assert!(is_typed && is_named, "byte {place}: {error}");
        }
        for cut in [0, 5, 12, 30, sound.len() / 2, sound.len() - 1] {
            fs::write(&path, &sound[..cut]).expect("the file");
            let listed = snapshots.list().await.expect("a list");
            assert_eq!((listed.snapshots.len(), listed.damaged.len()), (0, 1), "cut at {cut}");
        }
        assert_eq!(state(&hot, &keys).await, changed, "nothing was half restored");
        assert_eq!(snapshots.unfinished(&keys).await, Ok(None));
    });
}

#[test]
fn a_file_that_cannot_be_read_is_named_beside_the_others() {
    let scratch = scratch();
    block_on(async {
        let (hot, store) = (embedded(), folder(scratch.path()));
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot, store));
        let taken =
            snapshots.create(&keys_of(&ring), Label::default(), &mut |_| ()).await.expect("a snapshot");
        // A folder instead of a file: also root cannot read it.
        fs::create_dir(scratch.join("1795000000000-00000000.snapshot")).expect("a folder");
        let listed = snapshots.list().await.expect("a list");
        assert_eq!(listed.snapshots, [taken]);
        assert_eq!(listed.damaged[0].snapshot, "1795000000000-00000000.snapshot");
    });
}

#[test]
fn what_a_dead_process_left_is_removed_and_what_a_living_one_writes_stays() {
    let scratch = scratch();
    block_on(async {
        let (hot, store) = (embedded(), folder(scratch.path()));
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store.clone()));
        put_ships(&hot, &ring, 0..3, 7).await;
        let keys = keys_of(&ring);
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        let abandoned = scratch.join("1795000000000-00000000.unfinished");
        fs::write(&abandoned, b"EMBSNAP\n").expect("a file");
        let mut info = taken.clone();
        info.id = "1795000000000-00000001".parse().expect("an id");
        let writer = store.begin(&info).await.expect("a writer");
        let again = folder(scratch.path());
        assert!(!abandoned.exists() && scratch.join("1795000000000-00000001.unfinished").exists());
        writer.finish(info).await.expect("it can end");
        assert_eq!(again.list().await.expect("a list").snapshots.len(), 2);
    });
}

#[test]
fn a_full_disk_keeps_nothing_of_a_snapshot_and_takes_the_next_one() {
    let scratch = scratch();
    let Some(disk) = require(SmallDisk::mount(scratch.join("small"), 400)) else { return };
    block_on(async {
        let hot = embedded();
        let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), folder(disk.path())));
        put_ships(&hot, &ring, 0..20_000, 1).await;
        let keys = keys_of(&ring);
        let full = snapshots.create(&keys, Label::default(), &mut |_| ()).await;
        assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
        assert_eq!(fs::read_dir(disk.path()).expect("a folder").count(), 0, "nothing is left of it");
        disk.resize(40_000);
        let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
        assert_eq!(snapshots.verify(&taken.id).await.map(|info| info.keys), Ok(20_000));
    });
}

fn bytes() -> impl Strategy<Value = bytes::Bytes> {
    proptest::collection::vec(any::<u8>(), 0..12).prop_map(Into::into)
}

fn content() -> impl Strategy<Value = Content> {
    let set = proptest::collection::btree_set(bytes(), 1..6);
    let map = proptest::collection::btree_map(bytes(), bytes(), 1..6);
    let scores = proptest::collection::btree_map(bytes(), -9i64..9, 1..6);
    let sorted = |scores: std::collections::BTreeMap<bytes::Bytes, i64>| {
        let mut members: Vec<_> = scores.into_iter().map(|(m, s)| (m, Score::from_i64(s))).collect();
        members.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        Content::SortedSet(members)
    };
    prop_oneof![
        bytes().prop_map(Content::Text),
        map.prop_map(|map| Content::Hash(map.into_iter().collect())),
        set.prop_map(|set| Content::Set(set.into_iter().collect())),
        scores.prop_map(sorted),
        proptest::collection::vec(bytes(), 1..6).prop_map(Content::List),
    ]
}

/// Keys of some families by id, of any type, with a deadline or without.
fn partition_state() -> impl Strategy<Value = std::collections::BTreeMap<(u8, u32), (Content, Option<u32>)>> {
    let value = (content(), proptest::option::of(1u32..1_000));
    proptest::collection::btree_map((0u8..3, 0u32..20), value, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_restore_of_a_snapshot_is_what_was_there(before in partition_state(), after in partition_state()) {
        let scratch = scratch();
        block_on(async {
            let hot = embedded();
            let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), folder(scratch.path())));
            let keys = keys_of(&ring);
            let layout = hot.key_layout().clone();
            let far = hot.now().await.expect("a time") + 3_600_000;
            let dumps = |state: std::collections::BTreeMap<(u8, u32), (Content, Option<u32>)>| {
                let dump = |((family, id), (content, after)): ((u8, u32), (Content, Option<u32>))| {
                    let key = match family {
                        0 => NOTE.key(id).to_text(&layout, &ring),
                        1 => SHIP.key(id).to_text(&layout, &ring),
                        _ => FLEET.key(id).to_text(&layout, &ring),
                    };
                    KeyDump { key: key.into(), content, deadline: after.map(|ms| far + i64::from(ms)) }
                };
                state.into_iter().map(dump).collect::<Vec<_>>()
            };
            plant(&hot, &keys, dumps(before)).await;
            let expected = state(&hot, &keys).await;
            let taken = snapshots.create(&keys, Label::default(), &mut |_| ()).await.expect("a snapshot");
            plant(&hot, &keys, dumps(after)).await;
            snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
            assert_eq!(state(&hot, &keys).await, expected);
        });
    }
}
