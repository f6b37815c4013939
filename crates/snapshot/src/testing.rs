//! The suite that every store of snapshots passes: each case is given hot state and a store, and uses a partition of its
//! own. It panics if something is not as the contract says.

use crate::{
    Error, KeyChoice, Label, Progress, Retention, SnapshotId, SnapshotInfo, SnapshotStore, Snapshots,
};
use emberkeep_hot::Store;
use emberkeep_hot::command::{Content, Expiry, KeyDump, Score, Write};
use emberkeep_hot::store::PartitionKeys;
use emberkeep_schema::{
    Hash, Id, List, Name, Number, Schema, Set, SortedSet, Text, Utf8, family, partition, schema,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

partition! {
    /// A ring of a test.
    pub struct Ring(Name) as "ring";
}
family! {
    /// A text.
    pub NOTE = "snap:note:{ring}:{id}" {
        kind: Text<Utf8>, partition: Ring, parts: (id: u32), ttl: given, owner: "tests"
    }
}
family! {
    /// A hash.
    pub SHIP = "snap:ship:{ring}:{id}" {
        kind: Hash<Utf8, Number<i64>>, partition: Ring, parts: (id: u32), ttl: persistent, owner: "tests"
    }
}
family! {
    /// A set.
    pub FLEET = "snap:fleet:{ring}:{id}" {
        kind: Set<Id<u32>>, partition: Ring, parts: (id: u32), ttl: persistent, owner: "tests"
    }
}
family! {
    /// A sorted set.
    pub BOARD = "snap:board:{ring}:{id}" {
        kind: SortedSet<Utf8>, partition: Ring, parts: (id: u32), ttl: persistent, owner: "tests"
    }
}
family! {
    /// A list.
    pub QUEUE = "snap:queue:{ring}:{id}" {
        kind: List<Utf8>, partition: Ring, parts: (id: u32), ttl: persistent, owner: "tests"
    }
}
family! {
    /// Who runs the ring: it belongs to a process.
    pub RUNNER = "snap:runner:{ring}" {
        kind: Text<Utf8>, partition: Ring, parts: (), ttl: persistent, owner: "tests", snapshot: never
    }
}
family! {
    /// A text that all rings share on one server.
    pub COMMON = "snap:common:{id}" {
        kind: Text<Utf8>, partition: shared Ring, parts: (id: u32), ttl: persistent, owner: "tests"
    }
}

/// The families of the suite.
pub fn families() -> Schema {
    schema![NOTE, SHIP, FLEET, BOARD, QUEUE, RUNNER, COMMON].expect("patterns that differ")
}

/// A partition that no other test uses.
pub fn fresh_ring(hot: &Store) -> Ring {
    Ring(Name::new(format!("r{:016x}", hot.engine().seed())).expect("a word"))
}

/// The keys of a partition.
pub fn keys_of(ring: &Ring) -> PartitionKeys {
    PartitionKeys::of(&families(), ring)
}

/// What hot state has of a partition, by raw key.
pub async fn state(hot: &Store, keys: &PartitionKeys) -> BTreeMap<bytes::Bytes, KeyDump> {
    let mut dump = hot.dump(keys).await.expect("a dump");
    let mut all = BTreeMap::new();
    while let Some(dumps) = dump.next().await.expect("a dump goes on") {
        all.extend(dumps.into_iter().map(|dump| (dump.key.clone(), dump)));
    }
    all
}

/// Hashes with these numbers.
pub async fn put_ships(hot: &Store, ring: &Ring, ids: std::ops::Range<u32>, value: i64) {
    let all: Vec<u32> = ids.collect();
    for ids in all.chunks(200) {
        let ids = ids.to_vec();
        let scope = hot.scope(ring.clone());
        let put = move |tx: &mut emberkeep_hot::Tx<'_, Ring>| {
            ids.iter().try_for_each(|id| {
                tx.hset(&SHIP.key(*id), &"x".to_owned(), &value)?;
                tx.hset(&SHIP.key(*id), &"y".to_owned(), &i64::from(*id))
            })
        };
        scope.transact(put).await.expect("a transaction");
    }
}

