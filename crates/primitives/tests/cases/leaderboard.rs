//! Leaderboards.

use super::Realm;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, Score, Write};
use emberkeep_hot::embedded::{Clock, Embedded, ManualClock};
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::leaderboard::{Change, Entry, Leaderboard, LeaderboardError, Ranked, Standing};
use emberkeep_primitives::limits::BOARD_CHANGES_MAX;
use emberkeep_schema::{Codec, Hash, Id, Name, Number, SortedSet, Utf8, family};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

macro_rules! board {
    ($order:ident = $a:literal, $players:ident = $b:literal, $sources:ident = $c:literal, $id:ty, $board:ident) => {
        family! {
            /// The order.
            pub $order = $a {
                kind: SortedSet<Ranked<$id>>, partition: Realm, parts: (), ttl: fixed(3_600_000), owner: "test"
            }
        }
        family! {
            /// The players.
            pub $players = $b {
                kind: Hash<Id<$id>, Ranked<$id>>, partition: Realm, parts: (), ttl: fixed(3_600_000), owner: "test"
            }
        }
        family! {
            /// The sources.
            pub $sources = $c {
                kind: Hash<Utf8, Number<u64>>, partition: Realm, parts: (), ttl: fixed(3_600_000), owner: "test"
            }
        }
        type $board = Leaderboard<$order, $players, $sources>;
    };
}

board!(
    ORDER = "board-test:{realm}:number",
    PLAYERS = "board-test:{realm}:number:players",
    SOURCES = "board-test:{realm}:number:sources",
    i64,
    Board
);
board!(
    NAME_ORDER = "board-test:{realm}:name",
    NAMES = "board-test:{realm}:name:players",
    NAME_SOURCES = "board-test:{realm}:name:sources",
    Name,
    NameBoard
);
board!(
    UUID_ORDER = "board-test:{realm}:uuid",
    UUIDS = "board-test:{realm}:uuid:players",
    UUID_SOURCES = "board-test:{realm}:uuid:sources",
    Uuid,
    UuidBoard
);

fn board() -> Board {
    Leaderboard::new(ORDER.key(), PLAYERS.key(), SOURCES.key())
}

fn entry(player: i64, score: i64, reached_at: i64) -> Entry<i64> {
    Entry { player, score, reached_at }
}

async fn set(scope: &Scope<Realm>, player: i64, score: i64, at: i64) {
    scope.transact(move |tx| board().set(tx, &player, score, at)).await.unwrap();
}

async fn add(scope: &Scope<Realm>, player: i64, delta: i64, at: i64) -> Result<i64, LeaderboardError> {
    scope.transact(move |tx| board().add(tx, &player, delta, at)).await
}

async fn top(scope: &Scope<Realm>, n: usize) -> Result<Vec<Standing<i64>>, Error> {
    scope.read(move |tx| board().top(tx, n)).await
}

async fn rank(scope: &Scope<Realm>, player: i64) -> Result<Option<u64>, Error> {
    scope.read(move |tx| board().rank(tx, &player)).await
}

async fn around(scope: &Scope<Realm>, player: i64, n: usize) -> Result<Vec<Standing<i64>>, Error> {
    scope.read(move |tx| board().around(tx, &player, n)).await
}

async fn count(scope: &Scope<Realm>) -> Result<u64, Error> {
    scope.read(|tx| board().count(tx)).await
}

fn players(standings: &[Standing<i64>]) -> Vec<i64> {
    standings.iter().map(|standing| standing.player).collect()
}

/// The board of these entries, by the rule.
fn ordered(mut entries: Vec<Entry<i64>>) -> Vec<Standing<i64>> {
    entries.sort_by_key(|entry| (Reverse(entry.score), entry.reached_at, entry.player));
    let standing = |(rank, Entry { player, score, reached_at })| Standing { rank, player, score, reached_at };
    (1..).zip(entries).map(standing).collect()
}

fn bytes<C: Codec>(value: &C::Value) -> Bytes {
    let mut out = Vec::new();
    C::encode(value, &mut out).unwrap();
    out.into()
}

