//! The frame around every transaction on a room: load, settle, act, settle again, save.
//!
//! 1. *Load*: a room is alive while its state key exists and `expires_at` of its meta has not passed. The
//!    meta of an expired room stays as a tombstone; its other keys are removed. A room of another protocol
//!    version is refused.
//! 2. *Settle*: a vote closes here if its countdown has passed or if every voter has voted. The stored
//!    deadline counts, so it does not matter which client comes first, and no timer is needed.
//! 3. *Act*: the operation. If it fails after something was settled, the transaction is dropped, and a
//!    transaction of its own settles what is due: see `Rooms::enter`.
//! 4. *Settle* again: the operation may have cast the last vote, or removed the last player who had not
//!    voted.
//! 5. *Save*: state, meta, events, and the new expiry of every key.
//!
//! A read that must not write ([`TxMode::ReadOnly`]) gets the room as if it had been settled, and saves
//! nothing.

use crate::party::error::{Error, Result};
use crate::party::event::{CloseReason, Entry, Event};
use crate::party::limits::{PROTOCOL_VERSION, ROOM_LIFE, TOMBSTONE_LIFE};
use crate::party::model::*;
use crate::party::rules::{self, Ballots};
use crate::party::schema::*;
use crate::party::view::RoomSnapshot;
use crate::party::wakeup::Wakeup;
use emberkeep_hot::{self as hot, ReadTx, Tx};
use emberkeep_primitives::Ballot;

/// The largest clock difference between two of our processes. An expiry further ahead was written by another
/// program.
const SKEW_MS_MAX: i64 = 1_000;

/// What a transaction does to the expiry of the room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TxMode {
    /// Extends it, whatever the transaction does.
    KeepAlive,
    /// Extends it only if the room changed.
    KeepAliveIfChanged,
    /// Writes nothing at all: the caller has not proved that it belongs to the room.
    ReadOnly,
}

/// The result of a transaction that was not aborted.
pub(super) enum Outcome<T> {
    /// The room is alive.
    Done(T),
    /// Only the tombstone of the room is left.
    Expired,
}

/// Why a transaction was dropped.
pub(super) enum Abort {
    /// The operation is refused, and nothing is written.
    Refused(Error),
    /// The operation failed, but the room must be settled before the error is returned.
    SettleFirst,
}

impl From<hot::Error> for Abort {
    fn from(error: hot::Error) -> Abort {
        Abort::Refused(error.into())
    }
}

impl From<Error> for Abort {
    fn from(error: Error) -> Abort {
        Abort::Refused(error)
    }
}

/// A room inside a transaction.
pub(super) struct RoomTx {
    pub(super) meta: Meta,
    pub(super) state: State,
    pub(super) now: i64,
    /// When the room expires if this transaction extends its expiry.
    pub(super) until: i64,
    events: Vec<(i64, Event)>,
    mode: TxMode,
    /// Something changed without an event. Clients must be woken.
    changed: bool,
}

