//! Couriers that are killed: a process sends letters between two partitions in both directions and delivers
//! them, and is killed without warning at random points of its life, in process with a journal and on Redis.
//! In the end every letter has arrived exactly once and in order.

use emberkeep::prelude::*;
use emberkeep::primitives::mail::{
    self, DeadLetter, DeliveryError, Envelope, LetterOf, Mail, MailError, OutboxState,
};
use emberkeep::testing;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const URL: &str = "EMBERKEEP_COURIER_URL";
const KILLS: u64 = 60;
/// What a test may take, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(120);

partition! {
    /// A town.
    pub struct Town(Name) as "town";
}
family! {
    /// Letters that a town has sent: their bodies are 1, 2, 3 and so on.
    pub SENT = "sent:{town}" {
        kind: Text<Number<i64>>, partition: Town, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The bodies that arrived, in order.
    pub ARRIVED = "arrived:{town}" {
        kind: List<Number<i64>>, partition: Town, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The outbox.
    pub OUTBOX = "mail:{town}:out" {
        kind: SortedSet<Envelope<Town>>, partition: Town, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The state of the outbox.
    pub STATE = "mail:{town}:state" {
        kind: Text<Json<OutboxState>>, partition: Town, parts: (), ttl: persistent, owner: "test"
    }
}
family! {
    /// The highest sequence.
    pub RECEIVED = "mail:{town}:from:{sender}" {
        kind: Text<Number<i64>>, partition: Town, parts: (sender: Name), ttl: persistent, owner: "test"
    }
}
family! {
    /// Dead letters.
    pub DEAD = "mail:{town}:dead" {
        kind: List<Json<DeadLetter>>, partition: Town, parts: (), ttl: persistent, owner: "test"
    }
}

struct Numbers;

impl Mail for Numbers {
    type From = Town;
    type To = Town;
    type Codec = Number<i64>;
    type Outbox = OUTBOX;
    type State = STATE;
    type Received = RECEIVED;
    type Dead = DEAD;

    fn outbox() -> Key<OUTBOX> {
        OUTBOX.key()
    }

    fn state() -> Key<STATE> {
        STATE.key()
    }

    fn received(from: &Town) -> Key<RECEIVED> {
        RECEIVED.key(&from.0)
    }

    fn dead() -> Key<DEAD> {
        DEAD.key()
    }
}

fn towns() -> [Town; 2] {
    ["north", "south"].map(|name| Town(Name::new(name).expect("a word")))
}

fn receive(tx: &mut Tx<'_, Town>, letter: &LetterOf<Numbers>) -> Result<(), DeliveryError> {
    Ok(tx.rpush(&ARRIVED.key(), &letter.body)?)
}

/// Sends some letters, each with the counter that numbers it.
async fn send(from: &Scope<Town>, to: &Town, letters: i64) {
    for _ in 0..letters {
        let sent = from.transact_with(to.clone(), |tx, to| {
            let number = tx.get_or(&SENT.key(), || 0)? + 1;
            tx.put(&SENT.key(), &number)?;
            mail::send::<Numbers>(tx, to, &number)
        });
        Result::<(), MailError>::expect(sent.await, "a letter is sent");
    }
}

/// Not a test of its own: the process that is killed.
#[tokio::test]
async fn courier() {
    let Ok(url) = std::env::var(URL) else { return };
    let (store, [north, south]) = (Store::open(&url).await.expect("the store opens"), towns());
    let mut out = std::io::stdout();
    // Bounded, if no test kills it.
    for _ in 0..20_000 {
        for (from, to) in [(&north, &south), (&south, &north)] {
            let scope = store.scope(from.clone());
            send(&scope, to, 3).await;
            let delivery = mail::deliver_from::<Numbers, _>(&scope, receive).await.expect("a delivery");
            assert_eq!((delivery.refused, delivery.waiting.len(), delivery.corrupt.len()), (0, 0, 0));
            if writeln!(out, "delivered {}", delivery.delivered).and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    }
}

/// Starts a courier and kills it at a random point. Returns whether it had delivered something.
fn kill_one(url: &str, random: u64) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "courier", "--nocapture", "--test-threads=1"])
        .env(URL, url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the courier starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut rounds = lines.filter(|line| line.contains("delivered"));
    // One in eight dies while it starts, the others after some rounds and a part of the next one.
    let wanted = if random.is_multiple_of(8) { 0 } else { (random >> 8) as usize % 12 + 1 };
    let found = rounds.by_ref().take(wanted).count();
    std::thread::sleep(Duration::from_micros((random >> 20) % 12_000));
    child.kill().expect("the courier was still there");
    child.wait().expect("the courier is gone");
    found > 0
}

/// Every letter arrived once and in order, or waits; after a last delivery none waits.
async fn check(store: &Store) -> usize {
    let mut letters = 0;
    let [north, south] = towns();
    for (from, to) in [(&north, &south), (&south, &north)] {
        let (sender, receiver) = (store.scope(from.clone()), store.scope(to.clone()));
        let (sent, waiting) = sender
            .read(|tx| tx.together(|tx| (tx.get_or(&SENT.key(), || 0), mail::waiting::<Numbers>(tx))))
            .await
            .map_err(|error: Error| error)
            .expect("readable");
        let before = receiver.llen(&ARRIVED.key()).await.expect("readable");
        assert!(before + waiting >= sent as usize, "{before} arrived and {waiting} wait, of {sent}");
        for _ in 0..100 {
            mail::deliver_from::<Numbers, _>(&sender, receive).await.expect("a delivery");
            if sender.read(mail::waiting::<Numbers>).await == Ok(0) {
                break;
            }
        }
        let mut arrived: Vec<i64> = Vec::new();
        while arrived.len() < sent as usize + 1 {
            let first = arrived.len() as i64;
            let page = receiver.lrange(&ARRIVED.key(), first, first + 499).await.expect("readable");
            if page.is_empty() {
                break;
            }
            arrived.extend(page);
        }
        let wrong = (1..).zip(&arrived).find(|(number, body)| number != *body);
        assert_eq!((wrong, arrived.len()), (None, sent as usize), "from {from:?} to {to:?}");
        letters += arrived.len();
    }
    letters
}

async fn kill_couriers(url: &str, mut random: u64) {
    let (started, mut delivered) = (Instant::now(), 0);
    for _ in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        delivered += u64::from(kill_one(url, random >> 24));
        assert!(started.elapsed() < TIME_MAX, "{KILLS} kills take too long");
    }
    let store = Store::open(url).await.expect("whatever a kill leaves behind can be opened");
    let letters = check(&store).await;
    println!("kill -9 of couriers: {KILLS} kills, {letters} letters, {:?}", started.elapsed());
    assert!(delivered > KILLS / 2, "most couriers must have delivered before they were killed");
    store.close().await.expect("closes");
}

#[tokio::test]
async fn killed_couriers_deliver_each_letter_once_in_process() {
    let folder = testing::scratch();
    kill_couriers(&format!("file:{}?durability=always", folder.path().display()), 0x2545_F491_4F6C_DD1D)
        .await;
}

#[tokio::test]
async fn killed_couriers_deliver_each_letter_once_on_redis() {
    let Some(server) = testing::redis() else { return };
    kill_couriers(&server.url(), 0x9E37_79B9_7F4A_7C15).await;
}