/// What an external client does to a key of the board.
async fn external(scope: &Scope<Realm>, key: &'static str, write: Write) {
    let write = move |tx: &mut Tx<'_, Realm>| {
        let name = match key {
            "order" => tx.raw_name(&ORDER.key()),
            "players" => tx.raw_name(&PLAYERS.key()),
            other => panic!("{other} is not a key of the board"),
        };
        tx.raw_write(name, write.clone())
    };
    scope.transact(write).await.unwrap();
}

pub async fn players_stand_by_score_then_time_then_id(store: Store) {
    let scope = store.scope(Realm::new());
    assert_eq!((top(&scope, 5).await, count(&scope).await), (Ok(vec![]), Ok(0)));
    assert_eq!((rank(&scope, 1).await, around(&scope, 1, 3).await), (Ok(None), Ok(vec![])));
    let entries =
        [entry(1, 10, 500), entry(10, 20, 700), entry(9, 20, 700), entry(4, 20, 600), entry(5, -3, 1)];
    for one in entries {
        set(&scope, one.player, one.score, one.reached_at).await;
    }
    let expected = ordered(entries.to_vec());
    assert_eq!(players(&expected), [4, 9, 10, 1, 5]);
    assert_eq!((top(&scope, 100).await, count(&scope).await), (Ok(expected.clone()), Ok(5)));
    assert_eq!(top(&scope, 2).await, Ok(expected[..2].to_vec()));
    assert_eq!(top(&scope, 0).await, Ok(vec![]));
    for standing in &expected {
        assert_eq!(rank(&scope, standing.player).await, Ok(Some(standing.rank)));
    }
    let found = scope.read(|tx| Ok::<_, Error>((board().score(tx, &9)?, board().standing(tx, &9)?))).await;
    assert_eq!(found, Ok((Some(20), Some(expected[1]))));
}

pub async fn scores_and_ids_are_exact_at_their_limits(store: Store) {
    let scope = store.scope(Realm::new());
    let exact = 1i64 << 53;
    let numbers =
        [i64::MIN, i64::MIN + 1, -exact - 1, -exact, -1, 0, 1, exact, exact + 1, i64::MAX - 1, i64::MAX];
    let by_score = numbers.map(|number| entry(number, number, number));
    let by_time = numbers.map(|number| entry(number, 7, number));
    let by_id = numbers.map(|number| entry(number, i64::MAX, i64::MIN));
    for entries in [by_score, by_time, by_id] {
        let moves = move |tx: &mut Tx<'_, Realm>| {
            entries.iter().try_for_each(|one| board().remove(tx, &one.player).map(drop))?;
            entries.iter().try_for_each(|one| board().set(tx, &one.player, one.score, one.reached_at))
        };
        scope.transact(moves).await.unwrap();
        let expected = ordered(entries.to_vec());
        assert_eq!(top(&scope, 100).await, Ok(expected.clone()));
        for standing in &expected {
            assert_eq!(rank(&scope, standing.player).await, Ok(Some(standing.rank)), "{standing:?}");
        }
    }
}

pub async fn ids_are_texts_and_uuids_too(store: Store) {
    let scope = store.scope(Realm::new());
    let texts = ["Zoe", "a", "a b", "aa", "é", &"x".repeat(256)].map(|text| Name::new(text).unwrap());
    let uuids = [0, 1, 1 << 120, u128::MAX].map(Uuid::from_u128);
    let found = scope.transact(move |tx| {
        let names: NameBoard = Leaderboard::new(NAME_ORDER.key(), NAMES.key(), NAME_SOURCES.key());
        let ids: UuidBoard = Leaderboard::new(UUID_ORDER.key(), UUIDS.key(), UUID_SOURCES.key());
        texts.iter().rev().try_for_each(|name| names.set(tx, name, 3, 9))?;
        uuids.iter().rev().try_for_each(|id| ids.set(tx, id, 3, 9))?;
        Ok::<_, LeaderboardError>((names.top(tx, 10)?, ids.top(tx, 10)?, names.rank(tx, &texts[5])?))
    });
    let (names, ids, last) = found.await.unwrap();
    let expected = ["Zoe", "a", "a b", "aa", &"x".repeat(256), "é"];
    assert_eq!(names.iter().map(|one| one.player.as_str()).collect::<Vec<_>>(), expected);
    assert_eq!((ids.iter().map(|one| one.player).collect::<Vec<_>>(), last), (uuids.to_vec(), Some(5)));
}