/// Replaces keys by what they should be.
pub async fn plant(hot: &Store, keys: &PartitionKeys, dumps: Vec<KeyDump>) {
    let dumps = Arc::new(dumps);
    let body = move |tx: &mut emberkeep_hot::tx::RawTx<'_>| {
        dumps.iter().try_for_each(|dump| {
            tx.write(dump.key.clone(), Write::Del)?;
            dump.writes().into_iter().try_for_each(|write| tx.write(dump.key.clone(), write))
        })
    };
    hot.transact_raw(keys.partition(), body).await.expect("a transaction");
}

/// One key of every type, one of them with a deadline.
pub async fn plant_all_types(hot: &Store, ring: &Ring) -> i64 {
    let deadline = hot.now().await.expect("a time") + 3_600_000;
    let raw = |key: String| bytes::Bytes::from(key);
    let layout = hot.key_layout();
    let dump = |key, content, deadline| KeyDump { key, content, deadline };
    let text = Content::Text("text".into());
    let hash = Content::Hash(vec![("x".into(), "1".into()), ("y".into(), "-2".into())]);
    let board = vec![("low".into(), Score::from_i64(-1)), ("high".into(), Score::from_i64(7))];
    let all = vec![
        dump(raw(NOTE.key(1).to_text(layout, ring)), text, Some(deadline)),
        dump(raw(SHIP.key(1).to_text(layout, ring)), hash, None),
        dump(raw(FLEET.key(1).to_text(layout, ring)), Content::Set(vec!["1".into(), "2".into()]), None),
        dump(raw(BOARD.key(1).to_text(layout, ring)), Content::SortedSet(board), None),
        dump(raw(QUEUE.key(1).to_text(layout, ring)), Content::List(vec!["".into(), "b".into()]), None),
    ];
    plant(hot, &keys_of(ring), all).await;
    deadline
}

async fn create(snapshots: &Snapshots, keys: &PartitionKeys, name: &str) -> SnapshotInfo {
    snapshots.create(keys, Label::named(name), &mut |_| ()).await.expect("a snapshot")
}

/// What was created is listed, compares as equal, and is restored in full: changed keys, removed keys, new keys.
pub async fn a_restore_brings_back_what_was(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    plant_all_types(&hot, &ring).await;
    put_ships(&hot, &ring, 10..700, 5).await;
    let before = state(&hot, &keys).await;
    let mut reported = Progress::default();
    let label = Label { tick: Some(77), ..Label::named("first") };
    let taken = snapshots.create(&keys, label, &mut |done| reported = done).await.expect("a snapshot");
    assert_eq!((taken.keys, reported.keys), (before.len() as u64, before.len() as u64));
    assert_eq!((taken.tick, taken.families["SHIP"], taken.generation), (Some(77), 691, 0));
    assert_eq!(snapshots.find("first").await.as_ref(), Ok(&taken));
    assert_eq!(snapshots.verify(&taken.id).await.as_ref(), Ok(&taken));
    assert!(snapshots.diff_live(&taken.id, &keys, &KeyChoice::all()).await.expect("a diff").is_empty());

    put_ships(&hot, &ring, 10..20, 6).await;
    put_ships(&hot, &ring, 1_000..1_300, 1).await;
    hot.scope(ring.clone()).del(&QUEUE.key(1)).await.expect("a transaction");
    let changes = snapshots.preview(&taken.id, &keys, &KeyChoice::all()).await.expect("a preview");
    assert_eq!((changes.added, changes.changed, changes.removed), (1, 10, 300));
    let (all, mut done) = (KeyChoice::all(), Progress::default());
    let report = snapshots.restore(&taken.id, &keys, &all, &mut |now| done = now).await.expect("a restore");
    assert_eq!((report.generation, report.resumed, report.changes), (1, false, changes));
    assert_eq!((done.keys, done.total), (311, Some(311)));
    assert_eq!(state(&hot, &keys).await, before);
    assert_eq!(snapshots.unfinished(&keys).await, Ok(None));
    assert_eq!(snapshots.store().generation(&keys.label()).await, Ok(1));
}

