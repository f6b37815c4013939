//! `emberkeep snapshot` as its users run it: on a folder of the embedded engine, on Redis, with snapshots in a folder
//! and on PostgreSQL.

use emberkeep::games::monsters;
use emberkeep::hot::store::PartitionKeys;
use emberkeep::prelude::*;
use emberkeep::snapshot::{FileStore, KeyChoice, Label, Progress, SnapshotStore, Snapshots};
use emberkeep_testkit::{block_on, scratch, shared_redis};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_emberkeep"));
    command.args(arguments).stdin(Stdio::null());
    for variable in ["EMBERKEEP_HOT", "EMBERKEEP_DATA", "EMBERKEEP_HISTORY", "EMBERKEEP_SNAPSHOTS"] {
        command.env_remove(variable);
    }
    command
}

fn emberkeep(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a command that must succeed prints.
fn run(arguments: &[&str]) -> String {
    let output = emberkeep(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

const TENANT: &str = "00000000-0000-4000-8000-00000000000a";

/// A monster's key of the tenant, as a string of the store.
fn key(id: u32) -> String {
    format!("atlas:monster:{TENANT}:{id}")
}

/// Opens the store, sets these monsters to a text, and closes it.
fn put(url: &str, ids: std::ops::Range<u32>, text: &str) {
    block_on(async {
        let store = Store::open(url).await.expect("the store opens");
        let text = bytes_of(text);
        for ids in ids.collect::<Vec<_>>().chunks(500) {
            let (ids, text) = (ids.to_vec(), text.clone());
            let partition = bytes_of(TENANT);
            let body = move |tx: &mut emberkeep::hot::tx::RawTx<'_>| {
                ids.iter().try_for_each(|id| {
                    let set = emberkeep::hot::command::Write::Set(
                        text.clone(),
                        emberkeep::hot::command::Expiry::Never,
                    );
                    tx.write(bytes_of(&key(*id)), set)
                })
            };
            store.transact_raw(&partition, body).await.expect("a transaction");
        }
        store.close().await.expect("it closes");
    });
}

fn bytes_of(text: &str) -> emberkeep::hot::command::RawKey {
    text.as_bytes().to_vec().into()
}

fn partition() -> String {
    format!("tenantId={TENANT}")
}

/// Create, list, show, diff, restore and prune on one store of hot state and one of snapshots.
fn a_life_of_snapshots(hot: &str, snapshots: &str) {
    put(hot, 1..40, "before");
    let (partition, place) = (partition(), ["--snapshots", snapshots]);
    let hot_flags = ["--hot", hot];
    let at = |words: &[&str], with_hot: bool| -> Vec<String> {
        let hot = if with_hot { &hot_flags[..] } else { &[] };
        let all = ["snapshot"].iter().chain(words).chain(&place).chain(hot);
        all.map(|word| (*word).to_owned()).collect()
    };
    let run_at = |words: &[&str], with_hot: bool| {
        run(&at(words, with_hot).iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(run_at(&["list"], false), "there are no snapshots\n");
    let created = run_at(&["create", "--partition", &partition, "--name", "first"], true);
    assert!(created.contains("keys        39\n") && created.contains("MONSTER: 39"), "{created}");
    let shown = run_at(&["show", "first", "--json"], false);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!((&shown["keys"], &shown["generation"]), (&39.into(), &0.into()));
    assert!(run_at(&["diff", "first"], true).starts_with("0 added, 0 changed, 0 removed, 39 unchanged"));

    put(hot, 30..50, "after");
    let differs = at(&["diff", "first"], true);
    let differs = emberkeep(&differs.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(differs.status.code(), Some(1), "{}", said(&differs));
    assert!(
        said(&differs).starts_with("10 added, 10 changed, 0 removed, 29 unchanged"),
        "{}",
        said(&differs)
    );
    let asked = at(&["restore", "first"], true);
    let asked = emberkeep(&asked.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!asked.status.success() && said(&asked).contains("nothing was changed"), "{}", said(&asked));
    assert!(said(&asked).contains(&format!("would change Tenant:{TENANT} in hot state")), "{}", said(&asked));
    let one = key(30).to_string();
    let part = run_at(&["restore", "first", "--yes", "--prefix", &one], true);
    assert!(part.contains("0 added, 1 changed, 0 removed") && part.contains("in generation 1"), "{part}");
    let whole = run_at(&["restore", "first", "--yes", "--json"], true);
    // What is left out is said on standard error.
    let whole = whole.lines().next().expect("a line");
    let whole: serde_json::Value = serde_json::from_str(whole).expect("JSON");
    assert_eq!((&whole["generation"], &whole["changes"]["removed"]), (&2.into(), &10.into()));
    assert!(run_at(&["diff", "first"], true).starts_with("0 added, 0 changed, 0 removed, 39 unchanged"));

    run_at(&["create", "--partition", &partition], true);
    let listed = run_at(&["list", "--json", "--partition", &partition], false);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let pruned = run_at(&["prune", "--partition", &partition, "--keep-last", "1", "--yes"], false);
    assert!(pruned.contains("first") && pruned.contains("removed: 1"), "{pruned}");
}

#[test]
fn snapshots_of_a_data_folder_in_a_folder() {
    let scratch = scratch();
    let hot = format!("file:{}", scratch.join("data").display());
    a_life_of_snapshots(&hot, scratch.join("snapshots").to_str().expect("plain"));
}

#[test]
fn snapshots_of_redis_in_a_folder() {
    let Some(redis) = shared_redis() else { return };
    let scratch = scratch();
    a_life_of_snapshots(&redis.fresh_db(), scratch.join("snapshots").to_str().expect("plain"));
}

#[cfg(feature = "postgres")]
#[test]
fn snapshots_of_a_data_folder_on_postgresql() {
    let Some(server) = emberkeep_testkit::shared_postgres() else { return };
    let scratch = scratch();
    let hot = format!("file:{}", scratch.join("data").display());
    a_life_of_snapshots(&hot, &server.fresh_database());
}

/// The record of a reactor: on one server all tenants share the keys of reactors.
const REACTOR: &str = "reactor:1000000001";

/// Sets the reactor to a text.
fn put_reactor(url: &str, text: &str) {
    block_on(async {
        let store = Store::open(url).await.expect("the store opens");
        let (text, partition) = (bytes_of(text), bytes_of(TENANT));
        let body = move |tx: &mut emberkeep::hot::tx::RawTx<'_>| {
            let never = emberkeep::hot::command::Expiry::Never;
            tx.write(bytes_of(REACTOR), emberkeep::hot::command::Write::Set(text.clone(), never))
        };
        store.transact_raw(&partition, body).await.expect("a transaction");
        store.close().await.expect("it closes");
    });
}

#[test]
fn keys_of_all_tenants_are_restored_only_if_they_are_asked_for() {
    let scratch = scratch();
    let hot = format!("file:{}", scratch.join("data").display());
    let place = scratch.join("snapshots");
    let (place, partition) = (place.to_str().expect("plain"), partition());
    let run_at = |words: &[&str]| {
        let ends = ["--hot", &hot, "--snapshots", place];
        run(&[&["snapshot"], words, &ends[..]].concat())
    };
    put(&hot, 1..4, "before");
    put_reactor(&hot, "before");
    let created = run_at(&["create", "--partition", &partition, "--name", "own"]);
    assert!(created.contains("left out") && created.contains("REACTOR"), "{created}");
    assert!(created.contains("keys        3\n"), "{created}");
    let created = run_at(&["create", "--partition", &partition, "--name", "all", "--shared"]);
    assert!(!created.contains("left out") && created.contains("keys        4\n"), "{created}");
    put_reactor(&hot, "after");
    for (words, changed) in [
        (&["restore", "all", "--yes"][..], 0),
        (&["restore", "own", "--yes", "--shared"], 0),
        (&["restore", "all", "--yes", "--shared"], 1),
    ] {
        let restored = run_at(words);
        assert!(restored.contains(&format!("0 added, {changed} changed, 0 removed")), "{restored}");
    }
}

#[test]
fn wrong_places_and_partitions_are_refused_with_what_was_expected() {
    let scratch = scratch();
    let place = scratch.join("snapshots");
    let (place, partition) = (place.to_str().expect("plain"), partition());
    let create = |partition: &str, hot: &str, place: &str| {
        said(&emberkeep(&[
            "snapshot",
            "create",
            "--hot",
            hot,
            "--snapshots",
            place,
            "--partition",
            partition,
        ]))
    };
    let memory = create(&partition, "memory:", place);
    assert!(memory.contains("hot state in memory ends with its process"), "{memory}");
    let hot = format!("file:{}", scratch.join("data").display());
    let unknown = create("continent=1", &hot, place);
    assert!(unknown.contains("expected one of") && unknown.contains("Tenant"), "{unknown}");
    let wrong = create("tenantId=1", &hot, place);
    assert!(wrong.contains("\"1\" is not a Tenant"), "{wrong}");
    let scheme = create(&partition, &hot, "mysql://ann:secret@db");
    assert!(scheme.contains("expected a folder") && !scheme.contains("secret"), "{scheme}");
    let missing = emberkeep(&["snapshot", "show", "--snapshots", place, "nothing"]);
    assert!(
        !missing.status.success() && said(&missing).contains("there is no snapshot nothing"),
        "{}",
        said(&missing)
    );
}

#[test]
fn a_data_folder_that_a_process_has_open_is_refused() {
    let scratch = scratch();
    let hot = format!("file:{}", scratch.join("data").display());
    let place = scratch.join("snapshots");
    block_on(async {
        let open = Store::open(&hot).await.expect("the store opens");
        let refused = emberkeep(&[
            "snapshot",
            "create",
            "--hot",
            &hot,
            "--partition",
            &partition(),
            "--snapshots",
            place.to_str().expect("plain"),
        ]);
        assert!(!refused.status.success(), "{}", said(&refused));
        assert!(said(&refused).contains("a folder belongs to one process"), "{}", said(&refused));
        open.close().await.expect("it closes");
    });
}

#[test]
fn a_damaged_snapshot_is_named_by_every_command() {
    let scratch = scratch();
    let (data, place) = (format!("file:{}", scratch.join("data").display()), scratch.join("snapshots"));
    let place_text = place.to_str().expect("plain");
    put(&data, 1..40, "before");
    run(&[
        "snapshot",
        "create",
        "--hot",
        &data,
        "--snapshots",
        place_text,
        "--partition",
        &partition(),
        "--name",
        "x",
    ]);
    let file = fs::read_dir(&place).expect("a folder").map(|entry| entry.expect("an entry").path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "snapshot"));
    let file = file.expect("a snapshot");
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let mut bytes = fs::read(&file).expect("the file");
    bytes[40] ^= 1;
    fs::write(&file, bytes).expect("the file");
    for words in
        [&["show", "x"][..], &["diff", "x", "--hot", &data], &["restore", "x", "--yes", "--hot", &data]]
    {
        let mut all = vec!["snapshot"];
        all.extend(words);
        all.extend(["--snapshots", place_text]);
        let refused = emberkeep(&all);
        let text = said(&refused);
        assert!(
            !refused.status.success() && text.contains("damaged snapshot") && text.contains(&name),
            "{text}"
        );
    }
}

/// Role of this test binary when it runs itself: it is killed in the middle of its work.
const ROLE: &str = "EMBERKEEP_TEST_SNAPSHOT_ROLE";

/// Not a test of its own: what the process does that [`a_process_that_is_killed_leaves_nothing_half_done`] kills.
#[test]
fn work_until_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, folder) = role.split_once('=').expect("a role and a folder");
    block_on(async {
        let hot = Store::open(&format!("file:{folder}/data")).await.expect("the store opens");
        let store = FileStore::open(format!("{folder}/snapshots")).expect("a folder").shared();
        let snapshots = Snapshots::new(hot, store);
        let keys = PartitionKeys::named(&monsters::schema(), "tenantId", TENANT).expect("a tenant");
        let mut progress = |_: Progress| {
            println!("under way");
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        match role {
            "create" => drop(snapshots.create(&keys, Label::named("killed"), &mut progress).await),
            _ => {
                let info = snapshots.find("sound").await.expect("a snapshot");
                drop(snapshots.restore(&info.id, &keys, &KeyChoice::all(), &mut progress).await);
            }
        }
    });
}

/// Runs this binary in a role, and kills it after it has said so often that it is under way.
fn killed(role: &str, folder: &str, after: usize) {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "work_until_killed", "--nocapture"])
        .env(ROLE, format!("{role}={folder}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let said = lines.map_while(Result::ok).filter(|line| line.contains("under way")).take(after).count();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(said, after, "it was killed in the middle of its work");
}

#[test]
fn a_process_that_is_killed_leaves_nothing_half_done() {
    let scratch = scratch();
    let folder = scratch.path().to_str().expect("plain");
    let (data, place) = (format!("file:{folder}/data"), format!("{folder}/snapshots"));
    put(&data, 0..5_000, "before");
    killed("create", folder, 2);
    let listed = run(&["snapshot", "list", "--snapshots", &place]);
    assert_eq!(listed, "there are no snapshots\n");
    let left = fs::read_dir(&place).expect("a folder").count();
    assert_eq!(left, 0, "what the killed process left was removed");
    run(&[
        "snapshot",
        "create",
        "--hot",
        &data,
        "--snapshots",
        &place,
        "--partition",
        &partition(),
        "--name",
        "sound",
    ]);
    put(&data, 0..5_000, "after");
    for after in [1, 4] {
        killed("restore", folder, after);
    }
    let restored = run(&["snapshot", "restore", "sound", "--yes", "--hot", &data, "--snapshots", &place]);
    assert!(restored.contains("has not ended") && restored.contains("in generation 1"), "{restored}");
    let same = run(&["snapshot", "diff", "sound", "--hot", &data, "--snapshots", &place]);
    assert!(same.starts_with("0 added, 0 changed, 0 removed, 5000 unchanged"), "{same}");
}
