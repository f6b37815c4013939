//! The words of a declaration: what the macros make of names, lengths of time, days, orders and kinds of writes.

use super::check::same;
use super::declaration::{Order, Writes};
use super::time::Day;

/// A number for a column's name, by which the macros find the type of a column.
pub const fn name_number(name: &str) -> u64 {
    // FNV-1a: two columns of one table with the same number do not compile.
    let bytes = name.as_bytes();
    let (mut number, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        number = (number ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    number
}

/// The milliseconds of a length of time in a declaration.
pub const fn length_ms(unit: &str, count: i64) -> i64 {
    let unit_ms = if same(unit, "seconds") {
        1_000
    } else if same(unit, "minutes") {
        60_000
    } else if same(unit, "hours") {
        3_600_000
    } else if same(unit, "days") {
        86_400_000
    } else {
        panic!("a length of time is seconds(n), minutes(n), hours(n) or days(n)")
    };
    match count.checked_mul(unit_ms) {
        Some(ms) => ms,
        None => panic!("this length of time is too large"),
    }
}

/// The day of a text in a declaration.
pub const fn day_of(text: &str) -> Day {
    match Day::parse(text) {
        Some(day) => day,
        None => panic!("after `since` stands a day such as \"2024-01-31\""),
    }
}

/// The order that a word in a declaration stands for.
pub const fn order_of(word: &str) -> Order {
    if same(word, "asc") {
        Order::Ascending
    } else if same(word, "desc") {
        Order::Descending
    } else {
        panic!("after a clustering column stands its order: `asc` or `desc`")
    }
}

/// The kind of writes that a word in a declaration stands for.
pub const fn writes_of(word: &str) -> Writes {
    if same(word, "events") {
        Writes::Events
    } else if same(word, "rows") {
        Writes::Rows
    } else if same(word, "versioned") {
        Writes::Versioned
    } else if same(word, "conditional") {
        Writes::Conditional
    } else {
        panic!("after `writes:` stands how rows change: `events`, `rows`, `versioned` or `conditional`")
    }
}
