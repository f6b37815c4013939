//! The frame of every transaction in a room: enter, settle what is due, act, settle again, leave.
//!
//! 1. *Enter*: a room lives while its state does and its meta's `expires_at` has not passed. Of an expired room the meta
//!    stands as a tombstone; whatever else is left of it goes. A room of another version of the protocol is refused.
//! 2. *Settle*: a vote whose countdown has passed, or in which all have voted, ends here, at its stored moment. So it does
//!    not matter who comes first, and nothing waits for a timer.
//! 3. *Act*: the operation. If it refuses after something was settled, the transaction is dropped and what was due is settled
//!    in a transaction of its own, see `Rooms::enter`.
//! 4. *Settle* again: the operation may have been the last vote, or may have taken away who had not voted.
//! 5. *Leave*: state, meta, events, and the new end of every key.
//!
//! A read that must not write ([`Touch::Never`]) sees the room as if what is due had happened, and leaves nothing behind.

use crate::party::error::{Error, Result};
use crate::party::event::{Closing, Entry, Event};
use crate::party::limits::{EVENTS_MAX, PROTOCOL_VERSION, ROOM_LIFE, TOMBSTONE_LIFE};
use crate::party::model::*;
use crate::party::rules::{self, Ballots};
use crate::party::schema::*;
use crate::party::signal::Signal;
use bytes::Bytes;
use emberkeep_hot::{self as hot, Tx};
use emberkeep_primitives::Ballot;

/// Clocks of two processes differ by less; an end that lies further ahead than ours was not written by one of us.
const SKEW_MS_MAX: i64 = 1_000;

/// Whether a transaction moves the end of the room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    /// It does.
    Always,
    /// Only if something happened.
    IfChanged,
    /// Nothing is written at all: the caller is not known to take part.
    Never,
}

/// What a transaction found.
pub(super) enum Found<T> {
    /// A living room.
    Room(T),
    /// What is left of one.
    Expired,
}

/// Why a transaction was dropped.
pub(super) enum Stop {
    /// The operation was refused.
    Refused(Error),
    /// The operation was refused, but something is due in the room.
    SettleFirst,
}