/// Only chosen keys are restored; two snapshots are compared; a snapshot of another partition is refused.
pub async fn a_restore_of_some_keys(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    plant_all_types(&hot, &ring).await;
    let first = create(&snapshots, &keys, "").await;
    put_ships(&hot, &ring, 1..3, 9).await;
    hot.scope(ring.clone()).del(&NOTE.key(1)).await.expect("a transaction");
    let second = create(&snapshots, &keys, "").await;
    let changes = snapshots.diff(&first.id, &second.id, &KeyChoice::all()).await.expect("a diff");
    assert_eq!((changes.added, changes.changed, changes.removed, changes.unchanged), (1, 1, 1, 3));
    let ships = KeyChoice::prefixes(&["snap:ship:".to_owned()]);
    let report = snapshots.restore(&first.id, &keys, &ships, &mut |_| ()).await.expect("a restore");
    assert_eq!((report.changes.changed, report.changes.removed, report.changes.added), (1, 1, 0));
    let left = snapshots.diff_live(&first.id, &keys, &KeyChoice::all()).await.expect("a diff");
    assert_eq!((left.changed, left.removed, left.added), (0, 1, 0), "the note stayed away: {left:?}");
    let other = keys_of(&fresh_ring(&hot));
    let refused = snapshots.restore(&first.id, &other, &KeyChoice::all(), &mut |_| ()).await;
    assert!(matches!(refused, Err(Error::Invalid { what: "snapshot", .. })), "{refused:?}");
}

/// A family of running processes is not in snapshots: a restore leaves it as it is.
pub async fn what_belongs_to_processes_stays(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let (keys, scope) = (keys_of(&ring), hot.scope(ring.clone()));
    put_ships(&hot, &ring, 0..3, 1).await;
    scope.put(&RUNNER.key(), "before".to_owned()).await.expect("a transaction");
    let taken = create(&snapshots, &keys, "").await;
    assert_eq!((taken.keys, taken.families.get("RUNNER")), (3, None));
    scope.put(&RUNNER.key(), "after".to_owned()).await.expect("a transaction");
    put_ships(&hot, &ring, 0..3, 2).await;
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert_eq!((report.changes.changed, report.changes.removed), (3, 0));
    assert_eq!(scope.get(&RUNNER.key()).await.expect("a text"), Some("after".to_owned()));
}

/// Keys that all partitions share on one server are left alone unless they are asked for; on a Cluster each partition has
/// its own.
pub async fn shared_keys_are_asked_for(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let (keys, scope) = (keys_of(&ring), hot.scope(ring.clone()));
    let key = COMMON.key(hot.engine().seed() as u32);
    let text = async || scope.get(&key).await.expect("a text").unwrap_or_default();
    let put = async |text: &str| scope.put(&key, text.to_owned()).await.expect("a transaction");
    let restored = async |id: &SnapshotId, keys: &PartitionKeys| {
        snapshots.restore(id, keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    };
    let is_shared = hot.key_layout().topology() == emberkeep_schema::Topology::Single;
    let shared = keys.clone().with_shared();
    put("before").await;
    let (without, with) = (create(&snapshots, &keys, "").await, create(&snapshots, &shared, "").await);
    assert_eq!(without.families.contains_key("COMMON"), !is_shared);
    assert_eq!(keys.left_out(hot.key_layout()), if is_shared { vec!["COMMON"] } else { vec![] });
    assert!(with.families.contains_key("COMMON") && shared.left_out(hot.key_layout()).is_empty());
    put("after").await;
    restored(&without.id, &keys).await;
    assert_eq!(text().await, if is_shared { "after" } else { "before" });
    put("after").await;
    restored(&with.id, &keys).await;
    assert_eq!(text().await, if is_shared { "after" } else { "before" }, "they were not asked for");
    put("after").await;
    restored(&without.id, &shared).await;
    assert_eq!(text().await, if is_shared { "after" } else { "before" }, "the snapshot does not have them");
    restored(&with.id, &shared).await;
    assert_eq!(text().await, "before");
}

/// A restore that was interrupted leaves a mark, refuses a part of another one, and goes on with its generation.
pub async fn an_interrupted_restore_goes_on(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..500, 1).await;
    let before = state(&hot, &keys).await;
    let taken = create(&snapshots, &keys, "").await;
    put_ships(&hot, &ring, 0..500, 2).await;
    let interrupted = tokio::spawn({
        let (snapshots, keys, id) = (snapshots.clone(), keys.clone(), taken.id.clone());
        async move {
            let mut batches = 0;
            let progress = &mut |_: Progress| {
                batches += 1;
                assert!(batches < 3, "the process ends here");
            };
            snapshots.restore(&id, &keys, &KeyChoice::all(), progress).await
        }
    });
    assert!(interrupted.await.is_err(), "it was interrupted");
    let mark = snapshots.unfinished(&keys).await.expect("a mark can be read").expect("there is one");
    assert_eq!((&mark.snapshot, mark.generation), (&taken.id, 1));
    let part = KeyChoice::prefixes(&["snap:ship:".to_owned()]);
    let refused = snapshots.restore(&taken.id, &keys, &part, &mut |_| ()).await;
    assert!(matches!(refused, Err(Error::Restoring { .. })), "{refused:?}");
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert!(report.resumed && report.generation == 1, "{report:?}");
    assert!((1..500).contains(&report.changes.changed), "some were restored before: {report:?}");
    assert_eq!(state(&hot, &keys).await, before);
    assert_eq!(snapshots.unfinished(&keys).await, Ok(None));
}

