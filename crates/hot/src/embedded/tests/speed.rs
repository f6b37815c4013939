//! What things cost, beside a bare map. Run by hand, in release:
//! `cargo test --release -p emberkeep-hot --lib embedded::tests::speed -- --ignored --nocapture
//! --test-threads 1`

use super::*;
use std::collections::HashMap;
use std::hash::RandomState;
use std::hint::black_box;
use std::time::Instant;

const KEYS: usize = 100_000;
const ROUNDS: usize = 1_000_000;

fn names() -> Vec<RawKey> {
    (0..KEYS).map(|n| key(format!("session:{n:08}:player"))).collect()
}

/// Positions that no prefetcher guesses.
fn positions() -> impl Iterator<Item = usize> {
    let mut state = 88_172_645_463_325_252u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % KEYS as u64) as usize
    })
}

/// Nanoseconds an operation: the tenth percentile of many short batches, so that what else the machine does
/// counts as little as possible.
fn measure(mut operation: impl FnMut(usize)) -> f64 {
    const BATCH: usize = 2_000;
    let mut positions = positions();
    let mut batches: Vec<f64> = (0..ROUNDS / BATCH)
        .map(|_| {
            let started = Instant::now();
            positions.by_ref().take(BATCH).for_each(&mut operation);
            started.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 10]
}

type BareShard = Mutex<HashMap<Box<[u8]>, Box<[u8]>>>;
type Bare = Vec<BareShard>;

fn bare_shard<'a>(bare: &'a Bare, state: &RandomState, key: &[u8]) -> &'a BareShard {
    &bare[(state.hash_one(key) >> 32) as usize % SHARDS]
}

#[test]
#[ignore = "measures; run in release"]
fn reads_and_writes_beside_a_bare_map() {
    let (names, value) = (names(), Bytes::from(vec![b'v'; 220]));
    let state = RandomState::new();
    let bare: Bare = (0..SHARDS).map(|_| Mutex::default()).collect();
    for name in &names {
        bare_shard(&bare, &state, name).lock().insert(name[..].into(), value[..].into());
    }
    let bare_get = measure(|n| {
        black_box(bare_shard(&bare, &state, &names[n]).lock().get(&names[n][..]).cloned());
    });
    let bare_set = measure(|n| {
        let fresh: Box<[u8]> = value[..].into();
        bare_shard(&bare, &state, &names[n]).lock().insert(names[n][..].into(), fresh);
    });
    println!("bare map           get {bare_get:.0} ns, set {bare_set:.0} ns");
    for (what, expiry) in [("no deadline", Expiry::Never), ("with deadline", Expiry::At(1 << 42))] {
        let engine = Embedded::in_memory();
        for name in &names {
            write(&engine, vec![(name.clone(), Write::Set(value.clone(), expiry))]).unwrap();
        }
        let mut out = Vec::new();
        let get = measure(|n| {
            engine.get_local(&names[n], &mut out).unwrap().unwrap();
            black_box(&out);
        });
        let mut body = One { write: None };
        let set = measure(|n| {
            body.write = Some((names[n].clone(), Write::Set(value.clone(), expiry)));
            engine.run_local(b"p", &mut body, 1).unwrap().result.unwrap();
        });
        println!(
            "engine, {what:13} get {get:.0} ns ({:.2}x), set {set:.0} ns ({:.2}x)",
            get / bare_get,
            set / bare_set
        );
    }
}

/// A blind write.
struct One {
    write: Option<(RawKey, Write)>,
}

impl Transaction for One {
    fn run(&mut self, mut tx: RawTx<'_>) -> bool {
        let (key, write) = self.write.clone().unwrap();
        tx.write(key, write).is_ok()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// Reads a record and writes it back changed.
struct Change<'a> {
    names: &'a [RawKey],
    at: usize,
    until: Expiry,
}

impl Change<'_> {
    fn work(text: &[u8]) -> Bytes {
        let mut changed = text.to_vec();
        changed[0] = changed[0].wrapping_add(1);
        Bytes::from(changed)
    }
}

