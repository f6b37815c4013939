//! `Store::open` with a folder and with servers: what it opens, and what it says when it cannot.

use emberkeep::prelude::*;
use emberkeep::testing::{block_on, redis, scratch, shared_cluster, shared_redis};

partition! {
    /// The game.
    struct Game = "game";
}
family! {
    /// A number.
    NUMBER = "number" { kind: Text<Number<i64>>, partition: Game, parts: (), ttl: persistent, owner: "test" }
}

async fn count(url: &str) -> Result<i64, OpenError> {
    let store = Store::open(url).await?;
    store.scope(Game).transact(|tx| tx.incr_by(&NUMBER.key(), 1)).await?;
    let number = store.scope(Game).get(&NUMBER.key()).await?.unwrap_or(0);
    store.close().await?;
    Ok(number)
}

#[test]
fn a_folder_is_made_and_remembers() {
    let folder = scratch();
    let url = format!("file:{}/deep/data?durability=always", folder.path().display());
    assert_eq!(block_on(count(&url)), Ok(1));
    assert_eq!(block_on(count(&url)), Ok(2));
}

#[test]
fn a_folder_that_is_a_file_is_named() {
    let folder = scratch();
    let file = folder.join("data");
    std::fs::write(&file, "not a folder").expect("a file of ours");
    let error = block_on(Store::open(&format!("file:{}", file.display()))).err().expect("no folder");
    assert!(matches!(error, OpenError::Store(Error::Folder { .. })), "{error:?}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn servers_are_opened_by_their_url() {
    let Some(server) = shared_redis() else { return };
    assert_eq!(block_on(count(&server.fresh_db())), Ok(1));
    let Some(cluster) = shared_cluster() else { return };
    assert_eq!(block_on(count(&cluster.url())), Ok(1));
}

#[test]
fn a_server_that_is_gone_is_named_without_the_password() {
    let Some(server) = redis() else { return };
    server.kill9();
    let error =
        block_on(Store::open(&format!("redis://joe:s3cret@{}", server.address()))).err().expect("gone");
    assert!(matches!(error, OpenError::Store(Error::Unavailable { .. })), "{error:?}");
    let answer = error.to_string();
    assert!(answer.contains(&server.address()) && !answer.contains("s3cret"), "{answer}");
}

/// The closure does not name its error: `Error` converts from nothing else. A second conversion would end that.
#[test]
fn the_error_of_a_closure_is_inferred_where_the_function_returns_error() {
    async fn next(store: &Store) -> Result<i64, Error> {
        let number = store
            .scope(Game)
            .transact(|tx| {
                let number = tx.get(&NUMBER.key())?.unwrap_or(0);
                Ok(number)
            })
            .await?;
        Ok(number + 1)
    }
    let store = block_on(Store::open("memory:")).expect("nothing can fail");
    assert_eq!(block_on(next(&store)), Ok(1));
}
