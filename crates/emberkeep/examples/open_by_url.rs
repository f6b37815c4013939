//! Opening: one program, and a URL that says where its state lives.
//!
//! `cargo run --example open_by_url -- redis://127.0.0.1:6379` counts its own runs on a server.

use emberkeep::prelude::*;

partition! {
    /// The whole game in one partition.
    struct Game = "game";
}
family! {
    /// How often the program ran.
    RUNS = "runs" { kind: Text<Number<i64>>, partition: Game, parts: (), ttl: persistent, owner: "example" }
}

/// Opens a store, counts, and closes it: what was answered is on disk then.
async fn count(url: &str) -> Result<i64, OpenError> {
    let store = Store::open(url).await?;
    let game = store.scope(Game);
    let runs = game
        .transact(|tx| {
            let runs = tx.get(&RUNS.key())?.unwrap_or(0) + 1;
            tx.put(&RUNS.key(), &runs)?;
            Ok::<_, Error>(runs) // Nothing else says which error this closure has.
        })
        .await?;
    store.close().await?;
    Ok(runs)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(url) = std::env::args().nth(1) {
        println!("run {}", count(&url).await?);
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("emberkeep-example-{}", std::process::id()));
    let durable = format!("file:{}?durability=always", folder.display());
    assert_eq!((count("memory:").await?, count("memory:").await?), (1, 1));
    assert_eq!((count(&durable).await?, count(&durable).await?), (1, 2));
    println!("a folder remembers, memory does not");
    // The folder is ours alone.
    std::fs::remove_dir_all(&folder).expect("the folder that was just used");

    for wrong in ["postgres://ann:secret@db", "file:", "file:data?durability=often"] {
        let error = Store::open(wrong).await.err().expect("not the URL of a store");
        println!("{error}");
        assert!(!error.to_string().contains("secret"));
    }
    Ok(())
}
