//! Leaderboards in history, and a board of hot state that is rebuilt from it.

use crate::stores::{NOW, World};
use emberkeep_games::darkages::archive::boards::ScoreChange;
use emberkeep_games::darkages::history::BoardCategory;
use emberkeep_hot::Store;
use emberkeep_hot::embedded::Embedded;
use emberkeep_primitives::leaderboard::{Leaderboard, Ranked};
use emberkeep_schema::{Day, Hash, Id, Name, Number, SortedSet, Timestamp, Utf8, family, partition};
use std::sync::Arc;

fn today() -> Day {
    Timestamp(NOW).day()
}

fn change(player_id: i64, before: Option<i64>, score: i64) -> ScoreChange {
    ScoreChange { player_id, player_name: format!("player {player_id}"), before, score }
}

async fn top(world: &World, category: BoardCategory, n: usize) -> Vec<(i64, i64)> {
    let page = world.archive.daily_board(category, today(), n, None).await.unwrap();
    page.rows.into_iter().map(|row| (row.player_id, row.score)).collect()
}

pub(crate) async fn scores_move(world: &World) {
    let write = |changes, position| {
        world.archive.write_daily_scores(BoardCategory::Kills, today(), changes, position)
    };
    write(vec![change(1, None, 5), change(2, None, 7), change(3, None, 5)], 10).await.unwrap();
    assert_eq!(top(world, BoardCategory::Kills, 10).await, [(2, 7), (1, 5), (3, 5)]);
    write(vec![change(3, Some(5), 9)], 11).await.unwrap();
    assert_eq!(top(world, BoardCategory::Kills, 2).await, [(3, 9), (2, 7)]);
    // Of a player who stands twice the row in between would be left.
    let twice = write(vec![change(1, Some(5), 6), change(1, Some(6), 9)], 12).await.unwrap_err();
    assert!(twice.to_string().contains("player 1 stands twice"), "{twice}");
    assert_eq!(top(world, BoardCategory::Kills, 10).await, [(3, 9), (2, 7), (1, 5)]);
    // A rename writes the row of the same score.
    let renamed = ScoreChange { player_name: "new name".into(), ..change(3, Some(9), 9) };
    write(vec![renamed], 12).await.unwrap();
    let page = world.archive.daily_board(BoardCategory::Kills, today(), 2, None).await.unwrap();
    assert_eq!(page.rows[0].player_name, "new name");
    let rest = world.archive.daily_board(BoardCategory::Kills, today(), 2, page.next).await.unwrap();
    assert_eq!((rest.rows[0].player_id, rest.next), (1, None));
}

pub(crate) async fn replays_of_scores_change_nothing(world: &World) {
    let writes = [(vec![change(1, None, i64::MIN)], 10), (vec![change(1, Some(i64::MIN), i64::MAX)], 11)];
    for turn in [&[0, 1][..], &[0], &[1, 0, 1]] {
        for place in turn {
            let (changes, position) = writes[*place].clone();
            world.archive.write_daily_scores(BoardCategory::Wins, today(), changes, position).await.unwrap();
        }
    }
    assert_eq!(top(world, BoardCategory::Wins, 10).await, [(1, i64::MAX)]);
}

pub(crate) async fn all_time_boards(world: &World) {
    let archive = &world.archive;
    assert_eq!(archive.all_time_board(BoardCategory::Playtime).await.unwrap(), []);
    let entries = vec![(7, "ann".to_owned(), i64::MAX), (8, "bob".to_owned(), 3)];
    archive.write_all_time_board(BoardCategory::Playtime, entries.clone(), 20).await.unwrap();
    archive.write_all_time_board(BoardCategory::Playtime, vec![], 19).await.unwrap();
    assert_eq!(archive.all_time_board(BoardCategory::Playtime).await.unwrap(), entries);
    let unsorted = entries.into_iter().rev().collect();
    archive.write_all_time_board(BoardCategory::Playtime, unsorted, 21).await.unwrap_err();
    let many = (0..101).map(|id| (id, String::new(), -id)).collect();
    archive.write_all_time_board(BoardCategory::Playtime, many, 21).await.unwrap_err();
}

partition! {
    /// The board's partition.
    struct Board(Name) as "board";
}
family! {
    /// The order.
    ORDER = "order:{board}" {
        kind: SortedSet<Ranked<i64>>, partition: Board, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The entries.
    PLAYERS = "players:{board}" {
        kind: Hash<Id<i64>, Ranked<i64>>, partition: Board, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The sources.
    SOURCES = "sources:{board}" {
        kind: Hash<Utf8, Number<u64>>, partition: Board, parts: (), ttl: persistent, owner: "test"
    }
}

pub(crate) async fn a_board_is_rebuilt(world: &World) {
    let changes: Vec<_> = (0..2_500).map(|id| change(id, None, id % 1_000)).collect();
    for some in changes.chunks(500) {
        world.archive.write_daily_scores(BoardCategory::Damage, today(), some.to_vec(), 30).await.unwrap();
    }
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let scope = store.scope(Board(Name::new("damage").unwrap()));
    let board = || Leaderboard::new(ORDER.key(), PLAYERS.key(), SOURCES.key());
    scope.transact(move |tx| board().set(tx, &9_999_999, 5, 1)).await.unwrap();
    let of = (BoardCategory::Damage, today());
    let positions = [("shard-1".to_owned(), 41)];
    let report = world.archive.rebuild_daily_board(&board(), &scope, of, &positions).await.unwrap();
    assert_eq!((report.players, report.removed), (2_500, 1));
    let standings = scope.read(move |tx| board().top(tx, 3)).await.unwrap();
    let standings: Vec<_> = standings.into_iter().map(|one| (one.player, one.score)).collect();
    assert_eq!(standings, top(world, BoardCategory::Damage, 3).await);
    let position = scope.read(move |tx| board().position(tx, "shard-1")).await.unwrap();
    assert_eq!(position, Some(41));
}
