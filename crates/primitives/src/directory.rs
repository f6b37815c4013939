//! A directory of entities that live in one of several partitions: where each is, and under which number.
//!
//! No transaction reaches two partitions. So an entity that changes its partition is for a moment in neither or, after a
//! crash, could be in both. The directory decides: it is a key in a partition of the entity's own, with a number that
//! grows with each claim. What a partition has of an entity carries the number under which it came there.
//!
//! Promises:
//! 1. Each claim, departure and end gets a number greater than all earlier ones. It is at least the engine's microseconds
//!    since 1970, so it also grows after the entry was lost, unless the clock is behind its last number. [`admit`] finds
//!    that: claim again with [`Claim::above`].
//! 2. A partition that [`admit`]ted a number refuses every lower one: what comes late, by mail or from a caller that was
//!    paused, has no effect.
//! 3. [`Placement::behind`] names every partition that may have state of an earlier number, until the holder of the
//!    present number has ended it there and calls [`settle`]. A crash in between loses none of them.
//! 4. [`Placement::standing`] says what becomes of state that a sweep finds, whatever was lost: for each entity at most one
//!    state is current, and a departure that was begun is finished or superseded.
//! 5. State that was kept under a number of its own ([`Standing::Departing`]) is never lost: [`confirm`] brings back an entry
//!    that ended or moved under a lower one. Who ends what is behind a claim therefore heeds [`AdmitError::Superseded`]: the
//!    state there may be newer than the claim. It claims again with [`Claim::above`], or what it wanted to end lives.
//! 6. State is over only if it is [`Standing::Superseded`]: the entry that [`confirm`] returns may be departing from the very
//!    place, because the departure began in between.
//!
//! Keys, the caller's, linked by [`Directory`]: in the entity's partition the entry; in each home the highest number that
//! was admitted (a string). Both must live longer than a letter or a paused caller can be late.
//!
//! ```
//! use emberkeep_hot::{Store, embedded::Embedded};
//! use emberkeep_primitives::directory::{self, Claim, Directory, DirectoryEntry, State};
//! use emberkeep_schema::{Json, Key, Name, Number, Text, family, partition};
//!
//! partition! {
//!     /// One hero.
//!     pub struct Hero(Name) as "hero";
//! }
//! partition! {
//!     /// One realm.
//!     pub struct Realm(Name) as "realm";
//! }
//! family! {
//!     /// Where a hero is.
//!     pub WHERE = "ember:where:{hero}" {
//!         kind: Text<Json<DirectoryEntry>>, partition: Hero, parts: (), ttl: persistent, owner: "docs" }
//! }
//! family! {
//!     /// The highest number of a hero.
//!     pub ADMITTED = "ember:admitted:{realm}:{hero}" {
//!         kind: Text<Number<i64>>, partition: Realm, parts: (hero: Name), ttl: persistent, owner: "docs" }
//! }
//! struct Heroes;
//! impl Directory for Heroes {
//!     type Entity = Hero;
//!     type Home = Realm;
//!     type Entry = WHERE;
//!     type Admitted = ADMITTED;
//!     fn entry() -> Key<WHERE> {
//!         WHERE.key()
//!     }
//!     fn admitted(hero: &Hero) -> Key<ADMITTED> {
//!         ADMITTED.key(&hero.0)
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
//! let [ann, north, south] = ["ann", "north", "south"].map(|name| Name::new(name).expect("a word"));
//! let (ann, north, south) = (Hero(ann), Realm(north), Realm(south));
//! let entry = store.scope(ann.clone());
//! let claim = |home: &Realm| {
//!     let claim = Claim::new(home.clone(), "login");
//!     entry.transact(move |tx| directory::claim::<Heroes>(tx, &claim))
//! };
//! let (first, second) = (claim(&north).await?, claim(&south).await?);
//! assert_eq!(second.behind, [north.clone()], "what is there has to be ended");
//! let left = store.scope(north.clone());
//! let admit = |number| {
//!     let hero = ann.clone();
//!     left.transact(move |tx| directory::admit::<Heroes>(tx, &hero, number))
//! };
//! assert!(admit(second.number).await.is_ok(), "from now on the first claim has no effect there");
//! assert!(admit(first.number).await.is_err());
//! let settled = entry.transact(move |tx| directory::settle::<Heroes>(tx, second.number)).await?;
//! assert!(settled);
//! let found = entry.read(directory::find::<Heroes>).await?.expect("an entry");
//! assert_eq!((found.home, found.state), (south, State::Here));
//! # Ok(())
//! # }
//! ```

