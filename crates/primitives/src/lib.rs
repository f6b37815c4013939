//! Building blocks of games, one file each, on any engine.
