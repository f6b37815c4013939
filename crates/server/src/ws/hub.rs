//! A room in this process: its seats, and how far they have heard.
//!
//! 1. A seat enters with the sequence of the state that its socket was sent; it hears everything after that, once.
//! 2. Signals are only reasons to look, also that of a room's end: the log and the state say what happened. Reasons that come
//!    in a burst are one look.
//! 3. A look is one transaction of the store: what is due happens, and what is new comes with the state that it led to. Where the
//!    news are not whole, or signals were lost, every seat is sent the state.
//! 4. Every [`LOOK_EVERY`](crate::limits::LOOK_EVERY) the room is looked at without a reason, and every seat is told what it
//!    was sent last: a lost message is found, by a server and by a client.
//! 5. Events go out at once, states at a rate: the first change at once, later ones merged into one state every
//!    [`ROOM_STATE_EVERY`](crate::limits::ROOM_STATE_EVERY), less often where all states of the room together are large. Votes are
//!    told by messages, so that states with them wait for the next change or the next time.
//! 6. A vote whose deadline passes is settled by whichever hub is first; the others hear of it through the log.
//!
//! Budget: one transaction per look. Ends with its last seat, with its room, or with the server.

use super::ending::Ending;
use super::message::News;
use super::registry::{Registry, Which};
use super::seat::{Need, Seat, SeatId, Sent};
use super::view::Views;
use crate::limits::{ROOM_BYTES_PER_SECOND, ROOM_SOCKETS_MAX, ROOMS_RETRY, SEATS_TOLD_AT_ONCE};
use emberkeep_games::party::{Error, RoomUpdate, RoomSnapshot};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// What a hub is told.
pub(super) enum Told {
    Enter(Box<Seat>),
    Leave(SeatId),
    /// A seat asks for the state.
    Show(SeatId),
    /// A test wants to see what becomes of a hub that panics.
    #[cfg(test)]
    Panic,
}

pub(super) struct Hub {
    which: Which,
    registry: Registry,
    told: mpsc::UnboundedReceiver<Told>,
    heard: watch::Receiver<()>,
    seats: HashMap<SeatId, Seat>,
    /// The event after which the next look begins.
    at: u64,
    /// When something is due, or the store is asked again.
    look_at: Option<Instant>,
    /// Before it no state is sent.
    states_from: Instant,
    /// When states are sent that wait.
    states_at: Option<Instant>,
    /// Bytes of events since the last states. The interval after the next states pays for them.
    event_bytes: usize,
}

impl Hub {
    pub(super) fn new(
        which: Which,
        registry: Registry,
        told: mpsc::UnboundedReceiver<Told>,
        heard: watch::Receiver<()>,
    ) -> Hub {
        let (seats, states_from) = (HashMap::new(), Instant::now());
        Hub {
            which,
            registry,
            told,
            heard,
            seats,
            at: 0,
            look_at: None,
            states_from,
            states_at: None,
            event_bytes: 0,
        }
    }

