//! One call of the commit script under construction: keys and words once each, and a program that names them by number.

use super::program::{Words, pack};
use super::words::{found_name, read_words, score_g17, write_name, write_words};
use crate::inferred::shows_absence;
use crate::limits::*;
use crate::merge::{early_deadline, postponed};
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use redis::Cmd;
use std::time::Duration;

/// Arguments before the first word.
const WORDS_FROM: u32 = 13;
/// Room for the arguments of the envelope.
const ENVELOPE_BYTES_USUAL: usize = 256;
/// What a turn key has more than the key beside it.
const OWN_KEY_BYTES_USUAL: usize = 64;

/// What a read is expected to give, as the script calls it.
mod tag {
    pub(super) const STRING: u32 = 1;
    pub(super) const NIL: u32 = 2;
    pub(super) const INTEGER: u32 = 3;
    pub(super) const ELEMENTS: u32 = 4;
    pub(super) const SCORE: u32 = 5;
    pub(super) const WRONG: u32 = 6;
    pub(super) const MANY: u32 = 7;
    pub(super) const ARRAY: u32 = 8;
    pub(super) const DIGEST: u32 = 9;
}

/// Arguments of one call under construction.
#[derive(Default)]
pub(crate) struct Call {
    pub(super) keys: Vec<RawKey>,
    /// So many of the keys, the first ones, have turn keys.
    pub(super) with_turns: usize,
    /// For the script of swaps, not for that of transactions.
    pub(super) swaps: bool,
    /// Strings that are only read, by the script of swaps.
    pub(super) fetched: Vec<RawKey>,
    index: HashMap<RawKey, u32, RandomState>,
    pub(super) words: Words,
    program: Vec<u32>,
    shapes: Vec<u32>,
    shape_of: HashMap<Read, u32, RandomState>,
    /// Stands before a text of which a digest is taken: the process, which only this one and the server know. Whoever
    /// chooses values cannot choose two of equal digests without it.
    digest_prefix: String,
}

/// What stands around the groups of a call.
pub(crate) struct Envelope<'a> {
    /// Turn key for a data key.
    pub(crate) turn_key: &'a (dyn Fn(&RawKey) -> Vec<u8> + Sync),
    /// Receipt key and sequence; `None` when nothing is written.
    pub(crate) receipt: Option<(&'a [u8], u64)>,
    /// The client's estimate of the server's time, if a body used it or nothing else tells a late copy of the commit.
    pub(crate) estimate_ms: Option<i64>,
    /// Largest difference of that from the server's time.
    pub(crate) allowance: Duration,
    /// Length of a lease that is asked for.
    pub(crate) lease: Duration,
    /// Ask for the time even if no body used it.
    pub(crate) wants_time: bool,
    /// Find out whether our user may run all commands.
    pub(crate) check_rights: bool,
    pub(crate) process: &'a str,
    pub(crate) groups: usize,
}

/// One group as the script sees it.
pub(crate) struct GroupWords<'a> {
    pub(crate) ask_turn: bool,
    /// Keys that its transactions may have leases on, by earlier runs.
    pub(crate) leased: Vec<RawKey>,
    pub(crate) reads: &'a [(RawKey, Read, Reply)],
    pub(crate) effects: &'a Effects,
    pub(crate) requirements: Vec<Precondition>,
    pub(crate) log_keys: &'a (RawKey, RawKey),
}

/// How the script is shown a read: strings that are there and keys that are not are compared all at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Text,
    Absent,
    Other,
}

impl Sort {
    fn of((_, read, reply): &(RawKey, Read, Reply)) -> Sort {
        match (read, reply) {
            (Read::Get, Reply::Blob(blob)) if blob.len() <= DIGEST_ABOVE_BYTES => Sort::Text,
            _ if shows_absence(read, reply) => Sort::Absent,
            _ => Sort::Other,
        }
    }
}

/// Reads in the order in which the script answers them.
pub(crate) fn in_order(mut reads: Vec<(RawKey, Read, Reply)>) -> Vec<(RawKey, Read, Reply)> {
    reads.sort_by_key(Sort::of);
    reads
}

