//! A log that feeds a leaderboard of another partition: each entry once.

use super::Realm;
use emberkeep_hot::command::Write;
use emberkeep_hot::store::LogPosition;
use emberkeep_hot::{Error, Scope, Store, Tx};
use emberkeep_primitives::leaderboard::{Change, Leaderboard, LeaderboardError, Ranked};
use emberkeep_primitives::log_feed::{
    EntryFeed, EntryReader, FedEntry, Feed, FeedError, FeedRecord, LogFeed, LogReader, NumberedFeed,
};
use emberkeep_schema::{
    Hash, Id, Json, Log, Newest, Number, Raw, RefuseAbove, SortedSet, Utf8, family, partition,
};
use std::time::Duration;
use tokio::task::JoinSet;
use uuid::Uuid;

partition! {
    /// Where the board is.
    #[derive(Copy)]
    pub struct Hall(Uuid) as "hall";
}
family! {
    /// Points as they are scored: player and points.
    pub POINTS = "log:feed-test:{realm}:points" {
        kind: Log<Json<(i64, i64)>, RefuseAbove<10_000>>, partition: Realm, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The order.
    pub ORDER = "feed-test:{hall}:order" {
        kind: SortedSet<Ranked<i64>>, partition: Hall, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The players.
    pub PLAYERS = "feed-test:{hall}:players" {
        kind: Hash<Id<i64>, Ranked<i64>>, partition: Hall, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The board's own sources.
    pub SOURCES = "feed-test:{hall}:sources" {
        kind: Hash<Utf8, Number<u64>>, partition: Hall, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// How far logs were applied.
    pub FED = "feed-test:{hall}:fed" {
        kind: Hash<Utf8, Json<FeedRecord>>, partition: Hall, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The marks of what was applied.
    pub APPLIED = "log:feed-test:{hall}:applied" {
        kind: Log<Raw, Newest<1_000>>, partition: Hall, parts: (), ttl: persistent, owner: "test"
    }
}

/// Refused by the effect.
const POISON: i64 = -1;

fn board() -> Leaderboard<ORDER, PLAYERS, SOURCES> {
    Leaderboard::new(ORDER.key(), PLAYERS.key(), SOURCES.key())
}

fn effect(tx: &mut Tx<'_, Hall>, entries: &[FedEntry<(i64, i64)>]) -> Result<(), FeedError> {
    if entries.iter().any(|entry| entry.event.0 == POISON) {
        return Err(FeedError::Refused { reason: "poison".into() });
    }
    let changes: Vec<_> = entries
        .iter()
        .map(|FedEntry { sequence, event: (player, delta) }| Change::Add {
            player: *player,
            delta: *delta,
            at: *sequence as i64,
        })
        .collect();
    Ok(board().change(tx, &changes)?)
}

type PointsFeed = LogFeed<Hall, POINTS, FED, APPLIED, (i64, i64)>;

#[derive(Clone)]
struct Game {
    realm: Scope<Realm>,
    hall: Scope<Hall>,
}

impl Game {
    fn new(store: &Store) -> Game {
        Game { realm: store.scope(Realm::new()), hall: store.scope(Hall(Uuid::new_v4())) }
    }

    fn feed(&self) -> PointsFeed {
        let feed = Feed::new(FED.key(), APPLIED.key());
        LogFeed::new(&self.realm, POINTS.key(), EntryFeed::new(&self.hall, feed, effect))
    }

    async fn score(&self, player: i64, points: i64) {
        let append = move |tx: &mut Tx<'_, Realm>| tx.append(&POINTS.key(), &(player, points));
        self.realm.transact::<(), Error, _>(append).await.unwrap();
    }

    async fn points(&self, player: i64) -> i64 {
        let score = self.hall.read(move |tx| board().score(tx, &player)).await.unwrap();
        score.unwrap_or(0)
    }

    /// The log as it is, to be restored later.
    async fn saved(&self) -> Vec<bytes::Bytes> {
        let key =
            bytes::Bytes::from(POINTS.key().to_text(self.realm.store().key_layout(), self.realm.partition()));
        let read = move |tx: &mut Tx<'_, Realm>| {
            let read = emberkeep_hot::command::Read::LRange(0, -1);
            Ok(match tx.raw_read_many(&[(key.clone(), read)])?.remove(0)? {
                emberkeep_hot::command::Reply::List(elements) => elements,
                other => panic!("{other:?}"),
            })
        };
        self.realm.transact::<Vec<_>, Error, _>(read).await.unwrap()
    }

    /// The log as it was, as after a failover.
    async fn restore(&self, saved: Vec<bytes::Bytes>) {
        let key =
            bytes::Bytes::from(POINTS.key().to_text(self.realm.store().key_layout(), self.realm.partition()));
        let write = move |tx: &mut Tx<'_, Realm>| {
            tx.del(&POINTS.key())?;
            if !saved.is_empty() {
                tx.raw_write(key.clone(), Write::RPush(saved.clone()))?;
            }
            Ok(())
        };
        self.realm.transact::<(), Error, _>(write).await.unwrap();
    }
}

pub async fn entries_count_once_and_in_order(store: Store) {
    let game = Game::new(&store);
    let (one, two) = (game.feed(), game.feed());
    for number in 0..1_203 {
        game.score(number % 7, 2).await;
    }
    assert_eq!(one.feed_once().await.unwrap(), 1_203);
    assert_eq!(two.feed_once().await.unwrap(), 0, "all of it was applied");
    game.score(3, 5).await;
    assert_eq!(two.feed_once().await.unwrap(), 1);
    assert_eq!(one.feed_once().await.unwrap(), 0);
    let expected = (0..1_203).filter(|number| number % 7 == 3).count() as i64 * 2 + 5;
    assert_eq!(game.points(3).await, expected);
    assert_eq!(one.position().await.unwrap().sequence, 1_204);
    assert_eq!((one.stats().missed, one.stats().set_backs, one.stats().skipped), (0, 0, 0));
}

/// Four feeds at once, while scores come, stopped and started at any point: the board is the sum.
pub async fn many_feeds_apply_each_entry_once(store: Store) {
    let game = Game::new(&store);
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let game = game.clone();
        tasks.spawn(async move {
            loop {
                let feed = game.feed();
                // Dropped in the middle of whatever it does.
                let _ = tokio::time::timeout(Duration::from_millis(3), feed.follow()).await;
            }
        });
    }
    for number in 0..400 {
        game.score(number % 5, 1).await;
    }
    tasks.shutdown().await;
    game.feed().feed_once().await.unwrap();
    for player in 0..5 {
        assert_eq!(game.points(player).await, 80, "player {player}");
    }
}

pub async fn an_entry_is_applied_within_a_second(store: Store) {
    let game = Game::new(&store);
    let feed = std::sync::Arc::new(game.feed());
    let running = tokio::spawn({
        let feed = feed.clone();
        async move { feed.follow().await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    for number in 1..=5 {
        let since = tokio::time::Instant::now();
        game.score(1, 1).await;
        while game.points(1).await != number {
            assert!(since.elapsed() < Duration::from_secs(1), "entry {number} was not applied in a second");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    running.abort();
}

/// A failover: the log loses its end, and gives the sequences again.
pub async fn a_log_that_is_set_back_does_not_count_again(store: Store) {
    let game = Game::new(&store);
    let feed = game.feed();
    for _ in 0..10 {
        game.score(1, 1).await;
    }
    feed.feed_once().await.unwrap();
    let saved = game.saved().await;
    for _ in 0..5 {
        game.score(2, 1).await;
    }
    feed.feed_once().await.unwrap();
    // Shorter than before, then as long, then longer.
    for (round, appended) in [3, 5, 9].into_iter().enumerate() {
        game.restore(saved.clone()).await;
        for _ in 0..appended {
            game.score(10 + round as i64, 1).await;
        }
        assert_eq!(game.feed().feed_once().await.unwrap(), appended, "round {round}");
        assert_eq!(game.points(10 + round as i64).await, appended as i64);
    }
    assert_eq!((game.points(1).await, game.points(2).await), (10, 5), "what was applied stays, once");
    // FLUSHALL of the log's server.
    game.restore(Vec::new()).await;
    assert_eq!(feed.feed_once().await.unwrap(), 0);
    for _ in 0..4 {
        game.score(20, 1).await;
    }
    assert_eq!(feed.feed_once().await.unwrap(), 4);
    assert_eq!(game.points(20).await, 4);
    assert!(feed.stats().set_backs >= 1);
}

pub async fn entries_that_cannot_be_applied_do_not_stop_the_others(store: Store) {
    let game = Game::new(&store);
    for number in 0..20 {
        game.score(if number == 7 { POISON } else { 1 }, 1).await;
    }
    let rubbish = {
        let mut saved = game.saved().await;
        saved[11] = bytes::Bytes::from_static(b"rubbish");
        saved
    };
    game.restore(rubbish).await;
    let feed = game.feed();
    assert_eq!(feed.feed_once().await.unwrap(), 18);
    assert_eq!((game.points(1).await, feed.stats().skipped), (18, 2));
    assert_eq!(feed.feed_once().await.unwrap(), 0);
}

/// A board that is rebuilt takes nothing; afterwards what is not part of it is applied.
pub async fn entries_wait_for_a_rebuild(store: Store) {
    let game = Game::new(&store);
    let feed = game.feed();
    game.score(1, 1).await;
    feed.feed_once().await.unwrap();
    let rebuild = board().begin_rebuild(&game.hall).await.unwrap();
    game.score(1, 1).await;
    assert!(matches!(feed.feed_once().await, Err(FeedError::Waits { .. })));
    rebuild.finish(&[]).await.unwrap();
    assert_eq!(game.points(1).await, 0, "rebuilt from nothing");
    assert_eq!(feed.feed_once().await.unwrap(), 1);
    assert_eq!(game.points(1).await, 1);
    // From the start.
    let from_start = |tx: &mut Tx<'_, Hall>, source: &String| {
        board().reset(tx)?;
        Feed::new(FED.key(), APPLIED.key()).set(tx, source, LogPosition::START)?;
        Ok::<_, LeaderboardError>(())
    };
    game.hall.transact_with(feed.source().to_owned(), from_start).await.unwrap();
    assert_eq!(feed.feed_once().await.unwrap(), 2);
    assert_eq!(game.points(1).await, 2);
}

/// What a spool delivers, twice, and by two consumers at once.
pub async fn numbered_entries_count_once(store: Store) {
    let game = Game::new(&store);
    let numbered = || {
        let feed = Feed::new(FED.key(), APPLIED.key());
        NumberedFeed::<Hall, FED, APPLIED, Json<(i64, i64)>>::from(EntryFeed::new(&game.hall, feed, effect))
    };
    let (one, two) = (numbered(), numbered());
    let entries: Vec<_> =
        (1..=1_200).map(|number| (number, bytes::Bytes::from(format!("[{},1]", number % 3)))).collect();
    let (first, second) = tokio::join!(one.apply("spool/a", &entries), two.apply("spool/a", &entries));
    assert_eq!(first.unwrap() + second.unwrap(), 1_200);
    assert_eq!(one.apply("spool/a", &entries[700..]).await.unwrap(), 0);
    assert_eq!(
        one.apply("spool/b", &entries[..3]).await.unwrap(),
        3,
        "another opening has numbers of its own"
    );
    assert_eq!(game.points(1).await, 401);
}
