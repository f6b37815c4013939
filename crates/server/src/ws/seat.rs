//! A socket as its room sees it: who sits there, how far it has heard, and the way to it.

use super::ending::Ending;
use super::message::{self, News};
use super::outbox::{Lagging, Outbox, Weight};
use super::view::Views;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Audience, DeviceId, ItemId, RoomSnapshot, PlayerId, SequencedEvent, RoundId};
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// Tells seats of a process apart; the newer is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SeatId(pub(super) u64);

/// Whether a seat needs the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Nothing,
    /// With the next states: a message has said what changed.
    Soon,
    /// As soon as the room's rate allows.
    Now,
}

/// Bytes that a seat was sent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sent {
    pub(super) event_bytes: usize,
    /// 0 = no state.
    pub(super) state_bytes: usize,
}

/// Who sits there.
pub(super) struct Seat {
    pub(super) id: SeatId,
    pub(super) device: DeviceId,
    pub(super) is_master: bool,
    pub(super) has_player: bool,
    /// The last event that it needs to hear nothing of any more.
    pub(super) seen: u64,
    /// The largest sequence in what it was sent since its last state, that one included.
    pub(super) told: u64,
    /// How often signals had been lost before its last state was read.
    pub(super) gaps: u64,
    /// Whether it needs the state: it asked, something changed, or there is doubt about what it has heard.
    pub(super) need: Need,
    /// The votes that it knows of.
    votes: Votes,
    pub(super) outbox: Outbox,
    /// Where its connection waits to hear whether it got the seat.
    pub(super) admitted: Option<oneshot::Sender<bool>>,
}

/// Who has voted on the current item, as far as a seat may know: a master of all players, another seat of its own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Votes {
    item: Option<(RoundId, ItemId)>,
    voters: BTreeSet<PlayerId>,
}

impl Votes {
    fn of(look: &RoomSnapshot, is_master: bool, device: &DeviceId) -> Votes {
        let Some((round, item, voters)) = look.voters() else { return Votes::default() };
        let own = look.player_of(device);
        let known = voters.iter().filter(|player| is_master || own.as_ref() == Some(*player));
        Votes { item: Some((round.clone(), item.clone())), voters: known.cloned().collect() }
    }
}

impl Seat {
    /// A seat of a socket that is sent this look first. `gaps` were counted before it.
    pub(super) fn new(id: SeatId, device: DeviceId, is_master: bool, gaps: u64, look: &RoomSnapshot) -> Seat {
        Seat {
            id,
            is_master,
            has_player: look.player_of(&device).is_some(),
            seen: look.sequence(),
            told: look.sequence(),
            gaps,
            need: Need::Nothing,
            votes: Votes::of(look, is_master, &device),
            device,
            outbox: Outbox::default(),
            admitted: None,
        }
    }

    /// Whether it gets a place in a full room.
    pub(super) fn is_reserved(&self) -> bool {
        self.is_master || self.has_player
    }

    /// It gets no place. A connection that waits for the answer tells its client.
    pub(super) fn refuse(self) {
        match self.admitted {
            Some(admitted) => drop(admitted.send(false)),
            None => self.outbox.end(Ending::Full),
        }
    }

    /// Hands over the events that are new to it, in order, then the state if it needs one of at least `worth`. How many
    /// bytes that is.
    pub(super) fn tell(
        &mut self,
        news: &[News<'_>],
        views: &mut Views<'_>,
        worth: Option<Need>,
    ) -> Result<Sent, Lagging> {
        let look = views.look;
        self.has_player = look.player_of(&self.device).is_some();
        let fresh: Vec<&News<'_>> = news.iter().filter(|new| new.recorded.sequence > self.seen).collect();
        // A seat that has heard more than there is followed a history that is no more.
        if self.seen > look.sequence() || !fresh.is_empty() {
            self.need = Need::Now;
        }
        let heard: Vec<&&News<'_>> = fresh.iter().filter(|new| self.may_hear(new.recorded)).collect();
        let told = heard.iter().filter(|new| new.text.is_some()).map(|new| new.recorded.sequence).max();
        let said = heard.iter().filter_map(|new| Some((new.weight(), new.text.clone()?)));
        let mut said: Vec<(Weight, Utf8Bytes)> = said.collect();
        said.extend(self.new_votes(look).into_iter().map(|text| (Weight::News, text)));
        self.seen = look.sequence();
        let is_due = worth.is_some_and(|worth| self.need >= worth);
        let state = is_due.then(|| views.state(self.is_master, &self.device));
        if said.is_empty() && state.is_none() {
            return Ok(Sent::default());
        }
        let sent = Sent {
            event_bytes: said.iter().map(|(_, text)| text.len()).sum(),
            state_bytes: state.as_ref().map_or(0, |state| state.len()),
        };
        let has_state = state.is_some();
        let fits = self.outbox.tell(said, state)?;
        if has_state {
            (self.told, self.need) = (look.sequence(), Need::Nothing);
        } else {
            self.told = told.unwrap_or(self.told);
            self.need = if fits { self.need } else { Need::Now };
        }
        Ok(sent)
    }

    /// Messages about votes that it may know of and has not heard of. The state follows soon.
    fn new_votes(&mut self, look: &RoomSnapshot) -> Vec<Utf8Bytes> {
        let votes = Votes::of(look, self.is_master, &self.device);
        if votes == self.votes {
            return vec![];
        }
        let known = std::mem::replace(&mut self.votes, votes);
        self.need = self.need.max(Need::Soon);
        let Some((round, item)) = self.votes.item.as_ref().filter(|_| self.is_master) else { return vec![] };
        let is_new = |player: &&PlayerId| known.item != self.votes.item || !known.voters.contains(*player);
        self.votes.voters.iter().filter(is_new).map(|player| message::voted(round, item, player)).collect()
    }

    /// A sign of life that says what the socket was sent.
    pub(super) fn ping(&self) {
        self.outbox.ping(message::ping(self.told));
    }

    fn may_hear(&self, recorded: &SequencedEvent) -> bool {
        match recorded.entry.event.audience() {
            Audience::Everyone => true,
            Audience::Device(device) => *device == self.device,
            Audience::Nobody => false,
        }
    }
}