impl Call {
    /// A call of these groups, then of the fetches.
    pub(crate) fn of_groups(groups: &[GroupWords<'_>], fetches: &[(RawKey, Read)], process: &str) -> Call {
        let mut call = Call { digest_prefix: process.to_owned(), ..Call::default() };
        for group in groups {
            for (key, _) in &group.effects.writes {
                call.key(key);
            }
            // A turn is asked for on whatever has changed, also if it is only read.
            for (key, ..) in group.reads.iter().filter(|_| group.ask_turn) {
                call.key(key);
            }
            group.leased.iter().for_each(|key| {
                call.key(key);
            });
        }
        call.with_turns = call.keys.len();
        groups.iter().for_each(|group| call.group(group));
        call.program.push(fetches.len() as u32);
        for (key, read) in fetches {
            let numbers = [call.key(key), call.shape(read)];
            call.program.extend(numbers);
        }
        call
    }

    /// The number of a key.
    fn key(&mut self, key: &RawKey) -> u32 {
        if let Some(number) = self.index.get(key) {
            return *number;
        }
        self.keys.push(key.clone());
        self.index.insert(key.clone(), self.keys.len() as u32);
        self.keys.len() as u32
    }

    fn word(&mut self, word: &[u8]) -> u32 {
        WORDS_FROM + self.words.once(word)
    }

    /// The place of a read's shape.
    fn shape(&mut self, read: &Read) -> u32 {
        if let Some(place) = self.shape_of.get(read) {
            return *place;
        }
        let (name, count, arguments) = read_words(read);
        let place = self.shapes.len() as u32 + 1;
        let shape = [self.word(name.as_bytes()), self.word(count.as_bytes()), arguments.len() as u32];
        self.shapes.extend(shape);
        for argument in arguments {
            let word = self.word(&argument);
            self.shapes.push(word);
        }
        self.shape_of.insert(read.clone(), place);
        place
    }

    fn group(&mut self, group: &GroupWords<'_>) {
        let (effects, first) = (group.effects, self.program.len());
        let texts = group.reads.partition_point(|read| Sort::of(read) == Sort::Text);
        let (texts, rest) = group.reads.split_at(texts);
        let (absent, others) = rest.split_at(rest.partition_point(|read| Sort::of(read) == Sort::Absent));
        let of_keys = || effects.writes.chunk_by(|(key, _), (next, _)| key == next);
        let is_deletion = |of_key: &&[(RawKey, Write)]| matches!(of_key, [(_, Write::Del)]);
        let deletions = of_keys().filter(is_deletion).count();
        let deadlines = of_keys().filter(|of_key| early_deadline(of_key).is_some()).count();
        let counts = [
            [0, group.ask_turn as usize],
            [texts.len(), absent.len()],
            [others.len(), of_keys().count()],
            [group.requirements.len(), effects.log.len()],
            [deletions, effects.writes.len() - deletions + deadlines],
        ];
        self.program.extend(counts.as_flattened().iter().map(|count| *count as u32));
        let leases = leases_of(group);
        self.program.extend([effects.messages.len() as u32, leases.len() as u32]);
        self.reads(texts, absent, others);
        of_keys().for_each(|of_key| self.number_of(&of_key[0].0));
        leases.iter().for_each(|key| self.number_of(key));
        group.requirements.iter().for_each(|requirement| self.requirement(requirement));
        effects.log.iter().for_each(|entry| self.log_entry(group.log_keys, entry));
        of_keys().filter(is_deletion).for_each(|of_key| self.number_of(&of_key[0].0));
        of_keys().filter(|of_key| !is_deletion(of_key)).for_each(|of_key| self.writes(of_key));
        for (channel, payload) in &effects.messages {
            let numbers = [self.word(channel), self.word(payload)];
            self.program.extend(numbers);
        }
        self.program[first] = (self.program.len() - first) as u32;
    }

    fn reads(
        &mut self,
        texts: &[(RawKey, Read, Reply)],
        absent: &[(RawKey, Read, Reply)],
        others: &[(RawKey, Read, Reply)],
    ) {
        for (key, _, reply) in texts {
            let Reply::Blob(text) = reply else { continue };
            let numbers = [self.key(key), WORDS_FROM + self.words.push(text)];
            self.program.extend(numbers);
        }
        absent.iter().for_each(|(key, ..)| self.number_of(key));
        for (_, read, _) in absent {
            let shape = self.shape(read);
            self.program.push(shape);
        }
        for (key, read, reply) in others {
            let numbers = [self.key(key), self.shape(read)];
            self.program.extend(numbers);
            self.expect(read, reply);
        }
    }

    fn number_of(&mut self, key: &RawKey) {
        let number = self.key(key);
        self.program.push(number);
    }

    /// The finished command: `EVALSHA sha …` or `EVAL body …`.
    pub(crate) fn command(&self, verb: &str, script: &str, envelope: &Envelope<'_>) -> Cmd {
        let turns = envelope.receipt.is_some();
        let n = self.keys.len();
        let keys_bytes: usize = self.keys.iter().map(|key| 2 * key.len() + OWN_KEY_BYTES_USUAL).sum();
        let (program, shapes) = (pack(&self.program), pack(&self.shapes));
        let arguments = self.words.len() + 2 * n + 16;
        let bytes = self.words.bytes() + program.len() + shapes.len() + keys_bytes + script.len();
        let mut cmd = Cmd::with_capacity(arguments, bytes + ENVELOPE_BYTES_USUAL);
        let own_keys = if turns { self.with_turns + 1 } else { 0 };
        cmd.arg(verb).arg(script).arg(n + own_keys + self.fetched.len());
        self.keys.iter().for_each(|key| {
            cmd.arg(&key[..]);
        });
        if let Some((receipt, _)) = envelope.receipt {
            self.keys[..self.with_turns].iter().for_each(|key| {
                cmd.arg((envelope.turn_key)(key));
            });
            cmd.arg(receipt);
        }
        self.fetched.iter().for_each(|key| {
            cmd.arg(&key[..]);
        });
        if !self.swaps {
            cmd.arg(n).arg(match (turns, envelope.check_rights) {
                (false, _) => "0",
                (true, false) => "1",
                (true, true) => "2",
            });
        }
        match envelope.receipt {
            Some((_, sequence)) => cmd.arg(sequence),
            None => cmd.arg(""),
        };
        match (envelope.estimate_ms, envelope.wants_time) {
            (Some(ms), _) => cmd.arg(ms),
            (None, true) => cmd.arg("t"),
            (None, false) => cmd.arg(""),
        };
        cmd.arg(envelope.process).arg(envelope.lease.as_millis() as u64).arg(RECEIPT.as_millis() as u64);
        if !self.swaps {
            cmd.arg(REPLY_ELEMENTS_MAX);
        }
        cmd.arg(envelope.allowance.as_millis() as u64);
        if !self.swaps {
            cmd.arg(envelope.groups).arg(program).arg(shapes);
        }
        self.words.iter().for_each(|word| {
            cmd.arg(word);
        });
        cmd
    }

    /// Whether the script of swaps serves it.
    pub(crate) fn is_of_swaps(&self) -> bool {
        self.swaps
    }

    /// The key that the script calls by this number.
    pub(crate) fn key_at(&self, index: i64) -> Option<&RawKey> {
        usize::try_from(index).ok().and_then(|index| self.keys.get(index.checked_sub(1)?))
    }

    fn expect(&mut self, read: &Read, reply: &Reply) {
        match reply {
            Reply::Nil => self.program.push(tag::NIL),
            Reply::Int(n) => self.tagged(tag::INTEGER, n.to_string().as_bytes()),
            Reply::Score(score) => self.tagged(tag::SCORE, score_g17(*score).as_bytes()),
            Reply::Blob(blob) if blob.len() > DIGEST_ABOVE_BYTES => self.digest(blob),
            Reply::Blob(blob) => self.tagged(tag::STRING, blob),
            Reply::WrongType(found) => self.tagged(tag::WRONG, found_name(*found).as_bytes()),
            Reply::TooMany(n) => self.tagged(tag::MANY, n.to_string().as_bytes()),
            Reply::Pairs(pairs) => self.elements(pairs.iter().flat_map(|(field, value)| [field, value])),
            Reply::List(list) if *read == Read::SMembers => self.elements(list.iter()),
            Reply::List(list) => self.array(list.iter().cloned()),
            Reply::Scored(list) if matches!(read, Read::ZRange(ZSlice::Lex(..), _)) => {
                self.array(list.iter().map(|(member, _)| member.clone()));
            }
            Reply::Scored(list) => {
                self.array(list.iter().flat_map(|(m, s)| [m.clone(), Bytes::from(score_g17(*s))]))
            }
        }
    }

    fn elements<'a>(&mut self, elements: impl Iterator<Item = &'a Bytes>) {
        self.program.extend([tag::ELEMENTS, 0]);
        let first = self.program.len();
        for element in elements {
            let word = self.word(element);
            self.program.push(word);
        }
        self.program[first - 1] = (self.program.len() - first) as u32;
    }

