//! `emberkeep::testing` as a game uses it: cases on every engine, and clocks that a test moves.

use emberkeep::testing::{RedisServer, block_on, on_every_engine, on_two_connections, require, store_at};

mod cases {
    use emberkeep::prelude::*;

    partition! {
        /// A match.
        pub(crate) struct Match(Name) as "match";
    }
    family! {
        /// The goals of a team; forgotten an hour after the first.
        pub(crate) GOALS = "goals:{match}:{team}" {
            kind: Text<Number<i64>>, partition: Match, parts: (team: u8), ttl: fixed(3_600_000), owner: "ball"
        }
    }

    pub(crate) fn scope(store: &Store, name: &str) -> Scope<Match> {
        store.scope(Match(Name::new(name).expect("a name")))
    }

    pub(crate) async fn goals_are_counted(store: Store) {
        let game = scope(&store, "goals_are_counted");
        for _ in 0..3 {
            game.transact(|tx| tx.incr_by(&GOALS.key(1), 1)).await.expect("a store that works");
        }
        assert_eq!(game.get_many(&[GOALS.key(1), GOALS.key(2)]).await, Ok(vec![Some(3), None]));
    }

    pub(crate) async fn another_process_sees_the_goals(one: Store, other: Store) {
        let name = "another_process_sees_the_goals";
        scope(&one, name).put(&GOALS.key(1), 5).await.expect("a store that works");
        assert_eq!(scope(&other, name).get(&GOALS.key(1)).await, Ok(Some(5)));
    }
}

on_every_engine!(mod goals = cases { goals_are_counted });
on_two_connections!(mod two_processes = cases { another_process_sees_the_goals });

const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_manual_clock_ends_a_key() {
    let (store, clock) = store_at(1_000);
    let game = cases::scope(&store, "m1");
    block_on(game.put(&cases::GOALS.key(1), 1)).expect("a store that works");
    clock.advance(HOUR_MS);
    assert_eq!(block_on(game.exists(&cases::GOALS.key(1))), Ok(true));
    clock.advance(1);
    assert_eq!(block_on(game.exists(&cases::GOALS.key(1))), Ok(false));
}

#[test]
fn a_moved_redis_clock_ends_a_key() {
    use emberkeep::prelude::*;
    let Some(server) = require(RedisServer::options().clock_offset(0).start()) else { return };
    block_on(async {
        let store = Store::open(&server.url()).await.expect("the server is up");
        let game = cases::scope(&store, "m1");
        game.put(&cases::GOALS.key(1), 1).await.expect("a store that works");
        server.set_clock_offset(3_700);
        assert_eq!(game.exists(&cases::GOALS.key(1)).await, Ok(false));
    });
}