/// The body of every transaction on a room.
pub(super) fn run<T>(
    tx: &mut Tx<'_, Room>,
    mode: TxMode,
    act: &dyn Fn(&mut Tx<'_, Room>, &mut RoomTx) -> Result<T>,
) -> std::result::Result<Outcome<T>, Abort> {
    let Some(mut room) = RoomTx::load(tx, mode)? else {
        if mode != TxMode::ReadOnly {
            clear_leftovers(tx)?;
        }
        return Ok(Outcome::Expired);
    };
    let settled = room.settle(tx)?;
    match act(tx, &mut room) {
        Ok(value) => {
            room.settle(tx)?;
            room.save(tx)?;
            Ok(Outcome::Done(value))
        }
        Err(_) if settled && mode != TxMode::ReadOnly => Err(Abort::SettleFirst),
        Err(error) => Err(Abort::Refused(error)),
    }
}

impl RoomTx {
    /// Reads the room; `None` if it has expired.
    fn load(tx: &mut Tx<'_, Room>, mode: TxMode) -> Result<Option<RoomTx>> {
        let code = tx.partition().0;
        let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
        let now = tx.now();
        if now > meta.expires_at {
            return Ok(None);
        }
        check_version(&meta)?;
        // The engine's clock decides whether the state has expired, not ours.
        let Some(state) = tx.get(&ROOM_STATE.key())? else { return Ok(None) };
        let until = end_of(now, meta.expires_at);
        Ok(Some(RoomTx { meta, state, now, until, events: vec![], mode, changed: false }))
    }

    /// Refuses a caller whose key is not this room's.
    pub(super) fn authorize(&self, hash: &str) -> Result<()> {
        if self.meta.is_of(hash) { Ok(()) } else { Err(Error::NotMaster(self.meta.room_code)) }
    }

    /// Adds events to the room's log. Every change of the state needs one: the state is saved only with
    /// events.
    pub(super) fn record(&mut self, events: impl IntoIterator<Item = Event>) {
        let now = self.now;
        self.events.extend(events.into_iter().map(|event| (now, event)));
    }

    /// Makes this transaction extend the room's expiry.
    pub(super) fn keep_alive(&mut self) {
        self.mode = TxMode::KeepAlive;
    }

    /// Wakes the clients although the log has no event for the change.
    pub(super) fn wake(&mut self) {
        self.changed = true;
    }

    /// The room as this transaction reads it, with the expiry that it will have afterwards.
    pub(super) fn snapshot(&self, tx: &mut ReadTx<'_, Room>) -> Result<RoomSnapshot> {
        let expires_at = if self.mode == TxMode::KeepAlive { self.until } else { self.meta.expires_at };
        Ok(RoomSnapshot {
            meta: Meta { expires_at, ..self.meta.clone() },
            state: self.state.clone(),
            now: self.now,
            sequence: self.sequence(tx)?,
            claims: self.claims(tx)?,
            taken: claims(self.until).held(tx)?.into_iter().collect(),
            voters: self.votes(tx)?.into_keys().collect(),
        })
    }

    /// Claims on which both maps agree.
    pub(super) fn claims(&self, tx: &mut ReadTx<'_, Room>) -> Result<Vec<(DeviceId, PlayerId)>> {
        Ok(claims(self.until).all(tx)?)
    }

    /// The ballot of the current item: one that is open or waits for its reveal.
    pub(super) fn ballot(&self) -> Option<Ballot<VOTES, VOTES_RECEIVED>> {
        let (round, item) = rules::current(&self.state)?;
        Some(ballot(&round.round_id, &item.item_id, self.until))
    }

    /// The votes on the current item.
    pub(super) fn votes(&self, tx: &mut ReadTx<'_, Room>) -> Result<Ballots> {
        match self.ballot() {
            Some(ballot) => Ok(ballot.votes(tx)?.into_iter().collect()),
            None => Ok(Ballots::new()),
        }
    }

    /// Closes the open vote if it is due; `true` if it was.
    pub(super) fn settle(&mut self, tx: &mut Tx<'_, Room>) -> Result<bool> {
        if rules::voting(&self.state).is_none() {
            return Ok(false);
        }
        let votes = self.votes(tx)?;
        let (at, reason) = match self.state.closes_at().filter(|at| self.now >= *at) {
            Some(at) => (at, CloseReason::Forced),
            None if rules::is_complete(&self.state, &self.claims(tx)?, &votes) => {
                (self.now, CloseReason::AllVoted)
            }
            None => return Ok(false),
        };
        let event = rules::close(&mut self.state, &votes, at, reason)?;
        self.events.push((at, event));
        Ok(true)
    }

    /// Applies a rule that may move on to another item. The votes on the previous item are removed.
    pub(super) fn advance(
        &mut self,
        tx: &mut Tx<'_, Room>,
        rule: impl FnOnce(&mut State) -> Result<Vec<Event>>,
    ) -> Result<()> {
        let place = |state: &State| {
            let current = rules::current(state);
            current.map(|(round, item)| (round.round_id.clone(), item.item_id.clone()))
        };
        let before = place(&self.state);
        let events = rule(&mut self.state)?;
        self.record(events);
        let after = place(&self.state);
        if before == after {
            return Ok(());
        }
        if let Some((round, item)) = before {
            group().remove(tx, &VOTES.key(round.clone(), item.clone()))?;
            group().remove(tx, &VOTES_RECEIVED.key(round, item))?;
        }
        if let Some((round, item)) = after {
            // Votes that are stored already were cast before the item was open.
            ballot(&round, &item, self.until).clear(tx)?;
        }
        self.enroll(tx)
    }

    /// Enters every key that the room may have into its roster.
    pub(super) fn enroll(&self, tx: &mut Tx<'_, Room>) -> Result<()> {
        let (group, until) = (group(), self.until);
        enroll_common(tx, until)?;
        if let Some((round, item)) = rules::current(&self.state) {
            let (round, item) = (round.round_id.clone(), item.item_id.clone());
            group.join(tx, &VOTES.key(round.clone(), item.clone()), until)?;
            group.join(tx, &VOTES_RECEIVED.key(round, item), until)?;
        }
        Ok(())
    }

    /// Writes the changes and extends the expiry.
    fn save(mut self, tx: &mut Tx<'_, Room>) -> Result<()> {
        let idle = self.events.is_empty() && !self.changed && self.mode == TxMode::KeepAliveIfChanged;
        if idle || self.mode == TxMode::ReadOnly {
            return Ok(());
        }
        if !self.events.is_empty() {
            tx.put_until(&ROOM_STATE.key(), &self.state, self.until)?;
        }
        self.meta.expires_at = self.until;
        tx.put_until(&ROOM_META.key(), &self.meta, self.until + TOMBSTONE_LIFE.as_millis() as i64)?;
        if group().extend(tx, self.until)? == 0 {
            // An external client removed the roster.
            self.enroll(tx)?;
            group().extend(tx, self.until)?;
        }
        let last = match self.append_events(tx)? {
            None if self.changed => Some(log_last(tx)?),
            last => last,
        };
        match last {
            Some(last) => Ok(tx.publish(&ROOM_CHANNEL.key(), &Wakeup::Events { last })?),
            None => Ok(()),
        }
    }

    /// Appends the events to the log and returns the sequence of the last one.
    fn append_events(&mut self, tx: &mut Tx<'_, Room>) -> Result<Option<u64>> {
        let log = ROOM_LOG.key();
        if !self.events.is_empty() && tx.log_last(&log).is_err_and(|error| is_unreadable(&error)) {
            tx.del(&log)?;
        }
        let mut last = None;
        for (at, event) in std::mem::take(&mut self.events) {
            last = Some(tx.append_numbered_until(&log, &Entry { at, event }, self.until)?);
        }
        Ok(last)
    }

    /// Events of this transaction, which the commit adds to the log.
    pub(super) fn unrecorded(&self) -> impl Iterator<Item = Entry> + '_ {
        self.events.iter().map(|(at, event)| Entry { at: *at, event: event.clone() })
    }

    /// The sequence of the newest event, including those that this transaction adds to the log.
    pub(super) fn sequence(&self, tx: &mut ReadTx<'_, Room>) -> Result<u64> {
        let own = if self.mode == TxMode::ReadOnly { 0 } else { self.events.len() as u64 };
        Ok(log_last(tx)? + own)
    }
}

