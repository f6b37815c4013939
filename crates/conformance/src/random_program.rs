//! Random programs: transactions of reads and writes on a few keys, repeatable by their seed, and shortened
//! when they fail.

use crate::builders::*;
use crate::model::Op;
use crate::rng::Rng;
use bytes::Bytes;
use emberkeep_hot::command::{Expiry, LexBound, Read, ScoreBound, Write, ZSlice};

/// Keys of a program. The last one is a sorted set of equal scores, for byte ranges.
pub const KEYS: usize = 6;
/// The key of equal scores.
const EQUAL: usize = KEYS - 1;
/// Life of the longest deadline that a program sets, from the program's start.
pub const LIFE_MS_MAX: i64 = 1_000;

/// One thing that happens.
#[derive(Debug, Clone)]
pub enum Event {
    /// Operations in one transaction.
    Transaction(Vec<Op>),
    /// Lets milliseconds pass.
    Pass(i64),
}

/// A program of this many events. Deadlines are `start` plus less than [`LIFE_MS_MAX`].
pub fn program(seed: u64, events: usize, start: i64) -> Vec<Event> {
    let mut generator = Generator { rng: Rng::new(seed), start, passed: 0 };
    (0..events).map(|_| generator.event()).collect()
}

/// Shorter programs to try when one fails: without the event, then without each operation of it.
pub fn shorter_at(program: &[Event], at: usize) -> Vec<Vec<Event>> {
    let without = |change: &dyn Fn(&mut Vec<Event>)| {
        let mut copy = program.to_vec();
        change(&mut copy);
        copy
    };
    let mut shorter = vec![without(&|copy| drop(copy.remove(at)))];
    if let Event::Transaction(ops) = &program[at] {
        for op in 0..ops.len() {
            shorter.push(without(&|copy| {
                if let Event::Transaction(ops) = &mut copy[at] {
                    ops.remove(op);
                }
            }));
        }
    }
    shorter
}

struct Generator {
    rng: Rng,
    start: i64,
    passed: i64,
}

impl Generator {
    fn event(&mut self) -> Event {
        if self.rng.one_in(8) {
            let ms = self.rng.between(1, 80);
            self.passed += ms;
            return Event::Pass(ms);
        }
        let count = self.rng.between(1, 7);
        Event::Transaction((0..count).map(|_| self.op()).collect())
    }

    fn op(&mut self) -> Op {
        let key = self.rng.below(KEYS);
        if self.rng.one_in(2) { Op::Read(key, self.read(key)) } else { Op::Write(key, self.write(key)) }
    }

    fn deadline(&mut self) -> i64 {
        self.start + self.passed + self.rng.between(1, LIFE_MS_MAX / 4)
    }

    fn name(&mut self) -> Bytes {
        let names: [&str; 7] = ["a", "b", "c", "d", "1", "-2", ""];
        b(names[self.rng.below(names.len())])
    }

    fn names(&mut self) -> Vec<Bytes> {
        (0..self.rng.between(1, 3)).map(|_| self.name()).collect()
    }

    fn value(&mut self) -> f64 {
        *self.rng.pick(&[0.0, 1.0, 1.5, -3.25, 0.1, 9007199254740992.0, f64::INFINITY, f64::NEG_INFINITY])
    }

    /// Mostly a number, so that increments get somewhere.
    fn field(&mut self) -> Bytes {
        if self.rng.one_in(6) { self.name() } else { b(&self.rng.between(-50, 50).to_string()) }
    }

    fn increment(&mut self) -> f64 {
        *self.rng.pick(&[0.0, 1.0, -1.0, 0.1, -3.25, 1e300, 9007199254740992.0])
    }

    fn bound(&mut self) -> ScoreBound {
        let value = self.value();
        if self.rng.one_in(2) { incl(value) } else { excl(value) }
    }

    fn lex(&mut self) -> LexBound {
        match self.rng.below(4) {
            0 => LexBound::Min,
            1 => LexBound::Max,
            2 => LexBound::Included(self.name()),
            _ => LexBound::Excluded(self.name()),
        }
    }

    fn place(&mut self) -> i64 {
        self.rng.between(-5, 5)
    }

    /// Mostly of the key's usual type, so that programs get somewhere; sometimes of any.
    fn kind(&mut self, key: usize) -> usize {
        if self.rng.one_in(12) { self.rng.below(5) } else { key % 5 }
    }