use emberkeep_hot::{Error, ReadTx, Result, Tx};
use emberkeep_schema::{Automatic, Family, Json, Key, Number, Partition, Text, record};

record! {
    /// An entry as stored. Partitions are texts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DirectoryEntry {
        /// Where the entity is, or is on its way to.
        pub home: String => "home",
        /// The number of the last claim, departure or end.
        pub number: i64 => "number",
        /// Whose claim it is, in the caller's words.
        pub owner: String => "owner",
        /// When it was claimed, in milliseconds since 1970. No two claims of an entity have the same.
        pub since_ms: i64 => "since",
        /// Where it is leaving from, while it is on its way.
        pub from: Option<String> => "from" optional,
        /// It is nowhere any more.
        pub ended: bool => "ended" or false,
        /// Partitions that may have state of earlier numbers.
        pub behind: Vec<String> => "behind" default,
    }
}

/// Links the keys of a directory. A game implements it on a marker type.
pub trait Directory: Send + Sync + 'static {
    /// The partition of one entity's entry.
    type Entity: Partition;
    /// The partition of one home: the shards, realms or servers between which entities move.
    type Home: Partition;
    /// The family of the entry that says where an entity is.
    type Entry: Family<Partition = Self::Entity, Kind = Text<Json<DirectoryEntry>>, Ttl: Automatic>;
    /// The highest number of an entity that a home admitted.
    type Admitted: Family<Partition = Self::Home, Kind = Text<Number<i64>>, Ttl: Automatic>;

    /// The key of the entry.
    fn entry() -> Key<Self::Entry>;

    /// The key of the highest number of an entity.
    fn admitted(entity: &Self::Entity) -> Key<Self::Admitted>;
}

/// Where an entity is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement<H> {
    /// Its home, the one that it is on its way to, or the last one.
    pub home: H,
    /// The number of the last claim, departure or end; each gets a greater one.
    pub number: i64,
    /// Whose claim it is.
    pub owner: String,
    /// When it was claimed, in milliseconds since 1970.
    pub since_ms: i64,
    /// Whether it is there.
    pub state: State<H>,
    /// Partitions, beside its home, that may have state of earlier numbers.
    pub behind: Vec<H>,
}

/// Whether an entity is at its home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State<H> {
    /// It is there, under the number of the entry.
    Here,
    /// It is on its way there.
    Moving {
        /// Where it left, or is about to leave.
        from: H,
    },
    /// It is nowhere: what a partition still has of it must go.
    Ended,
}

/// A claim of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim<H> {
    /// Where the entity will be.
    pub home: H,
    /// Whose claim it is, in the caller's words.
    pub owner: String,
    /// The number that the entry must have, 0 if there must be none; `None` = any.
    pub expected: Option<i64>,
    /// The new number is greater than this one: that of an [`AdmitError::Superseded`] by an entry that was lost.
    pub above: i64,
    /// The entity ends instead: it will be nowhere.
    pub ends: bool,
}

impl<H> Claim<H> {
    /// A claim whatever the entry is.
    pub fn new(home: H, owner: impl Into<String>) -> Claim<H> {
        Claim { home, owner: owner.into(), expected: None, above: 0, ends: false }
    }
}

/// What state that a partition has of an entity is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing<H> {
    /// It is the entity.
    Current,
    /// It is the entity, and the entry is older or was lost: [`confirm`] it.
    Unconfirmed,
    /// It is about to leave under the present number. The caller sends it there, or keeps it under a higher number.
    Departing {
        /// The home to which it departs.
        to: H,
    },
    /// A later claim replaced it: it must go.
    Superseded,
}

/// The entry is not the one that the caller compared with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClaimError {
    /// Its number is another one: read it and decide anew.
    #[error("the entry has number {found}, expected {expected}; read it again")]
    Changed {
        /// The number that it has; 0 = there is none.
        found: i64,
        /// The number with which the caller compared.
        expected: i64,
    },
    /// An error of the store, unchanged: inside a transaction, pass it on with `?`.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A partition does not take state of a number.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdmitError {
    /// It admitted a higher one before.
    #[error("number {number} is superseded by {highest}; what it carries must go")]
    Superseded {
        /// The number that came.
        number: i64,
        /// The highest number that the partition admitted.
        highest: i64,
    },
    /// An error of the store, unchanged: inside a transaction, pass it on with `?`.
    #[error(transparent)]
    Store(#[from] Error),
}

