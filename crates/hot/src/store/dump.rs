//! Dumps: all keys of a partition with type, value and deadline, for snapshots and comparisons.

use super::Store;
use super::raw::read_raw;
use crate::command::{Content, KeyDump, Kind, KindFound, RawKey, Read, Reply, ZSlice};
use crate::engine::{Cursor, DumpSteps, KeyFilter};
use crate::error::{Error, Result};
use crate::limits::{DUMP_KEYS_TOGETHER, DUMP_RESTARTS_MAX, REPLY_ELEMENTS_MAX, SCAN_PAGE_MAX};
use crate::tx::RawTx;
use bytes::Bytes;
use emberkeep_schema::{Declaration, KeyLayout, KindName, Partition, Schema, Topology};
use std::collections::HashSet;
use std::sync::Arc;

/// Which keys make up the state of one partition: those of its families, but for logs, which are streams of events and
/// not state, and for families with `snapshot: never`, which belong to running processes.
///
/// On one server, keys of a `shared` family, whose pattern does not contain the partition, belong to all partitions of its
/// type: they are left out there unless they are asked for, see [`PartitionKeys::with_shared`].
/// Keys of Emberkeep itself (`ember:…`) are in it only if a family declares them.
#[derive(Debug, Clone)]
pub struct PartitionKeys {
    /// Its families but for logs, channels and those of running processes.
    chosen: Arc<[&'static Declaration]>,
    type_name: &'static str,
    text: Bytes,
    with_shared: bool,
}

impl PartitionKeys {
    /// The keys of a partition, by the families of a schema.
    pub fn of<P: Partition>(schema: &Schema, partition: &P) -> PartitionKeys {
        let mut text = Vec::new();
        partition.write(&mut text);
        PartitionKeys::chosen(schema, P::NAME, text.into())
    }

    /// The same by the name of the partition's type, or of its part in patterns, and its text: for tools.
    pub fn named(schema: &Schema, name: &str, text: &str) -> Result<PartitionKeys> {
        let is_meant = |family: &&&'static Declaration| {
            family.partition.eq_ignore_ascii_case(name)
                || family.partition_part.is_some_and(|part| part.eq_ignore_ascii_case(name))
        };
        let Some(family) = schema.families().iter().find(is_meant) else {
            let mut types: Vec<&str> = schema.families().iter().map(|family| family.partition).collect();
            types.sort_unstable();
            types.dedup();
            return Err(Error::invalid("partition", format!("{name}, expected one of {}", types.join(", "))));
        };
        if !(family.partition_accepts)(text) {
            return Err(Error::invalid("partition", format!("{text:?} is not a {}", family.partition)));
        }
        let text = Bytes::copy_from_slice(text.as_bytes());
        Ok(PartitionKeys::chosen(schema, family.partition, text))
    }