/// Enters the keys that every room may have into its roster.
pub(super) fn enroll_common(tx: &mut Tx<'_, Room>, until: i64) -> Result<()> {
    let group = group();
    group.join(tx, &ROOM_STATE.key(), until)?;
    group.join(tx, &DEVICE_TO_PLAYER.key(), until)?;
    group.join(tx, &PLAYER_TO_DEVICE.key(), until)?;
    group.join(tx, &ROOM_DEVICES.key(), until)?;
    Ok(group.join(tx, &ROOM_LOG.key(), until)?)
}

/// Refuses a room of another protocol version: this version does not know what its state means, and could
/// corrupt it.
pub(super) fn check_version(meta: &Meta) -> Result<()> {
    match meta.protocol_version {
        PROTOCOL_VERSION => Ok(()),
        expected => Err(Error::ProtocolVersion { found: PROTOCOL_VERSION, expected }),
    }
}

/// The newest sequence of the room's log. 0 if an external client left something there that is not a log: the
/// next event begins a new one, so that the room goes on.
pub(super) fn log_last(tx: &mut ReadTx<'_, Room>) -> Result<u64> {
    match tx.log_last(&ROOM_LOG.key()) {
        Err(error) if is_unreadable(&error) => Ok(0),
        last => Ok(last?.sequence),
    }
}

/// Whether an external client left something at a key that no transaction of ours can read.
pub(super) fn is_unreadable(error: &hot::Error) -> bool {
    use hot::Error::{Corrupt, TooLarge, WrongType};
    matches!(error, Corrupt { .. } | WrongType { .. } | TooLarge { .. })
}

/// When a room expires that is used now. `before` is its present expiry.
pub(super) fn end_of(now: i64, before: i64) -> i64 {
    let until = now + ROOM_LIFE.as_millis() as i64;
    // A process whose clock is slightly behind must not shorten the life of the room.
    if (until..until + SKEW_MS_MAX).contains(&before) { before } else { until }
}

/// Removes the remaining keys of an expired room, except its meta.
fn clear_leftovers(tx: &mut Tx<'_, Room>) -> Result<()> {
    let left = tx.exists(&ROOM_STATE.key())?
        || tx.exists(&DEVICE_TO_PLAYER.key())?
        || tx.exists(&PLAYER_TO_DEVICE.key())?
        || tx.exists(&ROOM_DEVICES.key())?
        || tx.exists(&ROOM_LOG.key())?
        || tx.exists(&ROOM_ROSTER.key())?;
    if left { wipe(tx) } else { Ok(()) }
}

/// Removes every key of a room except its meta, even if they are corrupt.
pub(super) fn wipe(tx: &mut Tx<'_, Room>) -> Result<()> {
    // The state names the current item. If it is corrupt, the roster names the keys of the votes.
    let state = match tx.get(&ROOM_STATE.key()) {
        Err(error) if is_unreadable(&error) => None,
        state => state?,
    };
    if let Some((round, item)) = state.as_ref().and_then(rules::current) {
        ballot(&round.round_id, &item.item_id, i64::MAX).clear(tx)?;
    }
    match group().dissolve(tx) {
        // The roster has a wrong type, so it names no other keys.
        Err(hot::Error::WrongType { .. }) => {
            tx.del(&ROOM_ROSTER.key())?;
        }
        dissolved => dissolved?,
    }
    claims(i64::MAX).clear(tx)?;
    tx.del(&ROOM_LOG.key())?;
    tx.del(&ROOM_DEVICES.key())?;
    Ok(tx.del(&ROOM_STATE.key())?)
}
