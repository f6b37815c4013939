//! A linearizability checker (Wing and Gong, with Lowe's cache): is there an order of the calls that
//! respects real time and in which every result is right?
//!
//! A call may be placed next if no call that is still to be placed had returned before it was made. The
//! search goes depth first; a set of placed calls with the same state is not tried twice.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Instant;

/// One call with its result.
#[derive(Debug, Clone)]
pub struct Call<O> {
    /// When it was made.
    pub invoked: Instant,
    /// When its result was known.
    pub returned: Instant,
    /// What it did and answered.
    pub op: O,
}

/// The sequential specification of an object.
pub trait Spec {
    /// What the object holds between two calls.
    type State: Clone + Eq + Hash;
    /// A call with its result.
    type Op;

    /// The state at the start.
    fn start(&self) -> Self::State;

    /// The state after the call, or `None` if its result is impossible in this state.
    fn apply(&self, state: &Self::State, op: &Self::Op) -> Option<Self::State>;
}

/// Whether the history can be put in an order.
pub fn is_linearizable<S: Spec>(spec: &S, history: &[Call<S::Op>]) -> bool {
    let mut calls: Vec<&Call<S::Op>> = history.iter().collect();
    calls.sort_by_key(|call| call.invoked);
    let search = Search { spec, calls, tried: HashSet::new(), placed: vec![0; history.len().div_ceil(64)] };
    search.run()
}

struct Search<'a, S: Spec> {
    spec: &'a S,
    /// By the time they were made.
    calls: Vec<&'a Call<S::Op>>,
    tried: HashSet<(Vec<u64>, S::State)>,
    placed: Vec<u64>,
}

impl<S: Spec> Search<'_, S> {
    fn run(mut self) -> bool {
        // Call, and the state before it; a stack of our own, because histories are long.
        let mut stack: Vec<(usize, S::State)> = Vec::new();
        let mut state = self.spec.start();
        let mut from = 0;
        while stack.len() < self.calls.len() {
            match self.next(from, &state) {
                Some((call, after)) => {
                    self.set(call, true);
                    stack.push((call, std::mem::replace(&mut state, after)));
                    from = 0;
                }
                None => {
                    let Some((call, before)) = stack.pop() else { return false };
                    self.set(call, false);
                    state = before;
                    from = call + 1;
                }
            }
        }
        true
    }

    /// The first call from `from` on that may come next and leads to something new.
    fn next(&mut self, from: usize, state: &S::State) -> Option<(usize, S::State)> {
        let open = |at: &usize| !self.is_placed(*at);
        let first_return = (0..self.calls.len()).filter(open).map(|at| self.calls[at].returned).min()?;
        for at in from..self.calls.len() {
            if self.calls[at].invoked > first_return {
                return None;
            }
            if self.is_placed(at) {
                continue;
            }
            let Some(after) = self.spec.apply(state, &self.calls[at].op) else { continue };
            self.set(at, true);
            let new = self.tried.insert((self.placed.clone(), after.clone()));
            self.set(at, false);
            if new {
                return Some((at, after));
            }
        }
        None
    }

    fn is_placed(&self, call: usize) -> bool {
        self.placed[call / 64] >> (call % 64) & 1 == 1
    }

    fn set(&mut self, call: usize, placed: bool) {
        let bit = 1 << (call % 64);
        if placed { self.placed[call / 64] |= bit } else { self.placed[call / 64] &= !bit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A register: `Write(v)`, `Read(v)`.
    struct Register;
    #[derive(Debug, Clone)]
    enum Op {
        Write(i64),
        Read(i64),
        Cas(i64, i64, bool),
    }

    impl Spec for Register {
        type State = i64;
        type Op = Op;
        fn start(&self) -> i64 {
            0
        }
        fn apply(&self, state: &i64, op: &Op) -> Option<i64> {
            match op {
                Op::Write(value) => Some(*value),
                Op::Read(value) => (value == state).then_some(*state),
                Op::Cas(from, to, true) => (from == state).then_some(*to),
                Op::Cas(from, _, false) => (from != state).then_some(*state),
            }
        }
    }

    fn history(calls: &[(u64, u64, Op)]) -> Vec<Call<Op>> {
        let base = Instant::now();
        let at = |ms: u64| base + Duration::from_millis(ms);
        let call =
            |(from, to, op): &(u64, u64, Op)| Call { invoked: at(*from), returned: at(*to), op: op.clone() };
        calls.iter().map(call).collect()
    }

    fn accepts(calls: &[(u64, u64, Op)]) -> bool {
        is_linearizable(&Register, &history(calls))
    }

    #[test]
    fn what_can_be_ordered_is_accepted() {
        assert!(accepts(&[]));
        assert!(accepts(&[(0, 1, Op::Write(1)), (2, 3, Op::Read(1))]));
        // Overlapping: the read may come before or after the write.
        assert!(accepts(&[(0, 9, Op::Write(1)), (1, 2, Op::Read(0)), (3, 4, Op::Read(1))]));
        assert!(accepts(&[(0, 9, Op::Cas(0, 1, true)), (0, 9, Op::Cas(0, 2, false)), (10, 11, Op::Read(1))]));
    }

    #[test]
    fn a_stale_read_is_rejected() {
        assert!(!accepts(&[(0, 1, Op::Write(1)), (2, 3, Op::Read(0))]));
        assert!(!accepts(&[(0, 9, Op::Write(1)), (1, 2, Op::Read(1)), (3, 4, Op::Read(0))]), "it went back");
    }

    #[test]
    fn two_winners_are_rejected() {
        assert!(!accepts(&[(0, 9, Op::Cas(0, 1, true)), (0, 9, Op::Cas(0, 2, true))]));
    }

    #[test]
    fn a_lost_write_is_rejected() {
        let lost = [(0, 9, Op::Write(1)), (0, 9, Op::Write(2)), (10, 11, Op::Read(1)), (12, 13, Op::Read(2))];
        assert!(!accepts(&lost));
    }

    #[test]
    fn a_long_history_ends_soon() {
        let mut calls = Vec::new();
        for n in 0..120 {
            calls.push((n * 10, n * 10 + 45, Op::Write(n as i64)));
            calls.push((n * 10 + 46, n * 10 + 48, Op::Read(n as i64)));
        }
        // Whatever the answer, the search ends; this one cannot be ordered.
        calls.push((1_300, 1_301, Op::Read(-1)));
        assert!(!accepts(&calls));
    }
}
