//! One call of the commit script under construction: keys by number, everything else as words.

use super::words::{found_name, read_words, score_g17, write_words};
use crate::limits::*;
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use redis::Cmd;

/// Room for the short words of a group of one read and one write.
const GROUP_BYTES_USUAL: usize = 64;
/// Words of such a group.
const GROUP_WORDS_USUAL: usize = 24;
/// Room for the arguments of the envelope.
const ENVELOPE_BYTES_USUAL: usize = 256;
/// What a turn key has more than the key beside it.
const OWN_KEY_BYTES_USUAL: usize = 64;

/// Arguments of one call under construction.
#[derive(Default)]
pub(crate) struct Call {
    pub(super) keys: Vec<RawKey>,
    /// For the script of swaps, not for that of steps.
    pub(super) swaps: bool,
    /// Strings that are only read, by the script of swaps.
    pub(super) fetched: Vec<RawKey>,
    index: HashMap<RawKey, usize, RandomState>,
    words: Vec<u8>,
    ends: Vec<usize>,
}

/// What stands around the groups of a call.
pub(crate) struct Envelope<'a> {
    /// Turn key for a data key.
    pub(crate) turn_key: &'a (dyn Fn(&RawKey) -> Vec<u8> + Sync),
    /// Receipt key and sequence; `None` when nothing is written.
    pub(crate) receipt: Option<(&'a [u8], u64)>,
    /// The client's estimate of the server's time, if a body used it.
    pub(crate) estimate_ms: Option<i64>,
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
    pub(crate) reads: &'a [(RawKey, Read, Reply)],
    pub(crate) effects: &'a Effects,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) log_keys: &'a (RawKey, RawKey),
}

impl Call {
    pub(super) fn word(&mut self, word: &[u8]) {
        self.words.extend_from_slice(word);
        self.ends.push(self.words.len());
    }

    pub(super) fn number(&mut self, number: impl itoa::Integer) {
        self.word(itoa::Buffer::new().format(number).as_bytes());
    }

    fn key(&mut self, key: &RawKey) {
        let index = match self.index.get(key) {
            Some(index) => *index,
            None => {
                self.keys.push(key.clone());
                self.index.insert(key.clone(), self.keys.len());
                self.keys.len()
            }
        };
        self.number(index as i64);
    }

    /// Adds a group.
    pub(crate) fn group(&mut self, group: &GroupWords<'_>) {
        let effects = group.effects;
        let mut written: Vec<&RawKey> = effects.writes.iter().map(|(key, _)| key).collect();
        written.sort_unstable();
        written.dedup();
        let bytes = group.reads.iter().map(|(_, _, reply)| reply.bytes()).sum::<usize>()
            + effects.writes.iter().map(|(_, write)| write.bytes()).sum::<usize>();
        self.words.reserve(bytes + GROUP_BYTES_USUAL);
        self.ends.reserve(GROUP_WORDS_USUAL);
        // The group's length stands before it: a word of fixed width, filled in at the end.
        let (first, length_at) = (self.ends.len(), self.words.len());
        self.word(b"00000000");
        self.word(if group.ask_turn { b"1" } else { b"0" });
        let counts = [group.reads.len(), written.len(), group.requirements.len()];
        let more = [effects.log.len(), effects.writes.len(), effects.messages.len()];
        counts.into_iter().chain(more).for_each(|count| self.number(count as i64));
        for (key, read, reply) in group.reads {
            self.read(key, read);
            self.expect(read, reply);
        }
        written.iter().for_each(|key| self.key(key));
        group.requirements.iter().for_each(|requirement| self.requirement(requirement));
        effects.log.iter().for_each(|entry| self.log_entry(group.log_keys, entry));
        effects.writes.iter().for_each(|(key, write)| self.write(key, write));
        for (channel, payload) in &effects.messages {
            self.word(channel);
            self.word(payload);
        }
        let length = format!("{:08}", self.ends.len() - first);
        self.words[length_at..length_at + 8].copy_from_slice(length.as_bytes());
    }

    /// Adds the fetches that end the call.
    pub(crate) fn fetches(&mut self, reads: &[(RawKey, Read)]) {
        self.number(reads.len() as i64);
        for (key, read) in reads {
            self.read(key, read);
        }
    }

