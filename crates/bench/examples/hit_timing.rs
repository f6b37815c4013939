//! How long a hit takes in process: `cargo run --release -p emberkeep-bench --example hit_timing`.
//!
//! The best of several rounds, because the machine does other things too.

use emberkeep::games::monsters::{MONSTER, Monster, Monsters, SpawnRequest, rules};
use emberkeep::games::world::{CharacterId, Field, Tenant};
use emberkeep::hot::{Error, Store, embedded::Embedded};
use emberkeep::schema::{Codec, Json};
use std::{hint::black_box, sync::Arc, time::Instant};
use uuid::Uuid;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints the best nanoseconds of one run of `body`.
fn time(what: &str, mut body: impl FnMut()) {
    // Short rounds: one without an interruption is among them.
    const ROUNDS: usize = 10_000;
    const RUNS: u32 = 16;
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..RUNS).for_each(|_| body());
            start.elapsed().as_nanos() as f64 / f64::from(RUNS)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{best:9.1} ns  {what}");
}

/// A monster whose record has about 600 bytes.
fn wounded(mut monster: Monster) -> Monster {
    for character in 0..6 {
        rules::strike(&mut monster, CharacterId(20_000_000 + character), 12_345).expect("it lives");
    }
    monster
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let store = Store::new(Arc::new(Embedded::in_memory()));
    let (monsters, tenant) = (Monsters::new(store.clone()), Tenant(Uuid::from_u128(7)));
    let request = SpawnRequest::new(Field::default(), 9_300_018, 2_000_000_000);
    let monster = runtime.block_on(monsters.spawn(tenant, request)).expect("an id is free");
    let (id, monster) = (monster.id, wounded(monster));
    let mut json = Vec::new();
    Json::<Monster>::encode(&monster, &mut json).expect("a monster has a JSON form");
    let scope = store.scope(tenant);
    runtime.block_on(scope.put(&MONSTER.key(id), monster.clone())).expect("it fits");

    time(&format!("JSON of {} bytes, parse", json.len()), || {
        black_box(Json::<Monster>::decode(black_box(&json))).expect("a monster");
    });
    let mut out = Vec::with_capacity(2_048);
    time("the same, write", || {
        out.clear();
        Json::<Monster>::encode(black_box(&monster), &mut out).expect("a monster has a JSON form");
    });
    time("a scope", || drop(black_box(store.scope(tenant))));
    time("an empty transaction", || {
        runtime.block_on(scope.transact(|_| Ok::<_, Error>(()))).expect("it commits");
    });
    time("a transaction that reads and writes the monster, without a scope", || {
        let transaction = scope.transact(move |tx| {
            let monster = tx.get(&MONSTER.key(id))?.expect("it is there");
            tx.put(&MONSTER.key(id), &monster)
        });
        runtime.block_on(transaction).expect("it commits");
    });
    runtime.block_on(async {
        let mut best = f64::INFINITY;
        for _ in 0..5_000 {
            // Few hits between two resets: the record must stay as long as it is.
            let start = Instant::now();
            for character in 0..4 {
                monsters.damage(tenant, id, CharacterId(character), 1).await.expect("it hits");
            }
            best = best.min(start.elapsed().as_nanos() as f64 / 4.0);
            scope.put(&MONSTER.key(id), monster.clone()).await.expect("it fits");
        }
        println!("{best:9.1} ns  damage, the whole call, two entries more on average");
    });
}