    fn array(&mut self, elements: impl Iterator<Item = Bytes>) {
        let mut text = Vec::new();
        for element in elements {
            text.extend_from_slice(element.len().to_string().as_bytes());
            text.push(b':');
            text.extend_from_slice(&element);
        }
        if text.len() > DIGEST_ABOVE_BYTES { self.digest(&text) } else { self.tagged(tag::ARRAY, &text) }
    }

    fn tagged(&mut self, tag: u32, text: &[u8]) {
        let word = self.word(text);
        self.program.extend([tag, word]);
    }

    fn digest(&mut self, text: &[u8]) {
        let digest = digest(&self.digest_prefix, text);
        self.tagged(tag::DIGEST, digest.as_bytes());
    }

    fn requirement(&mut self, requirement: &Precondition) {
        let (least, greatest) = match &requirement.countable {
            Some(range) => (range.start().to_string(), range.end().to_string()),
            None => Default::default(),
        };
        let kind = self.word(requirement.kind.name().as_bytes());
        let range = [self.word(least.as_bytes()), self.word(greatest.as_bytes())];
        let key = self.key(&requirement.key);
        self.program.extend([key, kind, range[0], range[1]]);
    }

    fn log_entry(&mut self, (list, counter): &(RawKey, RawKey), append: &LogAppend) {
        let bound = self.word(append.entries_max.to_string().as_bytes());
        let refuses = (append.overflow == Overflow::Refuse) as u32;
        let numbers = [self.key(list), self.key(counter), bound, refuses, self.word(&append.entry)];
        self.program.extend(numbers);
    }