pub async fn a_score_that_is_set_again_keeps_its_time(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, 10, 100).await;
    set(&scope, 2, 10, 200).await;
    set(&scope, 1, 10, 900).await;
    assert_eq!(add(&scope, 1, 0, 950).await, Ok(10));
    assert_eq!(top(&scope, 9).await, Ok(ordered(vec![entry(1, 10, 100), entry(2, 10, 200)])));
    set(&scope, 1, 4, 1_000).await;
    assert_eq!(players(&top(&scope, 9).await.unwrap()), [2, 1], "a lower score is a set like any other");
    set(&scope, 1, 10, 1_100).await;
    assert_eq!(top(&scope, 9).await, Ok(ordered(vec![entry(2, 10, 200), entry(1, 10, 1_100)])));
    assert_eq!((add(&scope, 3, 0, 5).await, rank(&scope, 3).await), (Ok(0), Ok(Some(3))));
}

pub async fn an_overflow_is_refused_and_writes_nothing(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, i64::MAX, 1).await;
    set(&scope, 2, i64::MIN, 1).await;
    for (player, value, by) in [(1, i64::MAX, 1), (2, i64::MIN, -1), (1, i64::MAX, i64::MAX)] {
        match add(&scope, player, by, 2).await {
            Err(LeaderboardError::Store(Error::Overflow { key, value: found, by: named })) => {
                assert!(key.contains("board-test") && key.contains(&format!("player {player}")), "{key}");
                assert_eq!((found, named), (value, by));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(add(&scope, 1, i64::MIN, 2).await, Ok(-1));
    assert_eq!(top(&scope, 9).await, Ok(ordered(vec![entry(1, -1, 2), entry(2, i64::MIN, 1)])));
}

pub async fn a_transaction_reads_its_own_changes(store: Store) {
    let scope = store.scope(Realm::new());
    for player in 1..=5 {
        set(&scope, player, 10 * player, 0).await;
    }
    let found = scope.transact(|tx| {
        let ranks = (board().rank(tx, &1)?, board().add(tx, &1, 25, 7)?, board().rank(tx, &1)?);
        let removed = (board().remove(tx, &5)?, board().remove(tx, &5)?, board().rank(tx, &5)?);
        board().set(tx, &6, 21, 1)?;
        let window = players(&board().around(tx, &1, 1)?);
        Ok::<_, LeaderboardError>((ranks, removed, window, players(&board().top(tx, 9)?), board().count(tx)?))
    });
    let expected = ((Some(5), 35, Some(3)), (true, false, None), vec![4, 1, 3], vec![4, 1, 3, 6, 2], 5);
    assert_eq!(found.await, Ok(expected));
    let undone = scope.transact(|tx| {
        board().add(tx, &1, 100, 8)?;
        Err::<(), _>(LeaderboardError::Store(Error::Closed))
    });
    assert_eq!(undone.await, Err(LeaderboardError::Store(Error::Closed)));
    assert_eq!(rank(&scope, 1).await, Ok(Some(2)));
}

pub async fn windows_end_at_the_board(store: Store) {
    let scope = store.scope(Realm::new());
    let entries: Vec<_> = (1..=9).map(|n| entry(n, 100 - n, 0)).collect();
    board().rebuild(&scope, entries.clone(), &[]).await.unwrap();
    let all = ordered(entries);
    for (player, n, range) in
        [(1, 3, 0..4), (2, 3, 0..5), (5, 2, 2..7), (5, 0, 4..5), (9, 3, 5..9), (5, 1_000, 0..9)]
    {
        assert_eq!(around(&scope, player, n).await, Ok(all[range].to_vec()), "{n} around {player}");
    }
    for error in [around(&scope, 5, 1_001).await.unwrap_err(), top(&scope, 1_001).await.unwrap_err()] {
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    assert!(top(&scope, usize::MAX).await.is_err());
}

pub async fn a_board_is_reset_and_its_positions_stay(store: Store) {
    let scope = store.scope(Realm::new());
    let kill = [Change::Add { player: 1, delta: 1, at: 5 }];
    let apply = |position| {
        scope.transact_with(kill.clone(), move |tx, kill| board().apply(tx, "log", position, kill))
    };
    assert_eq!(apply(3).await, Ok(true));
    scope.transact(|tx| board().reset(tx)).await.unwrap();
    assert_eq!((count(&scope).await, rank(&scope, 1).await), (Ok(0), Ok(None)));
    assert_eq!((apply(3).await, apply(4).await), (Ok(false), Ok(true)));
    assert_eq!(top(&scope, 9).await, Ok(ordered(vec![entry(1, 1, 5)])));
    // A board without players is gone with its keys, and the next player begins another one.
    assert_eq!(scope.transact(|tx| board().remove(tx, &1)).await, Ok(true));
    assert_eq!(count(&scope).await, Ok(0));
    let deadlines =
        || async { (scope.deadline_of(&ORDER.key()).await, scope.deadline_of(&PLAYERS.key()).await) };
    assert_eq!(deadlines().await, (Ok(None), Ok(None)));
    set(&scope, 2, 2, 2).await;
    let (order, players) = deadlines().await;
    assert!(order == players && order.as_ref().is_ok_and(Option::is_some), "{order:?} {players:?}");
}

pub async fn an_entry_of_a_log_counts_once(store: Store) {
    let scope = store.scope(Realm::new());
    let apply = |source: &'static str, position, changes: Vec<Change<i64>>| {
        scope.transact_with(changes, move |tx, changes| board().apply(tx, source, position, changes))
    };
    let kill = |player, at| Change::Add { player, delta: 1, at };
    assert_eq!(apply("a", 7, vec![kill(1, 10), kill(2, 10), kill(1, 11)]).await, Ok(true));
    assert_eq!(apply("a", 7, vec![kill(1, 10)]).await, Ok(false), "delivered twice");
    assert_eq!(apply("a", 6, vec![kill(1, 10)]).await, Ok(false), "delivered late");
    assert_eq!(apply("b", 6, vec![kill(1, 12)]).await, Ok(true), "another source has its own position");
    assert_eq!(apply("a", 9, vec![]).await, Ok(true), "an entry without changes advances the position");
    let mixed = vec![Change::Set { player: 3, score: 9, at: 1 }, kill(3, 2), Change::Remove { player: 2 }];
    assert_eq!(apply("a", u64::MAX, mixed).await, Ok(true));
    let expected = ordered(vec![entry(3, 10, 2), entry(1, 3, 12)]);
    assert_eq!(top(&scope, 9).await, Ok(expected.clone()));
    let positions =
        scope.read(|tx| Ok::<_, Error>(["a", "b", "c"].map(|source| board().position(tx, source))));
    assert_eq!(positions.await.unwrap(), [Ok(Some(u64::MAX)), Ok(Some(6)), Ok(None)]);
    // A refused entry advances nothing.
    let over = Change::Add { player: 3, delta: i64::MAX, at: 3 };
    assert!(matches!(
        apply("b", 8, vec![kill(1, 20), over]).await,
        Err(LeaderboardError::Store(Error::Overflow { .. }))
    ));
    let many = vec![kill(1, 20); BOARD_CHANGES_MAX + 1];
    for (source, changes) in [("", vec![kill(1, 20)]), ("b", many)] {
        let refused = apply(source, 8, changes).await;
        assert!(matches!(refused, Err(LeaderboardError::Store(Error::Invalid { .. }))), "{refused:?}");
    }
    assert_eq!(top(&scope, 9).await, Ok(expected));
    assert_eq!(apply("b", 8, vec![kill(1, 20); BOARD_CHANGES_MAX]).await, Ok(true));
    assert_eq!(scope.read(|tx| board().score(tx, &1)).await, Ok(Some(3 + BOARD_CHANGES_MAX as i64)));
}

pub async fn adds_at_the_same_time_are_all_counted(store: Store) {
    add_at_once(vec![store.scope(Realm::new()); 64]).await;
}

pub async fn two_processes_add_and_apply_exactly(one: Store, other: Store) {
    let realm = Realm::new();
    let scopes = [one.scope(realm), other.scope(realm)];
    add_at_once(scopes.iter().cycle().take(64).cloned().collect()).await;
    // Both drain the same log, each from its beginning.
    let drain = |scope: Scope<Realm>| async move {
        let mut applied = 0;
        for position in 1..=40 {
            let apply = move |tx: &mut Tx<'_, Realm>| {
                board().apply(
                    tx,
                    "log",
                    position,
                    &[Change::Add { player: 99, delta: 1, at: position as i64 }],
                )
            };
            applied += u64::from(scope.transact(apply).await.unwrap());
        }
        applied
    };
    let drains = scopes.clone().map(|scope| tokio::spawn(drain(scope)));
    let mut applied = 0;
    for drain in drains {
        applied += drain.await.unwrap();
    }
    let score = scopes[0].read(|tx| board().score(tx, &99)).await;
    assert_eq!((applied, score), (40, Ok(Some(40))));
}

/// Lets each caller add to eight players in turn.
async fn add_at_once(callers: Vec<Scope<Realm>>) {
    let scope = callers[0].clone();
    let callers: Vec<_> = (0i64..)
        .zip(callers)
        .map(|(number, scope)| {
            tokio::spawn(async move {
                for turn in 0..8 {
                    let player = (number + turn) % 8;
                    add(&scope, player, number * 1_000 + turn, turn).await.unwrap();
                }
            })
        })
        .collect();
    let number = callers.len() as i64;
    for caller in callers {
        caller.await.unwrap();
    }
    let all = top(&scope, 100).await.unwrap();
    let sum: i64 = all.iter().map(|standing| standing.score).sum();
    assert_eq!((all.len(), sum), (8, (0..number).map(|n| 8 * n * 1_000 + 28).sum()));
    assert!(all.windows(2).all(|pair| pair[0].score >= pair[1].score));
}

pub async fn a_rebuild_replaces_the_board_and_refuses_changes(store: Store) {
    let scope = store.scope(Realm::new());
    for player in 1..=300 {
        set(&scope, player, player, 1).await;
    }
    let apply = |position| {
        scope.transact(move |tx| {
            board().apply(tx, "log", position, &[Change::Add { player: 1, delta: 1, at: 9 }])
        })
    };
    assert_eq!(apply(50).await, Ok(true));
    let first = board().begin_rebuild(&scope).await.unwrap();
    let mut rebuild = board().begin_rebuild(&scope).await.unwrap();
    let rebuilding = |result: Result<(), LeaderboardError>| {
        assert!(matches!(result, Err(LeaderboardError::Rebuilding { .. })), "{result:?}");
    };
    rebuilding(apply(51).await.map(drop));
    rebuilding(apply(50).await.map(drop));
    rebuilding(add(&scope, 1, 1, 1).await.map(drop));
    rebuilding(scope.transact(|tx| board().set(tx, &1, 1, 1)).await);
    rebuilding(scope.transact(|tx| board().remove(tx, &1)).await.map(drop));
    rebuilding(scope.transact(|tx| board().reset(tx)).await);
    let superseded = first.finish(&[]).await;
    assert!(matches!(superseded, Err(LeaderboardError::Superseded { .. })), "{superseded:?}");

    // Half of the players stay, some change, some are new.
    let entries: Vec<_> = (151..=460).map(|n| entry(n, if n < 200 { n } else { -n }, 1)).collect();
    rebuild.put(entries[..10].iter().copied()).await.unwrap();
    let state = scope.read(|tx| Ok::<_, Error>((board().is_rebuilding(tx)?, board().count(tx)?))).await;
    assert_eq!(state, Ok((true, 300)), "reads go on");
    rebuild.put(entries.clone()).await.unwrap();
    let report = rebuild.finish(&[("log".to_owned(), 60), ("other".to_owned(), 2)]).await.unwrap();
    assert_eq!((report.players, report.changed, report.removed), (310, 261, 150));
    let expected = ordered(entries);
    assert_eq!(top(&scope, 1_000).await, Ok(expected));
    assert!(!scope.read(|tx| board().is_rebuilding(tx)).await.unwrap());
    assert_eq!((apply(60).await, apply(61).await), (Ok(false), Ok(true)));

    // From nothing: a board that is emptied in small transactions.
    let report = board().rebuild(&scope, [], &[]).await.unwrap();
    assert_eq!((report.removed, count(&scope).await), (311, Ok(0)));
    assert_eq!(apply(1).await, Ok(true), "the positions are those of the rebuild");
}

pub async fn a_rebuild_that_was_left_is_cancelled(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, 1, 1).await;
    drop(board().begin_rebuild(&scope).await.unwrap());
    assert!(add(&scope, 1, 1, 2).await.is_err());
    let cancel = || scope.transact(|tx| board().cancel_rebuild(tx));
    assert_eq!((cancel().await, cancel().await), (Ok(true), Ok(false)));
    assert_eq!(add(&scope, 1, 1, 2).await, Ok(2));
}

