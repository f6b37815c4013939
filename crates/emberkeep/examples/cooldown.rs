//! Time: a cooldown that a key's TTL measures, on a clock that the program moves. Nothing sleeps.

use emberkeep::hot::embedded::{Clock, ManualClock};
use emberkeep::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const FIREBALL: Duration = Duration::from_secs(8);

partition! {
    /// A zone. Its cooldowns are changed together.
    struct Zone(Name) as "zone";
}
family! {
    /// Exists while a spell of a character cools down. Each spell says for how long.
    COOLDOWN = "cooldown:{zone}:{character}:{spell}" {
        kind: Text<Number<i64>>, partition: Zone, parts: (character: u32, spell: Name), ttl: given, owner: "spells"
    }
}
family! {
    /// Where a character stands; forgotten when it has not moved for a minute.
    POSITION = "position:{zone}:{character}" {
        kind: Text<Json<(f64, f64)>>, partition: Zone, parts: (character: u32), ttl: refresh(60_000), owner: "moves"
    }
}

/// Casts the spell, or says how many milliseconds are left. Two casts at once: one succeeds.
async fn cast(zone: &Scope<Zone>, character: u32, spell: Name) -> Result<Result<(), i64>, Error> {
    zone.transact(move |tx| {
        let key = COOLDOWN.key(character, &spell);
        if let Some(end_ms) = tx.deadline(&key)? {
            return Ok(Err(end_ms - tx.now()));
        }
        tx.put_for(&key, &1, FIREBALL)?;
        Ok(Ok(()))
    })
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::at(1_000_000);
    let engine = Embedded::builder().clock(Clock::Manual(clock.clone())).open()?;
    let zone = Store::new(Arc::new(engine)).scope(Zone(Name::new("north").expect("a word")));
    let fireball = Name::new("fireball").expect("a word");
    zone.put(&POSITION.key(7), (1.5, -2.0)).await?;

    assert_eq!(cast(&zone, 7, fireball.clone()).await?, Ok(()));
    clock.advance(3_000);
    let left_ms = cast(&zone, 7, fireball.clone()).await?.expect_err("it still cools down");
    println!("3 s later the fireball needs {left_ms} ms more");
    assert_eq!(left_ms, 5_000);
    clock.advance(5_001);
    println!("8 s later it is cast again: {}", cast(&zone, 7, fireball).await?.is_ok());

    clock.advance(60_000);
    assert_eq!(zone.get(&POSITION.key(7)).await?, None, "the position has expired");
    Ok(())
}