    fn chosen(schema: &Schema, type_name: &'static str, text: Bytes) -> PartitionKeys {
        let is_state = |family: &&'static Declaration| {
            let is_stored = !matches!(family.kind, KindName::Log | KindName::Channel);
            family.partition == type_name && family.in_snapshots && is_stored
        };
        PartitionKeys {
            chosen: schema.families().iter().copied().filter(is_state).collect(),
            type_name,
            text,
            with_shared: false,
        }
    }

    /// Also the keys that all partitions share on one server. A restore of them changes every partition of the type.
    pub fn with_shared(mut self) -> PartitionKeys {
        self.with_shared = true;
        self
    }

    /// The families whose keys are left out because all partitions share them.
    pub fn left_out(&self, layout: &KeyLayout) -> Vec<&'static str> {
        let left_out = self.chosen.iter().filter(|family| !self.with_shared && is_shared(family, layout));
        left_out.map(|family| family.name).collect()
    }

    /// The same keys without those of shared families that are not in a list, by name: a snapshot that has none of a
    /// shared family's keys may have been made without them.
    pub fn without_shared_but(mut self, layout: &KeyLayout, listed: impl Fn(&str) -> bool) -> PartitionKeys {
        let stays = |family: &&Declaration| !is_shared(family, layout) || listed(family.name);
        self.chosen = self.chosen.iter().copied().filter(stays).collect();
        self
    }

    /// Only the keys of these families, by name.
    pub fn only(mut self, families: &[&'static str]) -> PartitionKeys {
        let chosen = self.chosen.iter().copied();
        self.chosen = chosen.filter(|family| families.contains(&family.name)).collect();
        self
    }

    /// The text of the partition.
    pub fn partition(&self) -> &Bytes {
        &self.text
    }

    /// Type and text of the partition, such as `Room:AB12CD`.
    pub fn label(&self) -> String {
        format!("{}:{}", self.type_name, self.text.escape_ascii())
    }

    /// The families whose keys are meant.
    pub fn families(&self) -> &[&'static Declaration] {
        &self.chosen
    }

    /// The family of a raw key, if it is one of these keys.
    pub fn family_of(&self, layout: &KeyLayout, raw: &[u8]) -> Option<&'static Declaration> {
        let text = std::str::from_utf8(&self.text).ok()?;
        let is_key = |family: &&Declaration| {
            (self.with_shared || !is_shared(family, layout)) && family.has_key(layout, raw, text)
        };
        self.chosen.iter().copied().find(is_key)
    }

    fn filter(&self, layout: KeyLayout) -> KeyFilter {
        let keys = self.clone();
        Arc::new(move |raw| kind_of(keys.family_of(&layout, raw)?.kind))
    }

    /// A glob that matches at least these keys.
    fn glob(&self, layout: &KeyLayout) -> Vec<u8> {
        let mut out = Vec::new();
        super::push_escaped(&mut out, layout.prefix().as_bytes());
        if layout.topology() == Topology::Cluster {
            out.push(b'{');
            super::push_escaped(&mut out, &self.text);
            out.push(b'}');
        }
        out.push(b'*');
        out
    }
}

/// Whether all partitions have the keys of a family together.
fn is_shared(family: &Declaration, layout: &KeyLayout) -> bool {
    layout.topology() == Topology::Single && family.partition_fixed.is_none() && !family.carries_partition()
}

fn kind_of(kind: KindName) -> Option<Kind> {
    match kind {
        KindName::Text => Some(Kind::Text),
        KindName::Hash => Some(Kind::Hash),
        KindName::Set => Some(Kind::Set),
        KindName::SortedSet => Some(Kind::SortedSet),
        KindName::List | KindName::Log => Some(Kind::List),
        KindName::Channel => None,
    }
}

impl Store {
    /// Begins a dump of a partition while transactions continue.
    ///
    /// On the embedded engine it shows one moment ([`Dump::is_one_moment`]). On Redis and its Cluster it goes key by
    /// key: each key is as of one moment between the begin and the end of the dump, and keys that are made or removed
    /// meanwhile may be in it or not. A hash or a set of more than
    /// [`REPLY_ELEMENTS_MAX`] members, or of more bytes than a reply may have, is read in pages there: each of its
    /// members is as of one moment.
    pub async fn dump(&self, keys: &PartitionKeys) -> Result<Dump> {
        let filter = keys.filter(self.layout.clone());
        if let Some(begun) = self.engine.dump(filter.clone()) {
            return Ok(Dump(Source::Local(begun.await?)));
        }
        let at = self.engine.now().await?;
        let (text, pattern) = (keys.text.clone(), keys.glob(self.layout));
        let (store, returned) = (self.clone(), HashSet::new());
        let remote = RemoteDump { store, filter, text, pattern, at, returned, next: Some(None), restarts: 0 };
        Ok(Dump(Source::Remote(Box::new(remote))))
    }
}

/// A dump under way.
pub struct Dump(Source);

enum Source {
    Local(Box<dyn DumpSteps>),
    Remote(Box<RemoteDump>),
}

impl Dump {
    /// When it began, in milliseconds since 1970 by the engine's clock.
    pub fn at(&self) -> i64 {
        match &self.0 {
            Source::Local(steps) => steps.at(),
            Source::Remote(dump) => dump.at,
        }
    }

    /// Whether all keys are as they were at [`Dump::at`].
    pub fn is_one_moment(&self) -> bool {
        matches!(self.0, Source::Local(_))
    }