pub async fn a_rebuild_to_nothing_does_not_restore_lost_players(store: Store) {
    let scope = store.scope(Realm::new());
    set(&scope, 1, 10, 1).await;
    set(&scope, 2, 20, 1).await;
    external(&scope, "players", Write::Del).await;
    board().rebuild(&scope, [], &[]).await.unwrap();
    assert_eq!(count(&scope).await, Ok(0));
}

/// A player who is alone on the board moves in it: no key is empty in between, so none begins a new TTL.
pub async fn both_keys_expire_together() {
    let clock = ManualClock::at(1_700_000_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open().unwrap();
    let scope = Store::new(Arc::new(engine)).scope(Realm::new());
    for score in 1..=3 {
        set(&scope, 1, score, score).await;
        clock.advance(1_000);
    }
    let end = Ok(Some(1_700_000_000_000 + 3_600_000));
    assert_eq!(scope.deadline_of(&ORDER.key()).await, end);
    assert_eq!(scope.deadline_of(&PLAYERS.key()).await, end);
}

/// Refused reads name the key and what to do.
fn refused<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(Error::Corrupt { key, reason }) => {
            assert!(key.contains("board-test:"), "{key}");
            assert!(reason.contains("repair") || reason.contains("leaderboard entry"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

pub async fn a_board_that_disagrees_is_refused_and_repaired(store: Store) {
    let scope = store.scope(Realm::new());
    let entries: Vec<_> = (1..=20).map(|n| entry(n, n, 1)).collect();
    board().rebuild(&scope, entries.clone(), &[]).await.unwrap();
    let expected = ordered(entries);
    let sound = board().repair(&scope).await.unwrap();
    assert_eq!(sound, Default::default(), "nothing to do");
    let member = |one: Entry<i64>| bytes::<Ranked<i64>>(&one);
    let scored = |one, score| Write::ZAdd(vec![(member(one), Score::new(score).unwrap())]);
    let rubbish = Bytes::from_static(b"rubbish");
    let zero = Score::from_i64(0);

    // Each damage by itself, the read that must be refused, and what the repair did.
    let damages: Vec<(&str, Write, [usize; 3])> = vec![
        ("order", scored(entry(7, 99, 1), 0.0), [0, 1, 0]),
        ("order", scored(entry(70, 99, 1), 0.0), [0, 1, 0]),
        ("order", Write::ZRem(vec![member(entry(7, 7, 1))]), [1, 0, 0]),
        ("order", Write::ZAdd(vec![(rubbish.clone(), zero)]), [0, 1, 0]),
        ("order", Write::ZAdd(vec![(rubbish.clone(), Score::from_i64(-5))]), [0, 0, 1]),
        ("order", scored(entry(7, 7, 1), 3.0), [0, 0, 1]),
        ("order", scored(entry(7, 7, 1), -3.0), [0, 0, 1]),
        ("order", Write::Del, [20, 0, 0]),
        ("players", Write::HSet(vec![(Bytes::from_static(b"7"), rubbish.clone())]), [0, 0, 0]),
        ("players", Write::HSet(vec![(Bytes::from_static(b"7"), member(entry(8, 7, 1)))]), [0, 0, 0]),
        ("players", Write::Del, [0, 0, 0]),
    ];
    for (key, write, [added, removed, scores]) in damages {
        external(&scope, key, write.clone()).await;
        let seen = [top(&scope, 100).await.map(drop), rank(&scope, 7).await.map(drop)];
        let seen = seen.into_iter().chain([around(&scope, 7, 100).await.map(drop)]);
        assert!(seen.into_iter().any(|read| read.is_err()), "{write:?} was not seen");
        let report = board().repair(&scope).await.unwrap();
        assert_eq!(
            [report.added, report.removed, report.scores],
            [added, removed, scores],
            "{write:?}: {report:?}"
        );
        assert_eq!(report.lost, [], "{write:?}");
        assert_eq!(top(&scope, 100).await, Ok(expected.clone()), "{write:?}");
        assert_eq!(around(&scope, 7, 100).await, Ok(expected.clone()), "{write:?}");
    }

    // What no member restores is lost and reported.
    external(&scope, "players", Write::HSet(vec![(rubbish.clone(), rubbish.clone())])).await;
    external(&scope, "players", Write::HSet(vec![(Bytes::from_static(b"50"), rubbish)])).await;
    refused(count(&scope).await);
    refused(scope.read(|tx| board().score(tx, &50)).await);
    assert!(add(&scope, 50, 1, 1).await.is_err(), "what cannot be read is not overwritten");
    let lost = board().repair(&scope).await.unwrap().lost;
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|error| matches!(error, Error::Corrupt { key, .. } if key.contains("PLAYERS"))));
    assert_eq!(top(&scope, 100).await, Ok(expected));
}

pub async fn reads_of_a_damaged_board_name_its_key(store: Store) {
    let scope = store.scope(Realm::new());
    for player in 1..=3 {
        set(&scope, player, player, 1).await;
    }
    // One member more and one player less: the counts agree again.
    external(&scope, "order", Write::ZRem(vec![bytes::<Ranked<i64>>(&entry(2, 2, 1))])).await;
    refused(count(&scope).await);
    refused(rank(&scope, 1).await);
    refused(top(&scope, 1).await);
    refused(around(&scope, 1, 1).await);
    external(&scope, "order", Write::ZAdd(vec![(bytes::<Ranked<i64>>(&entry(3, 9, 1)), Score::from_i64(0))]))
        .await;
    refused(rank(&scope, 2).await);
    refused(top(&scope, 3).await);
    refused(around(&scope, 3, 5).await);
    assert_eq!(scope.read(|tx| board().score(tx, &2)).await, Ok(Some(2)), "the players are authoritative");
    external(&scope, "order", Write::Set(Bytes::from_static(b"text"), Expiry::Never)).await;
    for error in [rank(&scope, 1).await.unwrap_err(), board().repair(&scope).await.unwrap_err()] {
        assert!(matches!(error, Error::WrongType { .. }), "{error}");
    }
}

pub async fn ranks_among_ten_thousand(store: Store) {
    let scope = store.scope(Realm::new());
    // Few scores, so that most players are tied.
    let entries: Vec<_> = (0..10_000).map(|n| entry(n * 7_919 % 10_007, n % 40, n % 3)).collect();
    let report = board().rebuild(&scope, entries.clone(), &[]).await.unwrap();
    assert_eq!((report.players, count(&scope).await), (10_000, Ok(10_000)));
    let all = ordered(entries);
    assert_eq!(top(&scope, 1_000).await, Ok(all[..1_000].to_vec()));
    for place in [0, 1, 2, 499, 4_999, 5_000, 9_998, 9_999] {
        let player = all[place].player;
        assert_eq!(rank(&scope, player).await, Ok(Some(place as u64 + 1)));
        let window = all[place.saturating_sub(4)..(place + 5).min(10_000)].to_vec();
        assert_eq!(around(&scope, player, 4).await, Ok(window), "around {place}");
    }
    let player = all[9_000].player;
    let moved = scope.transact(move |tx| {
        board().add(tx, &player, 1_000, 5)?;
        let first = board().rank(tx, &player)?;
        board().set(tx, &player, -1, 5)?;
        Ok::<_, LeaderboardError>((first, board().rank(tx, &player)?))
    });
    assert_eq!(moved.await, Ok((Some(1), Some(10_000))));
}

/// Any calls, on embedded: the board is what the rule makes of them.
pub async fn a_board_agrees_with_a_model() {
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let runtime = tokio::runtime::Handle::current();
    let number = || {
        prop_oneof![
            Just(i64::MIN),
            Just(i64::MAX),
            -2..3i64,
            Just((1 << 53) + 1),
            Just(1 << 53),
            any::<i64>()
        ]
    };
    let change = prop_oneof![
        3 => (0..6i64, number(), 0..4i64).prop_map(|(player, score, at)| Change::Set { player, score, at }),
        3 => (0..6i64, number(), 0..4i64).prop_map(|(player, delta, at)| Change::Add { player, delta, at }),
        1 => (0..6i64).prop_map(|player| Change::Remove { player }),
    ];
    let calls = proptest::collection::vec((proptest::collection::vec(change, 1..4), 1..20u64), 1..24);
    tokio::task::spawn_blocking(move || {
        proptest!(ProptestConfig::with_cases(256), |(calls in calls, n in 0usize..8)| {
            let scope = store.scope(Realm::new());
            let (mut model, mut applied) = (BTreeMap::<i64, Entry<i64>>::new(), 0);
            for (changes, position) in calls {
                let after = changed(&model, &changes);
                let call = scope.transact_with(changes, move |tx, changes| board().apply(tx, "log", position, changes));
                match (runtime.block_on(call), after) {
                    (Ok(false), _) => prop_assert!(position <= applied),
                    (Ok(true), Some(after)) => {
                        prop_assert!(position > applied);
                        (model, applied) = (after, position);
                    }
                    (Err(LeaderboardError::Store(Error::Overflow { .. })), None) => prop_assert!(position > applied),
                    (other, after) => prop_assert!(false, "{other:?} {after:?}"),
                }
                let all = ordered(model.values().copied().collect());
                let best = all[..n.min(all.len())].to_vec();
                prop_assert_eq!(runtime.block_on(top(&scope, n)), Ok(best));
                for player in 0..6 {
                    let place = all.iter().position(|standing| standing.player == player);
                    prop_assert_eq!(runtime.block_on(rank(&scope, player)), Ok(place.map(|place| place as u64 + 1)));
                    let window = place.map_or(vec![], |place| {
                        all[place.saturating_sub(n)..(place + n + 1).min(all.len())].to_vec()
                    });
                    prop_assert_eq!(runtime.block_on(around(&scope, player, n)), Ok(window));
                }
            }
        });
    })
    .await
    .unwrap();
}

/// The model after changes; `None` if a sum overflows.
fn changed(model: &BTreeMap<i64, Entry<i64>>, changes: &[Change<i64>]) -> Option<BTreeMap<i64, Entry<i64>>> {
    let mut model = model.clone();
    for change in changes {
        let (player, score, at) = match change {
            Change::Remove { player } => {
                model.remove(player);
                continue;
            }
            Change::Set { player, score, at } => (*player, *score, *at),
            Change::Add { player, delta, at } => {
                let before = model.get(player).map_or(0, |entry| entry.score);
                (*player, before.checked_add(*delta)?, *at)
            }
        };
        if model.get(&player).is_none_or(|entry| entry.score != score) {
            model.insert(player, entry(player, score, at));
        }
    }
    Some(model)
}