    /// The finished command: `EVALSHA sha …` or `EVAL body …`.
    pub(crate) fn command(&self, verb: &str, script: &str, envelope: &Envelope<'_>) -> Cmd {
        let turns = envelope.receipt.is_some();
        let n = self.keys.len();
        let keys_bytes: usize = self.keys.iter().map(|key| 2 * key.len() + OWN_KEY_BYTES_USUAL).sum();
        let arguments = self.ends.len() + 2 * n + 16;
        let bytes = self.words.len() + keys_bytes + script.len() + ENVELOPE_BYTES_USUAL;
        let mut cmd = Cmd::with_capacity(arguments, bytes);
        cmd.arg(verb).arg(script).arg(if turns { 2 * n + 1 } else { n } + self.fetched.len());
        self.keys.iter().for_each(|key| {
            cmd.arg(&key[..]);
        });
        if let Some((receipt, _)) = envelope.receipt {
            self.keys.iter().for_each(|key| {
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
        cmd.arg(envelope.process).arg(TURN.as_millis() as u64).arg(RECEIPT.as_millis() as u64);
        if !self.swaps {
            cmd.arg(REPLY_ELEMENTS_MAX);
        }
        cmd.arg(CLOCK_DIFFERENCE_MAX.as_millis() as u64);
        if !self.swaps {
            cmd.arg(envelope.groups);
        }
        let mut from = 0;
        for end in &self.ends {
            cmd.arg(&self.words[from..*end]);
            from = *end;
        }
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

    fn read(&mut self, key: &RawKey, read: &Read) {
        let (name, count, arguments) = read_words(read);
        self.key(key);
        self.word(name.as_bytes());
        self.word(count.as_bytes());
        self.number(arguments.len() as i64);
        arguments.iter().for_each(|argument| self.word(argument));
    }

    fn expect(&mut self, read: &Read, reply: &Reply) {
        match reply {
            Reply::Nil => self.word(b"n"),
            Reply::Int(n) => self.tagged(b"i", n.to_string().as_bytes()),
            Reply::Score(score) => self.tagged(b"z", score_g17(*score).as_bytes()),
            Reply::Blob(blob) if blob.len() > DIGEST_ABOVE_BYTES => self.digest(blob),
            Reply::Blob(blob) => self.tagged(b"s", blob),
            Reply::WrongType(found) => self.tagged(b"w", found_name(*found).as_bytes()),
            Reply::TooMany(n) => self.tagged(b"t", n.to_string().as_bytes()),
            Reply::Pairs(pairs) => {
                self.word(b"u");
                self.number(pairs.len() as i64 * 2);
                pairs.iter().for_each(|(field, value)| {
                    self.word(field);
                    self.word(value);
                });
            }
            Reply::List(list) if *read == Read::SMembers => {
                self.word(b"u");
                self.number(list.len() as i64);
                list.iter().for_each(|member| self.word(member));
            }
            Reply::List(list) => self.array(list.iter().cloned()),
            Reply::Scored(list) if matches!(read, Read::ZRange(ZSlice::Lex(..), _)) => {
                self.array(list.iter().map(|(member, _)| member.clone()));
            }
            Reply::Scored(list) => {
                self.array(list.iter().flat_map(|(m, s)| [m.clone(), Bytes::from(score_g17(*s))]))
            }
        }
    }

    fn array(&mut self, elements: impl Iterator<Item = Bytes>) {
        let mut text = Vec::new();
        for element in elements {
            text.extend_from_slice(element.len().to_string().as_bytes());
            text.push(b':');
            text.extend_from_slice(&element);
        }
        if text.len() > DIGEST_ABOVE_BYTES { self.digest(&text) } else { self.tagged(b"a", &text) }
    }

    fn tagged(&mut self, tag: &[u8], text: &[u8]) {
        self.word(tag);
        self.word(text);
    }

    fn digest(&mut self, text: &[u8]) {
        self.tagged(b"d", sha1_smol::Sha1::from(text).digest().to_string().as_bytes());
    }

    fn requirement(&mut self, requirement: &Requirement) {
        self.key(&requirement.key);
        self.word(requirement.kind.name().as_bytes());
        match &requirement.countable {
            Some(range) => {
                self.number(*range.start());
                self.number(*range.end());
            }
            None => {
                self.word(b"");
                self.word(b"");
            }
        }
    }

    fn log_entry(&mut self, (list, counter): &(RawKey, RawKey), append: &LogAppend) {
        self.key(list);
        self.key(counter);
        self.number(append.entries_max as i64);
        self.word(if append.overflow == Overflow::Refuse { b"1" } else { b"0" });
        self.word(&append.entry);
    }

    fn write(&mut self, key: &RawKey, write: &Write) {
        let (name, arguments) = write_words(write);
        self.key(key);
        self.word(name.as_bytes());
        self.number(arguments.len() as i64);
        arguments.iter().for_each(|argument| self.word(argument));
    }
}
