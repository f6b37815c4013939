//! A connection as its hub sees it: position in the log, pending state, and send queue.

use super::close::CloseReason;
use super::send_queue::{Priority, QueueFull, SendQueue};
use super::server_message::{self, EventMessage};
use super::state_cache::StateCache;
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Audience, DeviceId, ItemId, PlayerId, RoomSnapshot, RoundId, SequencedEvent};
use std::collections::BTreeSet;
use tokio::sync::oneshot;

/// Unique in a process; newer ids are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SubscriberId(pub(super) u64);

/// How urgently a subscriber needs the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StateNeed {
    None,
    /// With the next states: a message has already said what changed.
    Soon,
    /// As soon as the room's rate allows.
    Now,
}

/// Bytes that were queued for a subscriber.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SentBytes {
    pub(super) events: usize,
    /// 0 = no state.
    pub(super) state: usize,
}

pub(super) struct Subscriber {
    pub(super) id: SubscriberId,
    pub(super) device: DeviceId,
    pub(super) is_master: bool,
    pub(super) has_player: bool,
    /// The sequence up to which it has been served.
    pub(super) position: u64,
    /// The largest sequence that it was sent, in an event or a state.
    pub(super) last_sent: u64,
    /// The count of gaps before its last state was read.
    pub(super) gaps: u64,
    /// Set by a request, by a change, or if it may have missed something.
    pub(super) need: StateNeed,
    /// The votes that its client was sent.
    votes: Votes,
    pub(super) queue: SendQueue,
    /// Receives whether the hub accepted the subscriber.
    pub(super) accepted: Option<oneshot::Sender<bool>>,
}

/// Votes on the current item that a subscriber may see: a master all, others only their own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Votes {
    item: Option<(RoundId, ItemId)>,
    voters: BTreeSet<PlayerId>,
}

impl Votes {
    fn of(look: &RoomSnapshot, is_master: bool, device: &DeviceId) -> Votes {
        let Some((round, item, voters)) = look.voters() else { return Votes::default() };
        let own = look.player_of(device);
        let visible = voters.iter().filter(|player| is_master || own.as_ref() == Some(*player));
        Votes { item: Some((round.clone(), item.clone())), voters: visible.cloned().collect() }
    }
}

impl Subscriber {
    /// A subscriber whose first state is this one. `gaps` must be read before it.
    pub(super) fn new(
        id: SubscriberId,
        device: DeviceId,
        is_master: bool,
        gaps: u64,
        look: &RoomSnapshot,
    ) -> Subscriber {
        Subscriber {
            id,
            is_master,
            has_player: look.player_of(&device).is_some(),
            position: look.sequence(),
            last_sent: look.sequence(),
            gaps,
            need: StateNeed::None,
            votes: Votes::of(look, is_master, &device),
            device,
            queue: SendQueue::default(),
            accepted: None,
        }
    }

    /// Whether it may replace another subscriber of a full room.
    pub(super) fn has_priority(&self) -> bool {
        self.is_master || self.has_player
    }

    /// Refuses it because the room is full.
    pub(super) fn refuse(self) {
        match self.accepted {
            Some(accepted) => drop(accepted.send(false)),
            None => self.queue.close(CloseReason::Full),
        }
    }

    /// Queues the events that are new to it, in order, then the state if it is needed at least as urgently as
    /// `minimum`.
    pub(super) fn update(
        &mut self,
        events: &[EventMessage<'_>],
        states: &mut StateCache<'_>,
        minimum: Option<StateNeed>,
    ) -> Result<SentBytes, QueueFull> {
        let look = states.look;
        self.has_player = look.player_of(&self.device).is_some();
        let new: Vec<&EventMessage<'_>> =
            events.iter().filter(|event| event.recorded.sequence > self.position).collect();
        // A position ahead of the log: a failover rolled the log back, so the state is sent again.
        if self.position > look.sequence() || !new.is_empty() {
            self.need = StateNeed::Now;
        }
        let visible: Vec<_> = new.into_iter().filter(|event| self.may_see(event.recorded)).collect();
        let last =
            visible.iter().filter(|event| event.text.is_some()).map(|event| event.recorded.sequence).max();
        let messages = visible.iter().filter_map(|event| Some((event.priority(), event.text.clone()?)));
        let mut messages: Vec<(Priority, Utf8Bytes)> = messages.collect();
        messages.extend(self.new_votes(look).into_iter().map(|text| (Priority::Droppable, text)));
        self.position = look.sequence();
        let is_due = minimum.is_some_and(|minimum| self.need >= minimum);
        let state = is_due.then(|| states.state(self.is_master, &self.device));
        if messages.is_empty() && state.is_none() {
            return Ok(SentBytes::default());
        }
        let sent = SentBytes {
            events: messages.iter().map(|(_, text)| text.len()).sum(),
            state: state.as_ref().map_or(0, |state| state.len()),
        };
        let has_state = state.is_some();
        let fits = self.queue.push(messages, state)?;
        if has_state {
            (self.last_sent, self.need) = (look.sequence(), StateNeed::None);
        } else {
            self.last_sent = last.unwrap_or(self.last_sent);
            self.need = if fits { self.need } else { StateNeed::Now };
        }
        Ok(sent)
    }

    /// Messages about votes that it may see and was not sent. The state follows soon.
    fn new_votes(&mut self, look: &RoomSnapshot) -> Vec<Utf8Bytes> {
        let votes = Votes::of(look, self.is_master, &self.device);
        if votes == self.votes {
            return vec![];
        }
        let before = std::mem::replace(&mut self.votes, votes);
        self.need = self.need.max(StateNeed::Soon);
        let Some((round, item)) = self.votes.item.as_ref().filter(|_| self.is_master) else { return vec![] };
        let is_new = |player: &&PlayerId| before.item != self.votes.item || !before.voters.contains(*player);
        self.votes
            .voters
            .iter()
            .filter(is_new)
            .map(|player| server_message::player_voted(round, item, player))
            .collect()
    }

    /// Queues the last sequence that it was sent.
    pub(super) fn ping(&self) {
        self.queue.ping(server_message::ping(self.last_sent));
    }

    fn may_see(&self, recorded: &SequencedEvent) -> bool {
        match recorded.entry.event.audience() {
            Audience::Everyone => true,
            Audience::Device(device) => *device == self.device,
            Audience::None => false,
        }
    }
}