/// Keys keep their absolute deadlines; those whose deadline has passed stay away.
pub async fn deadlines_are_absolute(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    let far = plant_all_types(&hot, &ring).await;
    let soon = hot.now().await.expect("a time") + 150;
    let short = bytes::Bytes::from(NOTE.key(2).to_text(hot.key_layout(), &ring));
    let set = move |tx: &mut emberkeep_hot::tx::RawTx<'_>| {
        tx.write(short.clone(), Write::Set("ends".into(), Expiry::At(soon)))
    };
    hot.transact_raw(keys.partition(), set).await.expect("a transaction");
    let taken = create(&snapshots, &keys, "").await;
    assert_eq!(taken.keys, 6);
    while hot.now().await.expect("a time") <= soon {
        tokio::task::yield_now().await;
    }
    hot.scope(ring.clone()).del(&NOTE.key(1)).await.expect("a transaction");
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert_eq!((report.changes.expired, report.changes.added), (1, 1));
    let after = state(&hot, &keys).await;
    let deadlines: Vec<i64> = after.values().filter_map(|dump| dump.deadline).collect();
    assert_eq!((after.len(), deadlines), (5, vec![far]));
}

/// A snapshot that did not come to its end is not listed, and what is not listed cannot be opened.
pub async fn an_unfinished_snapshot_is_not_listed(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store.clone()));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..10, 1).await;
    let taken = create(&snapshots, &keys, "whole").await;
    let other = SnapshotInfo { id: SnapshotId::new(taken.created_at, 1), ..taken.clone() };
    let mut writer = store.begin(&other).await.expect("a writer");
    writer.write(state(&hot, &keys).await.into_values().collect()).await.expect("a write");
    drop(writer);
    let listed = store.list().await.expect("a list");
    let ids: Vec<&SnapshotId> =
        listed.snapshots.iter().filter(|info| info.partition == keys.label()).map(|info| &info.id).collect();
    assert_eq!(ids, [&taken.id]);
    assert!(matches!(store.open(&other.id).await, Err(Error::NotFound { .. })));
    let missing = snapshots.find("nothing-like-this").await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
}

/// A name that two partitions have means none of them; within a partition it means the newest.
pub async fn a_name_of_two_partitions_is_refused(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (first, second) = (keys_of(&fresh_ring(&hot)), keys_of(&fresh_ring(&hot)));
    let (snapshots, name) = (Snapshots::new(hot.clone(), store), format!("n{:016x}", hot.engine().seed()));
    create(&snapshots, &first, &name).await;
    let newest = create(&snapshots, &first, &name).await;
    assert_eq!(snapshots.find(&name).await.as_ref().map(|info| &info.partition), Ok(&newest.partition));
    let other = create(&snapshots, &second, &name).await;
    let refused = snapshots.find(&name).await.expect_err("two partitions").to_string();
    for text in [first.label(), second.label(), newest.id.to_string(), other.id.to_string()] {
        assert!(refused.contains(&text), "{refused}");
    }
    assert_eq!(snapshots.find(other.id.as_str()).await, Ok(other));
}