impl<H: Partition> Placement<H> {
    /// What state that `home` has under `number` is worth. 0 = another program wrote it, without a number.
    pub fn standing(found: Option<&Placement<H>>, home: &H, number: i64) -> Standing<H> {
        let Some(entry) = found.filter(|entry| entry.number >= number) else { return Standing::Unconfirmed };
        let is_home = entry.home == *home;
        match &entry.state {
            State::Here if entry.number == number && is_home => Standing::Current,
            // It arrived, and the entry does not say so yet.
            State::Moving { .. } if entry.number == number && is_home => Standing::Unconfirmed,
            State::Moving { from } if from == home => Standing::Departing { to: entry.home.clone() },
            _ => Standing::Superseded,
        }
    }

    /// Whether the entity is at `home` under `number`.
    pub fn is_at(&self, home: &H, number: i64) -> bool {
        self.state == State::Here && self.number == number && self.home == *home
    }

    /// The partitions that may have something of the entity.
    pub fn places(&self) -> Vec<H> {
        let mut places = self.behind.clone();
        if let State::Moving { from } = &self.state {
            push_new(&mut places, from);
        }
        push_new(&mut places, &self.home);
        places
    }
}

fn push_new<H: PartialEq + Clone>(places: &mut Vec<H>, place: &H) {
    if !places.contains(place) {
        places.push(place.clone());
    }
}

/// Where an entity is; `None` if the directory does not know it.
pub fn find<D: Directory>(tx: &mut ReadTx<'_, D::Entity>) -> Result<Option<Placement<D::Home>>> {
    tx.get(&D::entry())?.map(placement).transpose()
}

/// Claims an entity: from this commit on its home is that of the claim. The holder then [`admit`]s the number in each place
/// of [`Placement::behind`] and ends what is there, admits it in the new home, and [`settle`]s.
pub fn claim<D: Directory>(
    tx: &mut Tx<'_, D::Entity>,
    claim: &Claim<D::Home>,
) -> Result<Placement<D::Home>, ClaimError> {
    let former = find::<D>(tx)?;
    let found = former.as_ref().map_or(0, |former| former.number);
    if let Some(expected) = claim.expected.filter(|expected| *expected != found) {
        return Err(ClaimError::Changed { found, expected });
    }
    let mut behind = former.as_ref().map_or_else(Vec::new, Placement::places);
    if former.as_ref().is_some_and(|former| former.state == State::Ended && former.behind.is_empty()) {
        behind.clear();
    }
    if !claim.ends {
        // Its own state replaces what is there, in one commit.
        behind.retain(|place| *place != claim.home);
    }
    let since_ms = former.map_or(i64::MIN, |former| former.since_ms.saturating_add(1)).max(tx.now());
    let placement = Placement {
        home: claim.home.clone(),
        number: next_number(tx, found.max(claim.above))?,
        owner: claim.owner.clone(),
        since_ms,
        state: if claim.ends { State::Ended } else { State::Here },
        behind,
    };
    put::<D>(tx, &placement)?;
    Ok(placement)
}

/// Begins to move an entity that is at its home under `number`.
pub fn depart<D: Directory>(
    tx: &mut Tx<'_, D::Entity>,
    number: i64,
    to: &D::Home,
) -> Result<Placement<D::Home>, ClaimError> {
    let former = find::<D>(tx)?;
    let found = former.as_ref().map_or(0, |former| former.number);
    let Some(former) = former.filter(|former| former.number == number && former.state != State::Ended) else {
        return Err(ClaimError::Changed { found, expected: number });
    };
    let mut behind = former.behind;
    if let State::Moving { from } = &former.state {
        push_new(&mut behind, from);
    }
    let placement = Placement {
        number: next_number(tx, number)?,
        state: State::Moving { from: former.home },
        home: to.clone(),
        behind,
        ..former
    };
    put::<D>(tx, &placement)?;
    Ok(placement)
}

/// Says that nothing of earlier numbers is left. `false` = the number is not the present one any more.
pub fn settle<D: Directory>(tx: &mut Tx<'_, D::Entity>, number: i64) -> Result<bool> {
    let Some(mut entry) = find::<D>(tx)?.filter(|entry| entry.number == number) else { return Ok(false) };
    if !entry.behind.is_empty() {
        entry.behind.clear();
        put::<D>(tx, &entry)?;
    }
    Ok(true)
}