    /// The writes of one key: all of them take effect before its deadline counts, which may pass on the way. The server
    /// removes a key whose deadline has passed at once, and a write after that would make another one without an end.
    fn writes(&mut self, of_key: &[(RawKey, Write)]) {
        match early_deadline(of_key) {
            None => of_key.iter().for_each(|(key, write)| self.write(key, write_words(write))),
            Some(at) => {
                of_key.iter().for_each(|(key, write)| self.write(key, write_words(&postponed(write))));
                // XX: if it was removed meanwhile and made anew, it has no deadline.
                let words = vec![Bytes::from(at.to_string()), Bytes::from_static(b"XX")];
                self.write(&of_key[0].0, (write_name(&Write::ExpireAt(at)), words));
            }
        }
    }

    fn write(&mut self, key: &RawKey, (name, arguments): (&str, Vec<Bytes>)) {
        let numbers = [self.key(key), self.word(name.as_bytes()), arguments.len() as u32];
        self.program.extend(numbers);
        for argument in &arguments {
            let word = self.word(argument);
            self.program.push(word);
        }
    }
}

/// The keys that a group does not write and may have a lease on, by an earlier run: its commit ends that.
fn leases_of(group: &GroupWords<'_>) -> Vec<RawKey> {
    let mut keys: Vec<RawKey> = vec![];
    let reads = group.reads.iter().filter(|_| group.ask_turn).map(|(key, ..)| key);
    for key in reads.chain(&group.leased) {
        let written = group.effects.writes.iter().any(|(written, _)| written == key);
        if !written && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// What stands for a long reply.
pub(super) fn digest(process: &str, text: &[u8]) -> String {
    let mut sha = sha1_smol::Sha1::from(process);
    sha.update(text);
    sha.digest().to_string()
}
