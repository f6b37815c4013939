//! A socket as its room sees it: who sits there, how far it has heard, and its queue.

use super::message::{self, News};
use axum::extract::ws::Utf8Bytes;
use emberkeep_games::party::{Audience, DeviceId, Look, Recorded};
use tokio::sync::mpsc;

/// Tells seats of a process apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SeatId(pub(super) u64);

/// What a socket is to send.
#[derive(Debug, Clone)]
pub(super) enum Outgoing {
    Text(Utf8Bytes),
    /// The last thing: a close frame.
    Close(Ending),
}

/// Why a server ends a connection, as its close frame says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    RoomClosed,
    RoomExpired,
    ServerEnds,
    TooSlow,
    Replaced,
    Idle,
    NoJoin,
    TooMuch,
    Unreadable,
}

impl Ending {
    /// The code and the reason of the close frame.
    pub(super) fn frame(self) -> (u16, &'static str) {
        match self {
            Ending::RoomClosed => (1000, "room closed"),
            Ending::RoomExpired => (1000, "room expired"),
            Ending::ServerEnds => (1001, "server ends; connect again"),
            Ending::Unreadable => (1003, "text messages only"),
            Ending::TooMuch => (1008, "too many messages"),
            Ending::NoJoin => (1008, "expected JOIN_ROOM as the first message"),
            Ending::TooSlow => (1013, "too slow; connect again"),
            Ending::Idle => (4000, "no sign of life"),
            Ending::Replaced => (4001, "another connection of this device"),
        }
    }
}

/// Who sits there.
pub(super) struct Seat {
    pub(super) id: SeatId,
    pub(super) device: DeviceId,
    pub(super) is_master: bool,
    /// The last event that it has heard of.
    pub(super) seen: u64,
    pub(super) queue: mpsc::Sender<Outgoing>,
}

/// The socket does not keep up, or is gone.
pub(super) struct Lagging;

impl Seat {
    pub(super) fn send(&self, text: Utf8Bytes) -> Result<(), Lagging> {
        self.queue.try_send(Outgoing::Text(text)).map_err(|_| Lagging)
    }

    /// The state, as this seat may see it.
    pub(super) fn state(&self, look: &Look) -> Utf8Bytes {
        match self.is_master {
            true => message::sync(&look.master(Some(&self.device))),
            false => message::sync(&look.player(Some(&self.device))),
        }
    }

    /// Hands over the events that are new to it, in order, then the state if one of them changed it.
    pub(super) fn tell(&mut self, news: &[News<'_>], look: Option<&Look>) -> Result<(), Lagging> {
        let mut state_changed = false;
        for new in news.iter().filter(|new| new.recorded.sequence > self.seen) {
            state_changed |= new.changes_state();
            match &new.text {
                Some(text) if self.may_hear(new.recorded) => self.send(text.clone())?,
                _ => {}
            }
        }
        if let (true, Some(look)) = (state_changed, look) {
            self.send(self.state(look))?;
        }
        self.seen = news.last().map_or(self.seen, |last| last.recorded.sequence.max(self.seen));
        Ok(())
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