    fn read(&mut self, key: usize) -> Read {
        if key == EQUAL {
            return self.read_equal();
        }
        match (self.kind(key), self.rng.below(5)) {
            (_, 0) => self.rng.pick(&[Read::Exists, Read::ExpireTime]).clone(),
            (0, _) => Read::Get,
            (1, 1 | 2) => Read::HGet(self.name()),
            (1, 3) => Read::HLen,
            (1, _) => Read::HGetAll,
            (2, 1 | 2) => Read::SIsMember(self.name()),
            (2, 3) => Read::SCard,
            (2, _) => Read::SMembers,
            (3, choice) => self.read_scores(choice),
            (_, 1) => Read::LLen,
            (_, _) => Read::LRange(self.place(), self.place()),
        }
    }

    fn read_scores(&mut self, choice: usize) -> Read {
        let reverse = self.rng.one_in(2);
        match choice {
            1 if reverse => Read::ZRank(self.name(), self.rng.one_in(2)),
            1 => Read::ZScore(self.name()),
            2 => Read::ZRange(ZSlice::Rank(self.place(), self.place()), reverse),
            3 => Read::ZRange(ZSlice::Score(self.bound(), self.bound(), self.rng.below(4)), reverse),
            _ if reverse => Read::ZCard,
            _ => Read::ZCount(self.bound(), self.bound()),
        }
    }

    fn read_equal(&mut self) -> Read {
        match self.rng.below(5) {
            0 => Read::ZLexCount(self.lex(), self.lex()),
            1 => Read::ZCard,
            2 => Read::ZRank(self.name(), self.rng.one_in(2)),
            _ => Read::ZRange(ZSlice::Lex(self.lex(), self.lex(), self.rng.below(5)), self.rng.one_in(2)),
        }
    }

    fn write(&mut self, key: usize) -> Write {
        match self.rng.below(14) {
            0 => return Write::Del,
            1 => return Write::ExpireAt(self.deadline()),
            2 => return Write::Persist,
            3 | 4 => return Write::ExpireAtIfNone(self.deadline()),
            _ => {}
        }
        if key == EQUAL {
            let names = self.names();
            let pairs = || names.iter().map(|name| (name.clone(), score(7.0))).collect();
            return if self.rng.one_in(3) { Write::ZRem(names) } else { Write::ZAdd(pairs()) };
        }
        match self.kind(key) {
            0 => self.write_text(),
            1 if self.rng.one_in(3) => Write::HDel(self.names()),
            1 if self.rng.one_in(3) => Write::HIncrBy(self.name(), self.rng.between(-9, 9)),
            1 => Write::HSet(self.names().into_iter().map(|name| (name, self.field())).collect()),
            2 if self.rng.one_in(3) => Write::SRem(self.names()),
            2 => Write::SAdd(self.names()),
            3 if self.rng.one_in(3) => Write::ZRem(self.names()),
            3 if self.rng.one_in(3) => Write::ZIncrBy(self.name(), score(self.increment())),
            3 => Write::ZAdd(self.names().into_iter().map(|name| (name, score(self.value()))).collect()),
            _ => self.write_list(),
        }
    }

    fn write_text(&mut self) -> Write {
        let expiry = match self.rng.below(3) {
            0 => Expiry::Keep,
            1 => Expiry::Never,
            _ => Expiry::At(self.deadline()),
        };
        match self.rng.below(5) {
            4 => {
                let first = ["", "a,", "1,-2,", ","][self.rng.below(4)];
                Write::SetIfGreater(b(&format!("{first}{}", self.rng.between(-50, 50))), expiry)
            }
            0 => Write::Set(self.name(), expiry),
            1 => Write::Set(b(&self.rng.between(-50, 50).to_string()), expiry),
            _ => Write::IncrBy(self.rng.between(-9, 9)),
        }
    }

    fn write_list(&mut self) -> Write {
        match self.rng.below(7) {
            6 => Write::LSet(self.rng.between(-3, 2), self.name()),
            0 => Write::LPop(self.rng.between(1, 3) as usize),
            1 => Write::RPop(self.rng.between(1, 3) as usize),
            2 => Write::LTrim(self.place(), self.place()),
            3 => Write::LPush(self.names()),
            _ => Write::RPush(self.names()),
        }
    }
}