impl From<hot::Error> for Stop {
    fn from(error: hot::Error) -> Stop {
        Stop::Refused(error.into())
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

/// A room during a transaction.
pub(super) struct Visit {
    pub(super) meta: Meta,
    pub(super) state: State,
    pub(super) now: i64,
    /// When the room ends, from now on.
    pub(super) until: i64,
    events: Vec<(i64, Event)>,
    touch: Touch,
    /// Something changed that is no event: clients must look.
    changed: bool,
}

/// The body of every transaction in a room.
pub(super) fn visit<T>(
    tx: &mut Tx<'_, Room>,
    touch: Touch,
    act: &dyn Fn(&mut Tx<'_, Room>, &mut Visit) -> Result<T>,
) -> std::result::Result<Found<T>, Stop> {
    let Some(mut visit) = Visit::enter(tx, touch)? else {
        if touch != Touch::Never {
            clear_leftovers(tx)?;
        }
        return Ok(Found::Expired);
    };
    let settled = visit.settle(tx)?;
    match act(tx, &mut visit) {
        Ok(value) => {
            visit.settle(tx)?;
            visit.leave(tx)?;
            Ok(Found::Room(value))
        }
        Err(_) if settled && touch != Touch::Never => Err(Stop::SettleFirst),
        Err(error) => Err(Stop::Refused(error)),
    }
}

impl Visit {
    /// The room as it is; `None` if it has expired.
    fn enter(tx: &mut Tx<'_, Room>, touch: Touch) -> Result<Option<Visit>> {
        let code = tx.partition().0;
        let meta = tx.get(&ROOM_META.key())?.ok_or(Error::RoomNotFound(code))?;
        let now = tx.now();
        if now > meta.expires_at {
            return Ok(None);
        }
        check_version(&meta)?;
        // Whether it lives is asked of the engine: its clock decides when the state ended.
        let Some(state) = tx.get(&ROOM_STATE.key())? else { return Ok(None) };
        let until = end_of(now, meta.expires_at);
        Ok(Some(Visit { meta, state, now, until, events: vec![], touch, changed: false }))
    }

    /// Refuses whoever does not have this room's key.
    pub(super) fn authorize(&self, hash: &str) -> Result<()> {
        if self.meta.is_of(hash) { Ok(()) } else { Err(Error::NotMaster(self.meta.room_code)) }
    }

    /// Something happened: the state changed, and the log will say so.
    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = Event>) {
        let now = self.now;
        self.events.extend(events.into_iter().map(|event| (now, event)));
    }

    /// The caller takes part in the room, which therefore lives for another day.
    pub(super) fn keep_alive(&mut self) {
        self.touch = Touch::Always;
    }

    /// Something changed that the log does not say. Clients are woken.
    pub(super) fn wake(&mut self) {
        self.changed = true;
    }

    /// Claims that both maps say.
    pub(super) fn claims(&self, tx: &mut Tx<'_, Room>) -> Result<Vec<(DeviceId, PlayerId)>> {
        Ok(claims(self.until).all(tx)?)
    }

    /// The ballot of the item that is voted on, or whose result waits to be shown.
    pub(super) fn ballot(&self) -> Option<Ballot<VOTES, VOTES_RECEIVED>> {
        let (round, item) = rules::current(&self.state)?;
        Some(ballot(&round.round_id, &item.item_id, self.until))
    }

    /// Votes on the item that is on.
    pub(super) fn votes(&self, tx: &mut Tx<'_, Room>) -> Result<Ballots> {
        match self.ballot() {
            Some(ballot) => Ok(ballot.votes(tx)?.into_iter().collect()),
            None => Ok(Ballots::new()),
        }
    }

    /// Ends the open vote if it is due; `true` if it was.
    pub(super) fn settle(&mut self, tx: &mut Tx<'_, Room>) -> Result<bool> {
        if rules::voting(&self.state).is_none() {
            return Ok(false);
        }
        let votes = self.votes(tx)?;
        let (at, reason) = match self.state.closes_at().filter(|at| self.now >= *at) {
            Some(at) => (at, Closing::Forced),
            None if rules::is_complete(&self.state, &self.claims(tx)?, &votes) => {
                (self.now, Closing::AllVoted)
            }
            None => return Ok(false),
        };
        let event = rules::close(&mut self.state, &votes, at, reason)?;
        self.events.push((at, event));
        Ok(true)
    }

    /// Changes the state by a rule that may leave an item behind; the votes on it go.
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
        self.tell(events);
        let after = place(&self.state);
        if before == after {
            return Ok(());
        }
        if let Some((round, item)) = before {
            group().remove(tx, &VOTES.key(round.clone(), item.clone()))?;
            group().remove(tx, &VOTES_RECEIVED.key(round, item))?;
        }
        if let Some((round, item)) = after {
            // Whatever stands there was cast before the item was open.
            ballot(&round, &item, self.until).clear(tx)?;
        }
        self.enroll(tx)
    }

    /// Names every key that the room may have.
    pub(super) fn enroll(&self, tx: &mut Tx<'_, Room>) -> Result<()> {
        let (group, until) = (group(), self.until);
        group.join(tx, &ROOM_STATE.key(), until)?;
        group.join(tx, &DEVICE_TO_PLAYER.key(), until)?;
        group.join(tx, &PLAYER_TO_DEVICE.key(), until)?;
        group.join(tx, &ROOM_DEVICES.key(), until)?;
        if let Some((round, item)) = rules::current(&self.state) {
            let (round, item) = (round.round_id.clone(), item.item_id.clone());
            group.join(tx, &VOTES.key(round.clone(), item.clone()), until)?;
            group.join(tx, &VOTES_RECEIVED.key(round, item), until)?;
        }
        Ok(())
    }

    /// Writes what happened, and moves the end of the room.
    fn leave(mut self, tx: &mut Tx<'_, Room>) -> Result<()> {
        let idle = self.events.is_empty() && !self.changed && self.touch == Touch::IfChanged;
        if idle || self.touch == Touch::Never {
            return Ok(());
        }
        if !self.events.is_empty() {
            tx.put_until(&ROOM_STATE.key(), &self.state, self.until)?;
        }
        self.meta.expires_at = self.until;
        tx.put_until(&ROOM_META.key(), &self.meta, self.until + TOMBSTONE_LIFE.as_millis() as i64)?;
        if group().extend(tx, self.until)? == 0 {
            // An external client took the roster away.
            self.enroll(tx)?;
            group().extend(tx, self.until)?;
        }
        let mut last = None;
        for (at, event) in std::mem::take(&mut self.events) {
            last = Some(tx.record_until(entry(at, event)?, EVENTS_MAX, self.until)?);
        }
        let last = match last {
            None if self.changed => Some(tx.log_last()?),
            last => last,
        };
        match last {
            Some(last) => Ok(tx.publish(&ROOM_CHANNEL.key(), &Signal::Events { last })?),
            None => Ok(()),
        }
    }

    /// Events of this transaction, which are recorded when it leaves.
    pub(super) fn unrecorded(&self) -> impl Iterator<Item = Entry> + '_ {
        self.events.iter().map(|(at, event)| Entry { at: *at, event: event.clone() })
    }

