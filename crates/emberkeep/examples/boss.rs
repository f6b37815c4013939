//! One winner: however many players hit at once, one of them kills the boss. (This is the README's example.)

use emberkeep::prelude::*;

partition! {
    /// A match. All keys of a transaction belong to one match.
    struct Match(Name) as "match";
}
record! {
    /// A boss. Fields that other services add are preserved.
    struct Boss { hp: u32 => "hp", killer: Option<String> => "killer" optional }
}
family! {
    /// The boss of a match; it expires an hour after the last write.
    BOSS = "boss:{match}" {
        kind: Text<Json<Boss>>, partition: Match, parts: (), ttl: refresh(3_600_000), owner: "raid"
    }
}

/// One hit. `true` for the one player who killed the boss.
async fn hit(game: &Scope<Match>, player: &'static str, damage: u32) -> Result<bool, Error> {
    game.transact(move |tx| {
        let Some(mut boss) = tx.get(&BOSS.key())?.filter(|boss| boss.hp > 0) else { return Ok(false) };
        boss.hp = boss.hp.saturating_sub(damage);
        boss.killer = (boss.hp == 0).then(|| player.to_owned());
        tx.put(&BOSS.key(), &boss)?;
        Ok(boss.hp == 0)
    })
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::open("memory:").await?; // or "file:DIR", "redis://…", "redis+cluster://…"
    let game = store.scope(Match(Name::new("m1").expect("a word without a colon")));
    game.put(&BOSS.key(), Boss::new(100)).await?;
    for player in ["ann", "bob", "eve"] {
        println!("{player} killed the boss: {}", hit(&game, player, 60).await?);
    }
    let killer = game.get(&BOSS.key()).await?.and_then(|boss| boss.killer);
    assert_eq!(killer.as_deref(), Some("bob"));
    Ok(())
}
