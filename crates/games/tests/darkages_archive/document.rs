//! Every SELECT of the storage document, read from the project's page and run unchanged on a real Cassandra.

use crate::combat::event;
use crate::stores::World;
use emberkeep_games::darkages::archive::boards::ScoreChange;
use emberkeep_games::darkages::history::BoardCategory;
use emberkeep_testkit::{CassandraCluster, shared_cassandra};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

/// Half past ten of 2024-01-01.
const AT: i64 = 1_704_105_000_000;

/// The SELECT statements of the page, as they stand there.
fn selects() -> Vec<String> {
    let page = include_str!("../../../../docs/games/darkages.md");
    let blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let statements = blocks.flat_map(|(block, _)| block.split_inclusive(';'));
    let without_comments = |statement: &str| {
        let lines = statement.lines().filter(|line| !line.trim_start().starts_with("--"));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    statements.map(without_comments).filter(|statement| statement.starts_with("SELECT")).collect()
}

async fn session(cassandra: &CassandraCluster) -> Session {
    let builder = SessionBuilder::new().known_nodes(cassandra.addresses());
    builder.user("cassandra", "cassandra").build().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_select_of_the_document_runs_unchanged() {
    let Some(cassandra) = shared_cassandra() else { return };
    let world = World::cassandra(cassandra, "darkages", "document").await;
    let (archive, day) = (&world.archive, "2024-01-01".parse().unwrap());
    let events = [(1, 12_345, 1), (2, 12_345, 2), (3, 3, 12_345)];
    let events = events.map(|(number, attacker, target)| event(number, AT, attacker, target, 42));
    archive.history().insert_many(events).await.unwrap();
    // Before the hour that is asked for.
    archive.history().insert(event(4, AT - 3_600_000, 12_345, 1, 42)).await.unwrap();
    let changes = (0..120).map(|player_id| ScoreChange {
        player_id,
        player_name: "ann".into(),
        before: None,
        score: player_id,
    });
    archive.write_daily_scores(BoardCategory::Kills, day, changes.collect(), 1).await.unwrap();
    let best = vec![(7, "ann".to_owned(), 5)];
    archive.write_all_time_board(BoardCategory::Kills, best, 1).await.unwrap();

    let session = session(cassandra).await;
    session.use_keyspace("darkages", false).await.unwrap();
    let (found, expected) = (selects(), [3, 3, 1, 100, 1]);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (statement, rows) in found.iter().zip(expected) {
        let result = session.query_unpaged(statement.as_str(), ()).await;
        let result = result.unwrap_or_else(|error| panic!("{statement}\n{error}"));
        assert_eq!(result.into_rows_result().unwrap().rows_num(), rows, "{statement}");
    }
}

/// The two indexes of profiles, as another program uses them.
#[tokio::test(flavor = "multi_thread")]
async fn other_programs_find_profiles_by_the_indexes_of_the_document() {
    let Some(cassandra) = shared_cassandra() else { return };
    for layout in ["document", "scaled"] {
        let keyspace = format!("profiles_{layout}");
        let world = World::cassandra(cassandra, &keyspace, layout).await;
        world.archive.register(crate::registrations::player(1, "Ann")).await.unwrap();
        world.archive.rename(1, "Eve").await.unwrap();
        let session = session(cassandra).await;
        for (condition, count) in
            [("username = 'Ann'", 0), ("username = 'Eve'", 1), ("email = 'Ann-1@example.org'", 1)]
        {
            let statement = format!("SELECT * FROM {keyspace}.player_profiles WHERE {condition}");
            let rows = session.query_unpaged(statement, ()).await.unwrap().into_rows_result().unwrap();
            assert_eq!(rows.rows_num(), count, "{layout}: {condition}");
        }
    }
}
