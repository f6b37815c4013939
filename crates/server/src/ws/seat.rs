//! A socket as its room sees it: who sits there, how far it has heard, and the way to it.

use super::message::{self, News};
use super::outbox::{Lagging, Outbox, Weight};
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Audience, DeviceId, Look, Recorded};

/// Tells seats of a process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeatId(pub(super) u64);

/// Who sits there.
pub(super) struct Seat {
    pub(super) id: SeatId,
    pub(super) device: DeviceId,
    pub(super) is_master: bool,
    /// The last event that it needs to hear nothing of any more.
    pub(super) seen: u64,
    /// The largest sequence in what it was sent since its last state, that one included.
    pub(super) told: u64,
    /// How often signals had been lost before its last state was read.
    pub(super) gaps: u64,
    /// It is owed the state, whatever the news are: it asked, or there is doubt about what it has heard.
    pub(super) wants_state: bool,
    pub(super) outbox: Outbox,
}

impl Seat {
    /// A seat of a socket that is sent this look first. `gaps` were counted before it.
    pub(super) fn new(id: SeatId, device: DeviceId, is_master: bool, gaps: u64, look: &Look) -> Seat {
        let (seen, told) = (look.sequence(), look.sequence());
        Seat { id, device, is_master, seen, told, gaps, wants_state: false, outbox: Outbox::default() }
    }

    /// The state, as this seat may see it.
    fn state(&self, look: &Look) -> Utf8Bytes {
        match self.is_master {
            true => message::sync(&look.master(Some(&self.device))),
            false => message::sync(&look.player(Some(&self.device))),
        }
    }

    /// Hands over the events that are new to it, in order, then the state if one of them changed it.
    pub(super) fn tell(&mut self, news: &[News<'_>], look: &Look) -> Result<(), Lagging> {
        let fresh = || news.iter().filter(|new| new.recorded.sequence > self.seen);
        // A seat that has heard more than there is followed a history that is no more.
        let changed = self.wants_state || self.seen > look.sequence() || fresh().any(News::changes_state);
        let heard: Vec<&News<'_>> = fresh().filter(|new| self.may_hear(new.recorded)).collect();
        let told = heard.iter().filter(|new| new.text.is_some()).map(|new| new.recorded.sequence).max();
        let said = heard.iter().filter_map(|new| Some((new.weight(), new.text.clone()?)));
        let said: Vec<(Weight, Utf8Bytes)> = said.collect();
        if said.is_empty() && !changed {
            self.seen = look.sequence();
            return Ok(());
        }
        let state_sent = self.outbox.tell(said, changed, || self.state(look))?;
        self.told = if state_sent { look.sequence() } else { told.unwrap_or(self.told) };
        (self.seen, self.wants_state) = (look.sequence(), false);
        Ok(())
    }

    /// A sign of life that says what the socket was sent.
    pub(super) fn ping(&self) {
        self.outbox.ping(message::ping(self.told));
    }

    fn may_hear(&self, recorded: &Recorded) -> bool {
        match recorded.entry.event.audience() {
            Audience::Everyone => true,
            Audience::Master => self.is_master,
            Audience::Device(device) => *device == self.device,
            Audience::Nobody => false,
        }
    }
}