    /// The next keys, possibly none although more follow; `None` at the end. Each key comes once.
    pub async fn next(&mut self) -> Result<Option<Vec<KeyDump>>> {
        // Other tasks run between two steps, also where nothing is waited for.
        tokio::task::yield_now().await;
        match &mut self.0 {
            Source::Local(steps) => steps.next().await,
            Source::Remote(dump) => dump.next().await,
        }
    }
}

/// A dump of an engine without a moment: pages of keys, and reads of each key in one transaction.
struct RemoteDump {
    store: Store,
    filter: KeyFilter,
    text: Bytes,
    pattern: Vec<u8>,
    at: i64,
    /// Scans may return a key twice.
    returned: HashSet<RawKey>,
    /// The cursor of the next page; `None` = the scan has ended.
    next: Option<Option<Cursor>>,
    restarts: usize,
}

impl RemoteDump {
    async fn next(&mut self) -> Result<Option<Vec<KeyDump>>> {
        let Some(from) = self.next else { return Ok(None) };
        let page = self.store.engine.scan_partition(&self.text, from, &self.pattern, SCAN_PAGE_MAX).await;
        let page = match page {
            // A server restarted or slots moved: the scan begins anew, and keys that were returned are known.
            Err(Error::Invalid { what: "cursor", .. }) if self.restarts < DUMP_RESTARTS_MAX => {
                (self.restarts, self.next) = (self.restarts + 1, Some(None));
                return Ok(Some(Vec::new()));
            }
            page => page?,
        };
        self.next = page.next.map(Some);
        let chosen = page.keys.into_iter().filter_map(|key| Some(((self.filter)(&key)?, key)));
        let new: Vec<(Kind, RawKey)> = chosen.filter(|(_, key)| self.returned.insert(key.clone())).collect();
        let mut dumps = Vec::with_capacity(new.len());
        for keys in new.chunks(DUMP_KEYS_TOGETHER) {
            dumps.extend(self.dump_keys(keys).await?);
        }
        Ok(Some(dumps))
    }