/// Says that an entity is at `home` under `number`: it has arrived, it stayed, or its entry was lost. The entry begins to live
/// anew. Returns the entry: [`Placement::is_at`] says whether the state at `home` is the entity. It is not if the entry has a
/// higher number, or ended under this one.
pub fn confirm<D: Directory>(
    tx: &mut Tx<'_, D::Entity>,
    home: &D::Home,
    number: i64,
    owner: &str,
    since_ms: i64,
) -> Result<Placement<D::Home>> {
    let found = find::<D>(tx)?;
    let mut entry = match found {
        Some(entry) if entry.number > number => return Ok(entry),
        Some(entry) if entry.number == number && entry.home != *home => return Ok(entry),
        Some(entry) => entry,
        None => Placement {
            home: home.clone(),
            number,
            owner: owner.to_owned(),
            since_ms,
            state: State::Here,
            behind: vec![],
        },
    };
    let is_newer = entry.number < number;
    if is_newer {
        entry.behind = entry.places();
        entry.behind.retain(|place| place != home);
        (entry.home, entry.number, entry.owner) = (home.clone(), number, owner.to_owned());
        entry.since_ms = entry.since_ms.max(since_ms);
    }
    // What ended under this very number stays ended.
    if is_newer || entry.state != State::Ended {
        entry.state = State::Here;
    }
    put::<D>(tx, &entry)?;
    Ok(entry)
}

/// Says that an entity is nowhere, unless the entry has another number. `true` = so it is stored.
pub fn end<D: Directory>(tx: &mut Tx<'_, D::Entity>, number: i64) -> Result<bool> {
    let Some(mut entry) = find::<D>(tx)?.filter(|entry| entry.number == number) else { return Ok(false) };
    entry.behind.clear();
    entry.state = State::Ended;
    put::<D>(tx, &entry)?;
    Ok(true)
}

/// Lets state of a number into a home, and from then on none of a lower one.
pub fn admit<D: Directory>(
    tx: &mut Tx<'_, D::Home>,
    entity: &D::Entity,
    number: i64,
) -> Result<(), AdmitError> {
    let key = D::admitted(entity);
    match tx.get(&key)? {
        Some(highest) if highest > number => Err(AdmitError::Superseded { number, highest }),
        _ => Ok(tx.put(&key, &number)?),
    }
}

/// The number after `last`: greater than that, and at least the engine's microseconds.
fn next_number<P: Partition>(tx: &mut Tx<'_, P>, last: i64) -> Result<i64> {
    let next = last.checked_add(1).ok_or_else(|| Error::Invalid {
        what: "number of a directory",
        problem: format!("{last} has no successor; an external client wrote it, delete the key"),
    })?;
    Ok(next.max(tx.now().saturating_mul(1_000)))
}

fn placement<H: Partition>(entry: DirectoryEntry) -> Result<Placement<H>> {
    let state = match (&entry.from, entry.ended) {
        (_, true) => State::Ended,
        (Some(from), false) => State::Moving { from: parse(from)? },
        (None, false) => State::Here,
    };
    let behind = entry.behind.iter().map(|place| parse(place)).collect::<Result<_>>()?;
    let DirectoryEntry { home, number, owner, since_ms, .. } = entry;
    Ok(Placement { home: parse(&home)?, number, owner, since_ms, state, behind })
}

fn parse<H: Partition>(text: &str) -> Result<H> {
    H::parse(text).ok_or_else(|| Error::Corrupt {
        key: "an entry of a directory".into(),
        reason: format!("{text:?} is not a {}", H::NAME),
    })
}

fn put<D: Directory>(tx: &mut Tx<'_, D::Entity>, placement: &Placement<D::Home>) -> Result<()> {
    let Placement { home, number, owner, since_ms, state, behind } = placement;
    let entry = DirectoryEntry {
        from: if let State::Moving { from } = state { Some(text(from)) } else { None },
        ended: *state == State::Ended,
        behind: behind.iter().map(text).collect(),
        ..DirectoryEntry::new(text(home), *number, owner.clone(), *since_ms)
    };
    tx.put(&D::entry(), &entry)
}

fn text(partition: &impl Partition) -> String {
    let mut text = Vec::new();
    partition.write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
