//! Games built only on what every user of the crate can use.
//!
//! **Responsible for**: per game a folder of one shape: `schema` (its key families), `model` (what it stores),
//! `rules` (pure functions), `service` (its operations, each one atomic transaction).
//!
//! **Not responsible for**: any engine by name, any protocol. Games do not know each other; what two of them
//! share about a world stands in [`world`].

mod family_scan;
pub mod monsters;
pub mod party;
pub mod reactors;
mod type_guard;
pub mod world;

use emberkeep_schema::Schema;

/// The families of all games.
pub fn schema() -> Schema {
    Schema::join([monsters::schema(), party::schema(), reactors::schema()])
        .expect("no key belongs to two games, a test holds")
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_key_belongs_to_two_games() {
        assert!(!super::schema().families().is_empty());
    }
}