    /// Some keys in one transaction, or if one of them is large each on its own. Keys that are gone are left out.
    async fn dump_keys(&self, keys: &[(Kind, RawKey)]) -> Result<Vec<KeyDump>> {
        let together = keys.to_vec();
        match read_raw(&self.store, &self.text, move |tx| read_keys(tx, &together)).await {
            Ok(dumps) => return Ok(dumps.into_iter().flatten().collect()),
            Err(error) if error.is_corrupt() || matches!(error, Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut dumps = Vec::new();
        for (kind, key) in keys {
            dumps.extend(self.dump_key(*kind, key).await?);
        }
        Ok(dumps)
    }

    /// One key, of whatever type and size.
    async fn dump_key(&self, declared: Kind, key: &RawKey) -> Result<Option<KeyDump>> {
        let mut kind = declared;
        loop {
            let one = [(kind, key.clone())];
            match read_raw(&self.store, &self.text, move |tx| read_keys(tx, &one)).await {
                Ok(dumps) => return Ok(dumps.into_iter().flatten().next()),
                Err(Error::WrongType { found: KindFound::Kind(found), .. }) if found != kind => kind = found,
                Err(Error::TooLarge { .. }) => return self.dump_large(kind, key).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn dump_large(&self, kind: Kind, key: &RawKey) -> Result<Option<KeyDump>> {
        let content = match kind {
            Kind::Hash => Content::Hash(self.all_fields(key).await?),
            Kind::Set => Content::Set(self.all_members(key).await?),
            Kind::Text | Kind::SortedSet | Kind::List => {
                let key = key.clone();
                return read_raw(&self.store, &self.text, move |tx| read_ranges(tx, kind, &key)).await;
            }
        };
        let asked = key.clone();
        let deadline = read_raw(&self.store, &self.text, move |tx| tx.read(&asked, Read::ExpireTime)).await?;
        Ok(dump_with(key, content, deadline).filter(|dump| !dump.content.is_empty()))
    }

    async fn all_fields(&self, key: &RawKey) -> Result<Vec<(Bytes, Bytes)>> {
        let (mut fields, mut from) = (std::collections::BTreeMap::new(), None);
        loop {
            let page = self.store.engine.scan_fields(key, from, SCAN_PAGE_MAX).await?;
            fields.extend(page.fields);
            match page.next {
                None => return Ok(fields.into_iter().collect()),
                next => from = next,
            }
        }
    }

    async fn all_members(&self, key: &RawKey) -> Result<Vec<Bytes>> {
        let (mut members, mut from) = (std::collections::BTreeSet::new(), None);
        loop {
            let page = self.store.engine.scan_members(key, from, SCAN_PAGE_MAX).await?;
            members.extend(page.members);
            match page.next {
                None => return Ok(members.into_iter().collect()),
                next => from = next,
            }
        }
    }
}

/// The read that returns everything of a type.
fn whole(kind: Kind) -> Read {
    match kind {
        Kind::Text => Read::Get,
        Kind::Hash => Read::HGetAll,
        Kind::Set => Read::SMembers,
        Kind::SortedSet => Read::ZRange(ZSlice::Rank(0, -1), false),
        Kind::List => Read::LRange(0, -1),
    }
}

fn read_keys(tx: &mut RawTx<'_>, keys: &[(Kind, RawKey)]) -> Result<Vec<Option<KeyDump>>> {
    let reads: Vec<(RawKey, Read)> = keys
        .iter()
        .flat_map(|(kind, key)| [(key.clone(), whole(*kind)), (key.clone(), Read::ExpireTime)])
        .collect();
    let mut replies = tx.read_many(&reads)?.into_iter();
    let mut dumps = Vec::with_capacity(keys.len());
    while let (Some(value), Some(deadline)) = (replies.next(), replies.next()) {
        let (kind, key) = &keys[dumps.len()];
        let (content, deadline) = (content_of(*kind, value?), deadline?);
        dumps.push(content.and_then(|content| dump_with(key, content, deadline)));
    }
    Ok(dumps)
}

/// A long sorted set or list by its ranges, in one transaction.
fn read_ranges(tx: &mut RawTx<'_>, kind: Kind, key: &RawKey) -> Result<Option<KeyDump>> {
    let (length, range): (Read, fn(i64, i64) -> Read) = match kind {
        Kind::SortedSet => (Read::ZCard, |from, to| Read::ZRange(ZSlice::Rank(from, to), false)),
        _ => (Read::LLen, Read::LRange),
    };
    let Reply::Int(length) = tx.read(key, length)? else { return Ok(None) };
    let (mut scored, mut elements) = (Vec::new(), Vec::new());
    // A quarter of what a reply may have: elements may be long.
    let page = REPLY_ELEMENTS_MAX as i64 / 4;
    for from in (0..length).step_by(page as usize) {
        match tx.read(key, range(from, from + page - 1))? {
            Reply::Scored(members) => scored.extend(members),
            Reply::List(more) => elements.extend(more),
            _ => return Ok(None),
        }
    }
    let deadline = tx.read(key, Read::ExpireTime)?;
    let content = if kind == Kind::SortedSet { Content::SortedSet(scored) } else { Content::List(elements) };
    Ok(dump_with(key, content, deadline).filter(|dump| !dump.content.is_empty()))
}

fn dump_with(key: &RawKey, content: Content, deadline: Reply) -> Option<KeyDump> {
    match deadline {
        // It was removed meanwhile.
        Reply::Int(-2) => None,
        Reply::Int(at) => Some(KeyDump { key: key.clone(), content, deadline: (at >= 0).then_some(at) }),
        _ => None,
    }
}

/// `None` where the key is absent.
fn content_of(kind: Kind, reply: Reply) -> Option<Content> {
    let content = match reply {
        Reply::Blob(text) => Content::Text(text),
        Reply::Pairs(fields) => Content::Hash(fields),
        Reply::Scored(members) => Content::SortedSet(members),
        Reply::List(members) if kind == Kind::Set => Content::Set(members),
        Reply::List(members) => Content::List(members),
        _ => return None,
    };
    (!content.is_empty()).then_some(content)
}