    /// The newest event, those of this transaction included if they are recorded when it leaves.
    pub(super) fn sequence(&self, tx: &mut Tx<'_, Room>) -> Result<u64> {
        let own = if self.touch == Touch::Never { 0 } else { self.events.len() as u64 };
        Ok(tx.log_last()? + own)
    }
}

/// Refuses a room of another version: what its state means is not known here, and a transaction could spoil it.
pub(super) fn check_version(meta: &Meta) -> Result<()> {
    match meta.protocol_version {
        PROTOCOL_VERSION => Ok(()),
        expected => Err(Error::ProtocolVersion { found: PROTOCOL_VERSION, expected }),
    }
}

/// An event as the log stores it.
pub(super) fn entry(at: i64, event: Event) -> Result<Bytes> {
    let json = serde_json::to_vec(&Entry { at, event });
    json.map(Bytes::from).map_err(|error| Error::invalid("event", error.to_string()))
}

/// When a room ends that is used now.
pub(super) fn end_of(now: i64, before: i64) -> i64 {
    let until = now + ROOM_LIFE.as_millis() as i64;
    // A process whose clock is a little behind does not make the room end earlier.
    if (until..until + SKEW_MS_MAX).contains(&before) { before } else { until }
}

/// Removes what is left of an expired room, but for its meta.
fn clear_leftovers(tx: &mut Tx<'_, Room>) -> Result<()> {
    let left = tx.exists(&ROOM_STATE.key())?
        || tx.exists(&DEVICE_TO_PLAYER.key())?
        || tx.exists(&PLAYER_TO_DEVICE.key())?
        || tx.exists(&ROOM_DEVICES.key())?
        || tx.exists(&ROOM_ROSTER.key())?;
    if left { wipe(tx) } else { Ok(()) }
}

/// Removes every key of a room but its meta, whatever state they are in.
pub(super) fn wipe(tx: &mut Tx<'_, Room>) -> Result<()> {
    // A state that cannot be read names no item: then the roster does.
    let state = match tx.get(&ROOM_STATE.key()) {
        Err(hot::Error::Corrupt { .. } | hot::Error::WrongType { .. } | hot::Error::TooLarge { .. }) => None,
        state => state?,
    };
    if let Some((round, item)) = state.as_ref().and_then(rules::current) {
        ballot(&round.round_id, &item.item_id, i64::MAX).clear(tx)?;
    }
    match group().dissolve(tx) {
        // A roster that is none says nothing of other keys.
        Err(hot::Error::WrongType { .. }) => {
            tx.drop_log()?;
            tx.del(&ROOM_ROSTER.key())?;
        }
        dissolved => dissolved?,
    }
    claims(i64::MAX).clear(tx)?;
    tx.del(&ROOM_DEVICES.key())?;
    Ok(tx.del(&ROOM_STATE.key())?)
}