/// Snapshots are pruned by their rules, one partition at a time; a removed one cannot be opened.
pub async fn old_snapshots_are_pruned(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store.clone()));
    let (keys, others) = (keys_of(&ring), keys_of(&fresh_ring(&hot)));
    put_ships(&hot, &ring, 0..3, 1).await;
    let other = create(&snapshots, &others, "").await;
    let mut ids = Vec::new();
    for tick in 0..4 {
        let label = Label { tick: Some(tick), ..Label::default() };
        ids.push(snapshots.create(&keys, label, &mut |_| ()).await.expect("a snapshot").id);
    }
    let nothing = snapshots.prune(&keys.label(), None, Retention::default()).await;
    assert!(matches!(nothing, Err(Error::Invalid { .. })), "{nothing:?}");
    let keep = Retention { last: 2, ..Retention::default() };
    let removed = snapshots.prune(&keys.label(), None, keep).await.expect("a prune");
    assert_eq!(removed.iter().map(|info| &info.id).collect::<Vec<_>>(), [&ids[0], &ids[1]]);
    assert!(matches!(store.open(&ids[0]).await, Err(Error::NotFound { .. })));
    assert_eq!(store.remove(&ids[0]).await, Ok(false));
    assert!(snapshots.verify(&other.id).await.is_ok() && snapshots.verify(&ids[3]).await.is_ok());
}

/// Generations of partitions are apart, and only rise.
pub async fn generations_rise(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (first, second) = (keys_of(&fresh_ring(&hot)).label(), keys_of(&fresh_ring(&hot)).label());
    assert_eq!(store.generation(&first).await, Ok(0));
    assert_eq!(store.raise_generation(&first, 0).await, Ok(1));
    assert_eq!(store.raise_generation(&first, 9).await, Ok(9));
    assert_eq!(store.raise_generation(&first, 3).await, Ok(10));
    assert_eq!((store.generation(&first).await, store.generation(&second).await), (Ok(10), Ok(0)));
}

/// A restore raises the generation above that of every snapshot of the partition, whatever the store knows of it.
pub async fn a_generation_is_above_every_snapshot(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..3, 1).await;
    let label = Label { generation: Some(7), ..Label::default() };
    let taken = snapshots.create(&keys, label, &mut |_| ()).await.expect("a snapshot");
    assert_eq!(create(&snapshots, &keys, "").await.generation, 7);
    let report =
        snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert_eq!(report.generation, 8);
    let next = create(&snapshots, &keys, "").await;
    let listed = snapshots.list().await.expect("a list").snapshots;
    let newest = listed.iter().rfind(|info| info.partition == keys.label()).map(|info| &info.id);
    assert_eq!((next.generation, newest), (8, Some(&next.id)));
}

/// Keys larger than a reply and than a transaction come back whole.
pub async fn large_keys_come_back(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    let raw = bytes::Bytes::from(FLEET.key(1).to_text(hot.key_layout(), &ring));
    let members: Vec<bytes::Bytes> = (0..6_000).map(|n: u32| format!("{n:01000}").into()).collect();
    for piece in members.chunks(500) {
        let (raw, piece) = (raw.clone(), piece.to_vec());
        let add =
            move |tx: &mut emberkeep_hot::tx::RawTx<'_>| tx.write(raw.clone(), Write::SAdd(piece.clone()));
        hot.transact_raw(keys.partition(), add).await.expect("a transaction");
    }
    let taken = create(&snapshots, &keys, "").await;
    hot.scope(ring.clone()).del(&FLEET.key(1)).await.expect("a transaction");
    snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert_eq!(state(&hot, &keys).await[&raw].content, Content::Set(members));
}

/// A hash of few fields and many bytes comes back whole: one write of all of them would be more than a transaction takes.
pub async fn a_hash_of_long_values_comes_back(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    let raw = bytes::Bytes::from(SHIP.key(1).to_text(hot.key_layout(), &ring));
    let value = bytes::Bytes::from(vec![b'v'; 40 * 1024]);
    let fields: Vec<(bytes::Bytes, bytes::Bytes)> =
        (0..500).map(|n: u32| (format!("{n:04}").into(), value.clone())).collect();
    for piece in fields.chunks(100) {
        let (raw, piece) = (raw.clone(), piece.to_vec());
        let set =
            move |tx: &mut emberkeep_hot::tx::RawTx<'_>| tx.write(raw.clone(), Write::HSet(piece.clone()));
        hot.transact_raw(keys.partition(), set).await.expect("a transaction");
    }
    let taken = create(&snapshots, &keys, "").await;
    hot.scope(ring.clone()).del(&SHIP.key(1)).await.expect("a transaction");
    snapshots.restore(&taken.id, &keys, &KeyChoice::all(), &mut |_| ()).await.expect("a restore");
    assert_eq!(state(&hot, &keys).await[&raw].content, Content::Hash(fields));
}