impl Transaction for Change<'static> {
    fn run(&mut self, mut tx: RawTx<'_>) -> bool {
        let name = &self.names[self.at];
        let changed = Change::work(tx.text(name).unwrap().unwrap());
        tx.write(name.clone(), Write::Set(changed, self.until)).is_ok()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

#[test]
#[ignore = "measures; run in release"]
fn a_transaction_that_reads_and_writes_600_bytes() {
    let names: &'static [RawKey] = names().leak();
    let value = Bytes::from(vec![b'v'; 600]);
    let own = measure(|_| drop(black_box(Change::work(&value))));
    for (until, keys) in [Expiry::Never, Expiry::At(1 << 42)].into_iter().flat_map(|u| [(u, 100), (u, KEYS)])
    {
        let engine = Embedded::in_memory();
        for name in names {
            write(&engine, vec![(name.clone(), Write::Set(value.clone(), until))]).unwrap();
        }
        let mut body = Change { names, at: 0, until };
        let transaction = measure(|n| {
            body.at = n % keys;
            engine.run_local(b"p", &mut body, 1).unwrap().result.unwrap();
        });
        println!(
            "transaction of 600 B, {keys} keys, {until:?}: {transaction:.0} ns, of which the body's own work {own:.0} ns"
        );
    }
}

#[test]
#[ignore = "measures; run in release"]
fn parts_of_a_transaction() {
    let (engine, name) = (Embedded::in_memory(), key("session:00000001:player"));
    println!("Instant::now {:.1} ns", measure(|_| _ = black_box(Instant::now())));
    println!("the engine's clock {:.1} ns", measure(|_| _ = black_box(engine.inner.ticker.now())));
    println!("hash {:.1} ns", measure(|_| _ = black_box(engine.inner.hash(black_box(&name)))));
    let lock = measure(|n| _ = black_box(engine.inner.shards[n % SHARDS].lock().len()));
    println!("lock {lock:.1} ns");
    let mut nothing = Body(|_: &mut RawTx<'_>| true);
    let empty = measure(|_| _ = black_box(engine.run_local(b"p", &mut nothing, 1)));
    println!("a transaction that does nothing {empty:.1} ns");
}

#[test]
#[ignore = "measures; run in release"]
fn growth_pauses_no_caller() {
    let engine = Embedded::in_memory();
    let value = Bytes::from(vec![b'v'; 16]);
    let (mut longest, mut over) = (Duration::ZERO, 0);
    let started = Instant::now();
    for n in 0..3_000_000 {
        let list = vec![(key(format!("k{n}")), Write::Set(value.clone(), Expiry::Never))];
        let one = Instant::now();
        write(&engine, list).unwrap();
        let took = one.elapsed();
        over += (took > Duration::from_millis(1)) as usize;
        longest = longest.max(took);
    }
    println!("3,000,000 keys in {:?}; longest write {longest:?}, {over} over 1 ms", started.elapsed());
}

fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[ignore = "measures; run in release, alone"]
fn memory_of_a_session() {
    let engine = Embedded::in_memory();
    let before = resident_bytes();
    const SESSIONS: usize = 1_000_000;
    for n in 0..SESSIONS {
        let list = vec![(
            key(format!("session:{n:032x}")),
            Write::Set(Bytes::from(vec![b'v'; 220]), Expiry::At(1 << 42)),
        )];
        write(&engine, list).unwrap();
    }
    let resident = (resident_bytes() - before) / SESSIONS;
    let counted = engine.stats().unwrap().memory_bytes as usize / SESSIONS;
    println!("a session of 220 bytes under a key of 40: {resident} bytes resident, {counted} accounted");
}

#[test]
#[ignore = "measures; run in release"]
fn ranks_among_a_million() {
    let engine = Embedded::in_memory();
    let mut choose = positions();
    let started = Instant::now();
    for n in 0..1_000_000usize {
        let pair =
            (Bytes::from(format!("player:{n}")), Score::from_i64((choose.next().unwrap() * 7 + n) as i64));
        write(&engine, vec![(key("board"), Write::ZAdd(vec![pair]))]).unwrap();
    }
    println!("1,000,000 members added in {:?}", started.elapsed());
    for (what, ask) in [
        ("ZRANGE 500000 500009", Read::ZRange(ZSlice::Rank(500_000, 500_009), false)),
        ("ZREVRANGE 900000 900009", Read::ZRange(ZSlice::Rank(900_000, 900_009), true)),
        ("ZCOUNT", Read::ZCount(ScoreBound::Included(Score::from_i64(400_000)), ScoreBound::MAX)),
        ("ZSCORE", Read::ZScore(bytes("player:777777"))),
    ] {
        let started = Instant::now();
        (0..1_000).for_each(|_| drop(black_box(read(&engine, "board", ask.clone()))));
        println!("{what}: {:?}", started.elapsed() / 1_000);
    }
}

#[test]
#[ignore = "measures; run in release"]
fn a_reader_beside_100_000_keys_that_end_at_once() {
    let engine = Arc::new(Embedded::in_memory());
    let names = names();
    let at = engine.inner.ticker.now() + 8_000;
    for name in &names {
        write(&engine, vec![(name.clone(), Write::Set(Bytes::from(vec![b'v'; 220]), Expiry::At(at)))])
            .unwrap();
    }
    set(&engine, "alive", "x");
    // Open loop: 10,000 reads a second are due, whether or not the last one was answered.
    let read_for = |what: &str, seconds: u32| {
        let (started, mut latencies, mut out) = (Instant::now(), Vec::new(), Vec::new());
        for n in 0..seconds * 10_000 {
            let due = Duration::from_micros(100) * n;
            while started.elapsed() < due {
                std::hint::spin_loop();
            }
            engine.get_local(&names[n as usize * 7 % KEYS], &mut out).unwrap().unwrap();
            black_box(&out);
            latencies.push(started.elapsed() - due);
        }
        latencies.sort();
        let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize - 1];
        println!(
            "{what}: p50 {:?}, p99.9 {:?}, max {:?}; {} keys",
            at(0.5),
            at(0.999),
            at(1.0),
            engine.len()
        );
    };
    read_for("nothing ends", 2);
    while engine.inner.ticker.now() < at - 500 {
        std::thread::sleep(Duration::from_millis(1));
    }
    read_for("all end", 2);
}
