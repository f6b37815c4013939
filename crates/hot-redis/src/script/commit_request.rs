//! A call of `commit.lua`: keys and words once each, and a program that names them by number.

use super::early_deadline::{has_early_deadline, postponed, settling_words};
use super::layout::{COMMIT_ARGUMENTS, GROUP_HEADER, length, log_flag, tag};
use super::request::{Arguments, Header, add_engine_keys, add_keys};
use super::spelling::{found_name, read_words, score_g17, write_words};
use super::words::{Words, pack};
use crate::cache::shows_absence;
use crate::limits::*;
use bytes::Bytes;
use emberkeep_hot::command::*;
use emberkeep_hot::limits::REPLY_ELEMENTS_MAX;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use redis::Cmd;

/// The place of the first word in ARGV.
const WORDS_FROM: u32 = COMMIT_ARGUMENTS.end() as u32;
/// The command that settles the deadline of a key, with three arguments or more.
const SETTLE: &str = "PEXPIREAT";
/// Room for the arguments before the words.
pub(super) const HEADER_BYTES_USUAL: usize = 256;
/// How much longer a lease key is than its data key.
pub(super) const LEASE_KEY_BYTES_USUAL: usize = 64;

/// A call of the general commit script.
#[derive(Default)]
pub(crate) struct CommitRequest {
    keys: Vec<RawKey>,
    /// So many of the keys, the first ones, are written.
    written: usize,
    /// So many of the keys, the first ones, have lease keys.
    leasable: usize,
    key_numbers: HashMap<RawKey, u32, RandomState>,
    words: Words,
    program: Vec<u32>,
    shapes: Vec<u32>,
    shape_places: HashMap<Read, u32, RandomState>,
    /// Hashed before a text of which a digest is taken. Only this process and the server have it, so a caller
    /// who chooses values cannot choose two of equal digests.
    digest_prefix: String,
}

/// One group as the script sees it.
pub(crate) struct GroupRequest<'a> {
    pub(crate) ask_lease: bool,
    /// Keys that its transactions may have leases on, from earlier runs.
    pub(crate) leased: Vec<RawKey>,
    pub(crate) reads: &'a [(RawKey, Read, Reply)],
    pub(crate) effects: &'a Effects,
    pub(crate) requirements: Vec<Precondition>,
}

/// How the script compares a read: present strings by one MGET, absent keys by one EXISTS, others one by one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Comparison {
    Text,
    Absent,
    Other,
}

impl Comparison {
    fn of((_, read, reply): &(RawKey, Read, Reply)) -> Comparison {
        match (read, reply) {
            (Read::Get, Reply::Blob(blob)) if blob.len() <= DIGEST_ABOVE_BYTES => Comparison::Text,
            _ if shows_absence(read, reply) => Comparison::Absent,
            _ => Comparison::Other,
        }
    }
}

/// Reads in the order in which the script answers them.
pub(crate) fn in_order(mut reads: Vec<(RawKey, Read, Reply)>) -> Vec<(RawKey, Read, Reply)> {
    reads.sort_by_key(Comparison::of);
    reads
}