/// A schedule makes a snapshot when one is due, and keeps so many of its own.
pub async fn a_schedule_keeps_its_own(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store));
    let keys = keys_of(&ring);
    put_ships(&hot, &ring, 0..3, 1).await;
    let by_hand = create(&snapshots, &keys, "by hand").await;
    let keep = Retention { last: 2, ..Retention::default() };
    let mut schedule = crate::Schedule { every: Duration::from_secs(3600), keep, name: "auto".into() };
    assert!(schedule.run_due(&snapshots, &keys).await.expect("a look").is_some());
    assert_eq!(schedule.run_due(&snapshots, &keys).await, Ok(None), "an hour has not passed");
    schedule.every = Duration::ZERO;
    for _ in 0..3 {
        assert!(schedule.run_due(&snapshots, &keys).await.expect("a look").is_some());
    }
    let listed = snapshots.list().await.expect("a list").snapshots;
    let own: Vec<&SnapshotInfo> = listed.iter().filter(|info| info.partition == keys.label()).collect();
    assert_eq!(own.iter().filter(|info| info.name == "auto").count(), 2);
    assert!(own.iter().any(|info| info.id == by_hand.id));
}

/// After the clock went back snapshots of the future neither make every look due nor displace the new one.
pub async fn a_schedule_outlives_a_clock_that_went_back(hot: Store, store: Arc<dyn SnapshotStore>) {
    let (ring, snapshots) = (fresh_ring(&hot), Snapshots::new(hot.clone(), store.clone()));
    let keys = keys_of(&ring);
    let keep = Retention { last: 2, ..Retention::default() };
    let mut schedule = crate::Schedule { every: Duration::from_secs(3600), keep, name: "auto".into() };
    let taken = create(&snapshots, &keys, "auto").await;
    for later in [86_400_000, 86_400_001] {
        let created_at = taken.created_at + later;
        let future = SnapshotInfo { id: SnapshotId::new(created_at, 1), created_at, ..taken.clone() };
        let writer = store.begin(&future).await.expect("a writer");
        writer.finish(future.clone()).await.expect("it ends");
    }
    store.remove(&taken.id).await.expect("it is there");
    let first = schedule.run_due(&snapshots, &keys).await.expect("a look");
    let first = first.expect("those of the future do not count");
    assert_eq!(schedule.run_due(&snapshots, &keys).await, Ok(None), "an hour has not passed");
    schedule.every = Duration::ZERO;
    let second = schedule.run_due(&snapshots, &keys).await.expect("a look").expect("it is due");
    for id in [first.id, second.id] {
        assert!(snapshots.verify(&id).await.is_ok(), "two are kept beside those of the future");
    }
}

/// Runs every case on one store of snapshots; each line names a case that failed.
pub async fn run_all(hot: Store, store: Arc<dyn SnapshotStore>) {
    macro_rules! cases {
        ($($case:ident),* $(,)?) => { [$(
            (stringify!($case), tokio::spawn($case(hot.clone(), store.clone())).await.is_err()),
        )*] };
    }
    let cases = cases![
        a_restore_brings_back_what_was,
        a_restore_of_some_keys,
        what_belongs_to_processes_stays,
        shared_keys_are_asked_for,
        an_interrupted_restore_goes_on,
        deadlines_are_absolute,
        an_unfinished_snapshot_is_not_listed,
        a_name_of_two_partitions_is_refused,
        old_snapshots_are_pruned,
        generations_rise,
        a_generation_is_above_every_snapshot,
        large_keys_come_back,
        a_hash_of_long_values_comes_back,
        a_schedule_keeps_its_own,
        a_schedule_outlives_a_clock_that_went_back,
    ];
    let failed: Vec<&str> = cases.iter().filter(|(_, failed)| *failed).map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), cases.len());
}
