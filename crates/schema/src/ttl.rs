//! TTL policies: what a write does to a key's deadline, decided once per family.

use std::time::Duration;

/// The policy of a family, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ttl {
    /// The key never expires.
    Persistent,
    /// The first write sets the deadline, later writes keep it.
    Fixed {
        /// Life in milliseconds from the first write.
        ms: i64,
    },
    /// Every write moves the deadline.
    Refresh {
        /// Life in milliseconds from the last write.
        ms: i64,
    },
    /// The caller gives the deadline with each write.
    Given,
}

mod sealed {
    pub trait Sealed {}
}

/// The policy of a family, as a type, so that a write without its TTL does not compile.
pub trait TtlPolicy: sealed::Sealed + Send + Sync + 'static {}

/// A policy under which a write needs nothing from its caller: all but [`Given`].
#[diagnostic::on_unimplemented(
    message = "this family declares `ttl: given`: a write must say how long its value lives",
    label = "a write without a TTL",
    note = "use the write that takes a TTL, or declare another policy for the family"
)]
pub trait Automatic: TtlPolicy {}

/// Marks a family of [`Ttl::Persistent`]: its writes compile without a TTL.
#[derive(Clone, Copy, Debug)]
pub struct Persistent;

/// Marks a family of [`Ttl::Fixed`]: its writes compile without a TTL.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

/// Marks a family of [`Ttl::Refresh`]: its writes compile without a TTL.
#[derive(Clone, Copy, Debug)]
pub struct Refresh;

/// Marks a family of [`Ttl::Given`]: a write without a TTL does not compile.
#[derive(Clone, Copy, Debug)]
pub struct Given;

macro_rules! policies {
    ($($policy:ident)*) => { $(
        impl sealed::Sealed for $policy {}
        impl TtlPolicy for $policy {}
    )* };
}

policies! { Persistent Fixed Refresh Given }

impl Automatic for Persistent {}
impl Automatic for Fixed {}
impl Automatic for Refresh {}

/// Lets `ttl: fixed(…)` take milliseconds or a [`Duration`]: traits cannot do that in a constant, inherent methods of
/// one name can.
///
/// The compiler looks for a method that takes `self`, then `&self`, then `&mut self`. So a plain number, which could be
/// of any integer type, is an `i64`, and constants of type `u64` and `u32` are taken, too. The method's name is
/// what the error says about all other types.
#[doc(hidden)]
pub struct Milliseconds<T>(pub T);

impl Milliseconds<i64> {
    /// The milliseconds, if they are more than 0.
    pub const fn from_i64_u64_u32_or_duration(self) -> i64 {
        assert!(self.0 > 0, "the TTL of a family must be longer than 0 ms; write `ttl: persistent` for none");
        self.0
    }
}

impl Milliseconds<Duration> {
    /// The whole milliseconds of the duration, if they are more than 0 and fit `i64`.
    pub const fn from_i64_u64_u32_or_duration(self) -> i64 {
        checked(self.0.as_millis())
    }
}

impl Milliseconds<u64> {
    /// The milliseconds, if they are more than 0 and fit `i64`.
    pub const fn from_i64_u64_u32_or_duration(&self) -> i64 {
        checked(self.0 as u128)
    }
}

impl Milliseconds<u32> {
    /// The milliseconds, if they are more than 0.
    pub const fn from_i64_u64_u32_or_duration(&mut self) -> i64 {
        checked(self.0 as u128)
    }
}

const fn checked(ms: u128) -> i64 {
    assert!(ms <= i64::MAX as u128, "the TTL of a family is longer than i64 milliseconds");
    Milliseconds(ms as i64).from_i64_u64_u32_or_duration()
}

impl Ttl {
    /// The policy in words, for the documents.
    pub fn in_words(self) -> String {
        match self {
            Ttl::Persistent => "persistent".to_owned(),
            Ttl::Fixed { ms } => format!("{} from the first write", span_in_words(ms)),
            Ttl::Refresh { ms } => format!("{} from the last write", span_in_words(ms)),
            Ttl::Given => "given by the caller".to_owned(),
        }
    }
}

/// A span in the largest unit that divides it, because 86400000 is hard to read.
fn span_in_words(ms: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match UNITS.iter().find(|(unit, _)| ms % unit == 0) {
        Some((unit, name)) => format!("{} {name}", ms / unit),
        None => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_like_a_sentence() {
        assert_eq!(Ttl::Fixed { ms: 1_800_000 }.in_words(), "30 min from the first write");
        assert_eq!(Ttl::Refresh { ms: 3_600_000 }.in_words(), "1 h from the last write");
        assert_eq!(Ttl::Refresh { ms: 1_500 }.in_words(), "1500 ms from the last write");
        assert_eq!(Ttl::Fixed { ms: 172_800_000 }.in_words(), "2 d from the first write");
    }

    #[test]
    fn milliseconds_and_durations_are_taken() {
        const PLAIN: i64 = Milliseconds(1500).from_i64_u64_u32_or_duration();
        const SPAN: i64 = Milliseconds(Duration::from_millis(1500)).from_i64_u64_u32_or_duration();
        const UNSIGNED: i64 = Milliseconds(1500_u64).from_i64_u64_u32_or_duration();
        const SHORT: i64 = Milliseconds(1500_u32).from_i64_u64_u32_or_duration();
        assert_eq!([PLAIN, SPAN, UNSIGNED, SHORT], [1500; 4]);
    }
}