    /// Lives until its last seat leaves, its room ends, or the server does.
    pub(super) async fn run(mut self) {
        let every = self.registry.rhythm().look_every;
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (look_at, states_at) = (self.look_at, self.states_at);
            let turn = tokio::select! {
                told = self.told.recv() => match told {
                    Some(told) => self.seat(told).await,
                    None => return,
                },
                changed = self.heard.changed() => match changed {
                    Ok(()) => self.catch_up().await,
                    Err(_) => return,
                },
                () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => self.catch_up().await,
                () = sleep_until(states_at.unwrap_or_else(Instant::now)), if states_at.is_some() => self.catch_up().await,
                _ = tick.tick() => self.look_around().await,
            };
            if let Err(ending) = turn {
                self.registry.forget(self.which);
                return self.end(ending);
            }
            if self.seats.is_empty() && self.registry.forget_if_idle(self.which, &self.told) {
                return;
            }
        }
    }

    /// Who came, went or asked since the last turn. Then everybody is told what is new: a seat may have entered after the
    /// signal of what happened since its state.
    async fn seat(&mut self, told: Told) -> Result<(), Ending> {
        let mut next = Some(told);
        while let Some(told) = next {
            match told {
                Told::Enter(seat) => self.enter(*seat),
                Told::Leave(id) => drop(self.seats.remove(&id)),
                #[cfg(test)]
                Told::Panic => panic!("as the test asked"),
                Told::Show(id) => {
                    if let Some(seat) = self.seats.get_mut(&id) {
                        seat.need = Need::Now;
                    }
                }
            }
            next = self.told.try_recv().ok();
        }
        self.catch_up().await
    }

    fn enter(&mut self, seat: Seat) {
        let older = self.seats.values().find(|held| held.device == seat.device).map(|held| held.id);
        if let Some(older) = older.and_then(|id| self.seats.remove(&id)) {
            older.outbox.end(Ending::Replaced);
        }
        if self.seats.len() >= ROOM_SOCKETS_MAX {
            let looking_on = self.seats.values().filter(|held| !held.is_reserved()).map(|held| held.id).max();
            match looking_on.filter(|_| seat.is_reserved()).and_then(|id| self.seats.remove(&id)) {
                Some(looking_on) => looking_on.outbox.end(Ending::Full),
                None => return seat.refuse(),
            }
        }
        let mut seat = seat;
        if let Some(admitted) = seat.admitted.take() {
            // Its connection may be gone: then it says that it leaves.
            let _ = admitted.send(true);
        }
        // Whoever has heard less than the others gets the rest; those pass over what they know.
        self.at = if self.seats.is_empty() { seat.seen } else { self.at.min(seat.seen) };
        self.seats.insert(seat.id, seat);
    }

    async fn look_around(&mut self) -> Result<(), Ending> {
        self.catch_up().await?;
        self.seats.values().for_each(Seat::ping);
        Ok(())
    }

    /// Looks at the room, and hands what is new to the seats.
    async fn catch_up(&mut self) -> Result<(), Ending> {
        if self.seats.is_empty() {
            return Ok(());
        }
        let gaps = self.registry.gaps();
        match self.registry.rooms().follow(self.which.code, self.at).await {
            // The code was used again.
            Ok(followed) if followed.snapshot.created_at() != self.which.created_at => Err(Ending::RoomClosed),
            Ok(followed) => {
                self.look_at = due(&followed.snapshot);
                self.hand_out(&followed, gaps).await;
                Ok(())
            }
            Err(Error::RoomNotFound(_)) => Err(Ending::RoomClosed),
            Err(Error::RoomExpired(_)) => Err(Ending::RoomExpired),
            Err(Error::ProtocolVersion { .. }) => Err(Ending::OtherVersion),
            Err(error) => {
                tracing::warn!(room = %self.which.code, "cannot follow a room: {error}");
                self.look_at = Some(Instant::now() + ROOMS_RETRY);
                Ok(())
            }
        }
    }

    /// Tells every seat, in which others get their turn now and then.
    async fn hand_out(&mut self, followed: &RoomUpdate, gaps: u64) {
        let news: Vec<News<'_>> = followed.events.iter().map(News::of).collect();
        let (look, worth, mut views) = (&followed.snapshot, self.worth(), Views::of(&followed.snapshot));
        self.at = look.sequence();
        let (mut ended, mut too_slow, mut all) = (Vec::new(), 0, Sent::default());
        for (number, seat) in (1..).zip(self.seats.values_mut()) {
            if !followed.is_whole || seat.gaps != gaps {
                seat.need = Need::Now;
            }
            seat.gaps = gaps;
            let is_banned = look.is_banned(&seat.device) && !seat.is_master;
            let ending = match seat.tell(&news, &mut views, worth) {
                Ok(sent) => {
                    all.event_bytes += sent.event_bytes;
                    all.state_bytes += sent.state_bytes;
                    is_banned.then_some(Ending::Banned)
                }
                Err(_) => {
                    too_slow += 1;
                    Some(Ending::TooSlow)
                }
            };
            if let Some(ending) = ending {
                seat.outbox.end(ending);
                ended.push(seat.id);
            }
            if number % SEATS_TOLD_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.registry.metrics().sockets_too_slow.fetch_add(too_slow, Relaxed);
        self.seats.retain(|id, _| !ended.contains(id));
        self.pace(all);
    }

    /// What a seat must need to be sent its state now; `None` if it is too early for any.
    fn worth(&self) -> Option<Need> {
        let now = Instant::now();
        match self.states_at {
            _ if now < self.states_from => None,
            Some(at) if at <= now => Some(Need::Soon),
            _ => Some(Need::Now),
        }
    }

    /// Sets when the next states may leave, and when those leave that wait.
    fn pace(&mut self, sent: Sent) {
        let (now, every) = (Instant::now(), self.registry.rhythm().state_every);
        self.event_bytes += sent.event_bytes;
        // Events alone never put off a state that waits.
        if sent.state_bytes > 0 {
            let bytes = sent.state_bytes + std::mem::take(&mut self.event_bytes);
            let of_bytes = Duration::from_secs(1).mul_f64(bytes as f64 / ROOM_BYTES_PER_SECOND as f64);
            self.states_from = self.states_from.max(now + every.max(of_bytes));
        }
        let need = self.seats.values().map(|seat| seat.need).max().unwrap_or(Need::Nothing);
        self.states_at = match (need, self.states_at) {
            (Need::Nothing, _) => None,
            (Need::Now, _) => Some(self.states_from),
            // The first of them sets the time, so that further votes do not put it off.
            (Need::Soon, Some(at)) if at > now => Some(at),
            (Need::Soon, _) => Some(self.states_from.max(now + every)),
        };
    }

    /// The last word to everybody, also to those on their way in.
    fn end(&mut self, ending: Ending) {
        // A seat that comes later gets a new hub.
        self.told.close();
        while let Ok(told) = self.told.try_recv() {
            if let Told::Enter(seat) = told {
                seat.outbox.end(ending);
            }
        }
        self.seats.values().for_each(|seat| seat.outbox.end(ending));
    }
}

impl Drop for Hub {
    /// A hub that panics ends its sockets: clients connect again and find a new one.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.end(Ending::ServerEnds);
        }
    }
}

/// When the next thing happens in a room by itself, its end included. What was due at the moment of the look has happened;
/// a deadline that still stands then is none that passes.
fn due(look: &RoomSnapshot) -> Option<Instant> {
    let moments = [look.next_deadline(), Some(look.expires_at())].into_iter().flatten();
    let wait = moments.filter_map(|at| at.checked_sub(look.now())).filter(|ms| *ms > 0).min()?;
    // One more, because both ends of the wait were cut to whole milliseconds.
    Instant::now().checked_add(Duration::from_millis(wait as u64 + 1))
}
