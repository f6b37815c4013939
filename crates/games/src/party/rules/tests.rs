//! The rules of a room, also on random games.
