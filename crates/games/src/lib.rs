//! Games built only on the public API of the other crates.
//!
//! **Responsible for**: one folder per game: `schema` (key families), `model` (stored types), `rules` (pure functions, where a
//! game has any), `service` (operations, each an atomic transaction), `archive` (operations on history).
//!
//! **Not responsible for**: engines and protocols. Games do not depend on each other; what two of them share
//! is in [`world`].
//!
//! Operations return boxed futures. An `async fn` would be compiled again in every crate that awaits it, with all
//! transactions inside.

pub mod darkages;
mod family_scan;
pub mod galaxy;
mod invisible;
pub mod monsters;
pub mod party;
pub mod reactors;
mod type_guard;
pub mod world;

use emberkeep_history::outbox::{Consumer, DrainError};
use emberkeep_history::{History, HistorySchema};
use emberkeep_hot::Store;
use emberkeep_schema::Schema;

/// The key families of all games.
pub fn schema() -> Schema {
    Schema::join([
        darkages::schema(),
        galaxy::schema(),
        monsters::schema(),
        party::schema(),
        reactors::schema(),
    ])
    .expect("no key belongs to two games, a test holds")
}

/// The history tables of all games.
pub fn history_schema() -> HistorySchema {
    darkages::history::schema()
}

/// The consumers of the logs of all games: what a server runs so that events reach history.
///
/// A game with logs has such a function of a scope and of history.
pub fn consumers(store: &Store, history: &History) -> Result<Vec<Consumer>, DrainError> {
    consumers_of_shards(store, history, &darkages::Shards::default())
}

/// The consumers of all logs where DarkAges has these shards.
pub fn consumers_of_shards(
    store: &Store,
    history: &History,
    shards: &darkages::Shards,
) -> Result<Vec<Consumer>, DrainError> {
    let mut consumers = Vec::new();
    for shard in shards.partitions(store.key_layout()) {
        consumers.extend(darkages::consumers(&store.scope(shard), history)?);
    }
    consumers.push(darkages::boards::Boards::new(store).consumer(history)?);
    Ok(consumers)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_key_belongs_to_two_games() {
        assert!(!super::schema().families().is_empty());
    }
}
