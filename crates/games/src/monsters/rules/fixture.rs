//! A monster for the tests of the rules.

use crate::monsters::{Monster, MonsterId};
use uuid::Uuid;

pub(super) fn monster(hp: u32) -> Monster {
    Monster::new(MonsterId(1_000_000_000), 0, 1, 100_000_000, Uuid::nil(), hp, hp, 100_100)
}
