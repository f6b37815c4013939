//! Subscriptions whose connection vanishes without a word: the subscriber learns of the gap and then receives
//! messages again.

mod fault_harness;

use emberkeep_hot::pubsub::{Event, Subscription};
use emberkeep_hot::{Scope, Store};
use emberkeep_schema::{Channel, Utf8, family};
use emberkeep_testkit::{FaultProxy, Flavor, RedisServer, Resp, report};
use fault_harness::*;
use std::time::{Duration, Instant};

on_both_servers! {
    a_peer_that_vanishes_is_noticed_and_the_gap_is_reported,
    a_network_that_stays_silent_is_tried_until_it_speaks,
    a_quiet_channel_is_no_gap,
}

family! {
    /// A channel for news.
    pub NEWS = "news:{arena}" { kind: Channel<Utf8>, partition: Arena, parts: (), ttl: persistent, owner: "test" }
}

/// What the engine promises to notice a silent peer in, and what a busy machine may add.
const NOTICED_MAX: Duration = Duration::from_secs(3 + 5);

/// A subscriber through the proxy, and a publisher beside it.
struct News {
    server: RedisServer,
    proxy: FaultProxy,
    scope: Scope<Arena>,
    heard: Subscription,
}

impl News {
    async fn begin(flavor: Flavor) -> Option<News> {
        let server = emberkeep_testkit::server_of(flavor)?;
        let proxy = FaultProxy::start(server.address()).expect("a port is free");
        let store: Store = store_on(&proxy.url()).await;
        let scope = store.scope(arena("paper"));
        let heard = scope.subscribe(&NEWS.key()).await.expect("a subscription");
        let mut news = News { server, proxy, scope, heard };
        news.tell("first");
        assert_eq!(news.next().await, "first");
        Some(news)
    }

    /// Publishes beside the proxy; returns how many connections the server handed it to.
    fn tell(&self, text: &str) -> i64 {
        self.server.client().call(&["PUBLISH", "news:paper", text]).int()
    }

    /// A message that the server sends and no subscriber gets; afterwards messages arrive again.
    fn lose_a_message(&self) {
        let swallowed = self.proxy.counts().swallowed;
        self.proxy.silence();
        assert!(self.tell("into the void") >= 1, "the server believes that there is a subscriber");
        let deadline = Instant::now() + NOTICED_MAX;
        while self.proxy.counts().swallowed == swallowed {
            assert!(Instant::now() < deadline, "the message does not come by");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.proxy.speak();
    }

    /// The next event in words.
    async fn next(&mut self) -> String {
        let next = tokio::time::timeout(NOTICED_MAX, self.heard.next());
        match next.await.expect("in time").expect("the engine is open") {
            Event::Message { payload, .. } => String::from_utf8_lossy(&payload).into_owned(),
            Event::Missed { count } => format!("missed {count:?}"),
        }
    }
}

async fn a_peer_that_vanishes_is_noticed_and_the_gap_is_reported(flavor: Flavor) {
    let Some(mut news) = News::begin(flavor).await else { return };
    let mut worst = Duration::ZERO;
    for round in 0..3 {
        news.lose_a_message();
        let since = Instant::now();
        assert_eq!(news.next().await, "missed None", "the gap is reported, and nothing before it");
        worst = worst.max(since.elapsed());
        let text = format!("after {round}");
        assert!(news.tell(&text) >= 1);
        assert_eq!(news.next().await, text, "whatever is said after the gap was reported is received");
    }
    report!(
        "subscription, peer vanished 3 times: noticed within {worst:?}, 3 gaps reported, 0 messages lost unreported"
    );
}

/// The server cannot be reached for longer than one attempt takes: it is tried again until it can.
async fn a_network_that_stays_silent_is_tried_until_it_speaks(flavor: Flavor) {
    let Some(mut news) = News::begin(flavor).await else { return };
    let before = news.proxy.counts().connections;
    news.proxy.silence();
    let since = Instant::now();
    // Three attempts in vain: each is a connection that was let in and never answered.
    while news.proxy.counts().connections < before + 3 {
        assert!(since.elapsed() < 3 * NOTICED_MAX, "it is not tried again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        news.heard.try_next(),
        None,
        "a gap is reported when messages can be received again, not before"
    );
    let refused = news.scope.subscribe(&NEWS.key()).await.err();
    news.proxy.speak();
    assert_eq!(news.next().await, "missed None");
    assert!(news.tell("again") >= 1);
    assert_eq!(news.next().await, "again");
    let refused = refused.expect("a new subscription is refused meanwhile");
    report!(
        "subscription, network silent for {:?}: tried again, 1 gap reported; meanwhile {refused}",
        since.elapsed()
    );
}

/// A quiet channel is not a gap: pings are answered, and the subscriber does not see them.
async fn a_quiet_channel_is_no_gap(flavor: Flavor) {
    let Some(mut news) = News::begin(flavor).await else { return };
    let deadline = Instant::now() + 2 * NOTICED_MAX;
    let mut client = news.server.client();
    while pings(&mut client) < 3 {
        assert!(Instant::now() < deadline, "the connection is not pinged");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(news.heard.try_next(), None);
    news.tell("at last");
    assert_eq!(news.next().await, "at last");
    report!("subscription, quiet channel: {} signs of life, 0 gaps reported", pings(&mut client));
}

fn pings(client: &mut Resp) -> u64 {
    let stats = client.call(&["INFO", "commandstats"]).text();
    let calls = stats.split("cmdstat_ping:calls=").nth(1).and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}