impl CommitRequest {
    /// A call that commits these groups, then makes the reads.
    pub(crate) fn new(
        groups: &[GroupRequest<'_>],
        fetches: &[(RawKey, Read)],
        process: &str,
    ) -> CommitRequest {
        let mut request = CommitRequest { digest_prefix: process.to_owned(), ..CommitRequest::default() };
        // Keys that are written come first: only they must be declared.
        for group in groups {
            let written = group.effects.writes.iter().map(|(key, _)| key);
            let appended = group.effects.log.iter().map(|append| &append.log);
            for key in written.chain(appended) {
                request.key(key);
            }
        }
        request.written = request.keys.len();
        // Then the others with a lease key: the script finds the one beside the other.
        for group in groups {
            // A lease is asked for on every key that changed, also if the group only reads it.
            let read = group.reads.iter().filter(|_| group.ask_lease).map(|(key, ..)| key);
            for key in read.chain(&group.leased) {
                request.key(key);
            }
        }
        request.leasable = request.keys.len();
        groups.iter().for_each(|group| request.group(group));
        request.program.push(fetches.len() as u32);
        for (key, read) in fetches {
            let numbers = [request.key(key), request.shape(read)];
            request.program.extend(numbers);
        }
        request
    }

    /// The number of a key.
    fn key(&mut self, key: &RawKey) -> u32 {
        if let Some(number) = self.key_numbers.get(key) {
            return *number;
        }
        self.keys.push(key.clone());
        self.key_numbers.insert(key.clone(), self.keys.len() as u32);
        self.keys.len() as u32
    }

    fn word(&mut self, word: &[u8]) -> u32 {
        WORDS_FROM + self.words.once(word)
    }

    /// The place of a read's shape.
    fn shape(&mut self, read: &Read) -> u32 {
        if let Some(place) = self.shape_places.get(read) {
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
        self.shape_places.insert(read.clone(), place);
        place
    }

    fn group(&mut self, group: &GroupRequest<'_>) {
        let (effects, first) = (group.effects, self.program.len());
        let texts = group.reads.partition_point(|read| Comparison::of(read) == Comparison::Text);
        let (texts, rest) = group.reads.split_at(texts);
        let (absent, others) =
            rest.split_at(rest.partition_point(|read| Comparison::of(read) == Comparison::Absent));
        let of_keys = || effects.writes.chunk_by(|(key, _), (next, _)| key == next);
        let is_deletion = |of_key: &&[(RawKey, Write)]| matches!(of_key, [(_, Write::Del)]);
        let deletions = of_keys().filter(is_deletion).count();
        let deadlines = of_keys().filter(|of_key| has_early_deadline(of_key)).count();
        let leases = leases_of(group);
        let header = [
            ("LENGTH", 0),
            ("ASK_LEASE", group.ask_lease as usize),
            ("TEXTS", texts.len()),
            ("ABSENT", absent.len()),
            ("READS", others.len()),
            ("WRITTEN_KEYS", of_keys().count()),
            ("TYPES", group.requirements.len()),
            ("LOG_ENTRIES", effects.log.len()),
            ("DELETIONS", deletions),
            ("WRITES", effects.writes.len() - deletions + deadlines),
            ("MESSAGES", effects.messages.len()),
            ("LEASES", leases.len()),
            ("WOKEN", effects.woken.len()),
        ];
        debug_assert!(header.iter().map(|(name, _)| name).eq(GROUP_HEADER.names));
        self.program.extend(header.map(|(_, count)| count as u32));
        self.reads(texts, absent, others);
        of_keys().for_each(|of_key| self.number_of(&of_key[0].0));
        leases.iter().for_each(|key| self.number_of(key));
        group.requirements.iter().for_each(|requirement| self.requirement(requirement));
        effects.log.iter().for_each(|entry| self.log_entry(entry));
        of_keys().filter(is_deletion).for_each(|of_key| self.number_of(&of_key[0].0));
        of_keys().filter(|of_key| !is_deletion(of_key)).for_each(|of_key| self.writes(of_key));
        for (channel, payload) in &effects.messages {
            let numbers: [u32; length::MESSAGE] = [self.word(channel), self.word(payload)];
            self.program.extend(numbers);
        }
        effects.woken.iter().for_each(|log| self.number_of(log));
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
            let numbers: [u32; length::TEXT] = [self.key(key), WORDS_FROM + self.words.push(text)];
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

    pub(super) fn command(&self, verb: &str, script: &str, header: &Header<'_>) -> Cmd {
        let has_leases = header.receipt.is_some();
        let keys_bytes: usize = self.keys.iter().map(|key| 2 * key.len() + LEASE_KEY_BYTES_USUAL).sum();
        let (program, shapes) = (pack(&self.program), pack(&self.shapes));
        let (declared, hidden) = header.divide(&self.keys, self.written);
        let arguments = self.words.len() + 2 * self.keys.len() + 18;
        let bytes = self.words.bytes() + program.len() + shapes.len() + keys_bytes + script.len();
        let mut cmd = Cmd::with_capacity(arguments, bytes + HEADER_BYTES_USUAL);
        let engine_keys = if has_leases { self.leasable + 1 } else { 0 };
        cmd.arg(verb).arg(script).arg(declared.len() + engine_keys);
        add_keys(&mut cmd, declared);
        add_engine_keys(&mut cmd, &self.keys[..self.leasable], header);
        let mode = match (has_leases, header.check_acl) {
            (false, _) => "0",
            (true, false) => "1",
            (true, true) if header.declares_reads => "3",
            (true, true) => "2",
        };
        Arguments::new(&mut cmd, &COMMIT_ARGUMENTS)
            .add("KEYS", self.keys.len())
            .add("MODE", mode)
            .add("SEQUENCE", header.sequence())
            .add("TIME", header.time())
            .add("PROCESS", header.process)
            .add("LEASE_MS", header.lease.as_millis() as u64)
            .add("RECEIPT_MS", RECEIPT_TTL.as_millis() as u64)
            .add("ELEMENTS_MAX", REPLY_ELEMENTS_MAX)
            .add("ALLOWANCE_MS", header.allowance.as_millis() as u64)
            .add("GROUPS", header.groups)
            .add("HIDDEN", hidden.len())
            .add("PROBE", header.probe())
            .add("PROGRAM", program)
            .add("SHAPES", shapes)
            .end();
        self.words.iter().for_each(|word| {
            cmd.arg(word);
        });
        add_keys(&mut cmd, hidden);
        cmd
    }

    fn expect(&mut self, read: &Read, reply: &Reply) {
        match reply {
            Reply::Nil => self.program.push(tag::NIL),
            Reply::Int(n) => self.tagged(tag::INTEGER, n.to_string().as_bytes()),
            Reply::Score(score) => self.tagged(tag::SCORE, score_g17(*score).as_bytes()),
            Reply::Blob(blob) if blob.len() > DIGEST_ABOVE_BYTES => self.digest(blob),
            Reply::Blob(blob) => self.tagged(tag::STRING, blob),
            Reply::WrongType(found) => self.tagged(tag::WRONG_TYPE, found_name(*found).as_bytes()),
            Reply::TooMany(n) => self.tagged(tag::TOO_MANY, n.to_string().as_bytes()),
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
        let elements: Vec<Bytes> = elements.collect();
        let bytes: usize = elements.iter().map(|element| element.len() + 1).sum();
        // Unambiguous, because the number of elements is compared, too; and joined by one call of C on the server.
        if bytes <= DIGEST_ABOVE_BYTES && !elements.iter().any(|element| element.contains(&0)) {
            self.tagged(tag::JOINED, &elements.join(&0));
            return self.program.push(elements.len() as u32);
        }
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
        let (least, greatest) = (self.word(least.as_bytes()), self.word(greatest.as_bytes()));
        // No word has the place 0.
        let field = requirement.field.as_ref().map_or(0, |field| self.word(field));
        let numbers: [u32; length::TYPE] = [self.key(&requirement.key), kind, least, greatest, field];
        self.program.extend(numbers);
    }

    fn log_entry(&mut self, append: &LogAppend) {
        let bound = self.word(append.entries_max.to_string().as_bytes());
        let (deadline, if_none) = match append.expiry {
            LogExpiry::Keep => (String::new(), 0),
            LogExpiry::IfNone(at) => (at.to_string(), log_flag::DEADLINE_IF_NONE),
            LogExpiry::At(at) => (at.to_string(), 0),
        };
        let refuses = if append.overflow == Overflow::Refuse { log_flag::REFUSE } else { 0 };
        let (deadline, entry) = (self.word(deadline.as_bytes()), self.word(&append.entry));
        let numbers: [u32; length::LOG] = [self.key(&append.log), bound, refuses + if_none, deadline, entry];
        self.program.extend(numbers);
    }

    /// The writes of one key: all of them take effect before its deadline counts.
    fn writes(&mut self, of_key: &[(RawKey, Write)]) {
        if !has_early_deadline(of_key) {
            return of_key.iter().for_each(|(key, write)| self.write(key, write_words(write)));
        }
        let (key, postponed) = (&of_key[0].0, postponed(of_key));
        postponed.writes.iter().for_each(|write| self.write(key, write_words(write)));
        self.write(key, (SETTLE, settling_words(&postponed.marks)));
    }

    fn write(&mut self, key: &RawKey, (name, arguments): (&str, Vec<Bytes>)) {
        let name = self.word(name.as_bytes());
        let numbers: [u32; length::WRITE] = [self.key(key), name, arguments.len() as u32];
        self.program.extend(numbers);
        for argument in &arguments {
            let word = self.word(argument);
            self.program.push(word);
        }
    }
}

/// The keys that a group does not write and may have a lease on, from an earlier run: its commit ends the
/// lease.
fn leases_of(group: &GroupRequest<'_>) -> Vec<RawKey> {
    let mut keys: Vec<RawKey> = vec![];
    let reads = group.reads.iter().filter(|_| group.ask_lease).map(|(key, ..)| key);
    for key in reads.chain(&group.leased) {
        let written = group.effects.writes.iter().any(|(written, _)| written == key);
        if !written && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// The text that is compared instead of a long reply.
pub(super) fn digest(process: &str, text: &[u8]) -> String {
    let mut sha = sha1_smol::Sha1::from(process);
    sha.update(text);
    sha.digest().to_string()
}
