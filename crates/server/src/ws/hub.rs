//! A room in this process: its subscribers, and its position in the room's log.
//!
//! 1. A subscriber starts with the sequence of the state that its client was sent. It gets every later event
//!    once.
//! 2. Signals only wake the hub, also the signal of a room's end: log and state say what happened. Signals in
//!    a burst cause one read.
//! 3. A read is one transaction: due events happen, and new events come with the state after them. If the
//!    events are not complete, or signals were lost, every subscriber is sent the state.
//! 4. Every [`ROOM_POLL_EVERY`](crate::limits::ROOM_POLL_EVERY) the room is read without a signal, and every
//!    subscriber is sent its last sequence. So server and client detect a lost message.
//! 5. Events are sent at once, states at a limited rate: the first change at once, later ones merged into one
//!    state every [`ROOM_STATE_EVERY`](crate::limits::ROOM_STATE_EVERY), less often if the states of the room
//!    are large. A vote is sent as a message; its state waits for the next change or the next interval.
//! 6. A vote whose deadline passes is closed by whichever hub is first; the others read it from the log.
//!
//! Budget: one transaction per read. The hub ends with its last subscriber, its room, or the server.

use super::close::CloseReason;
use super::hubs::{Hubs, RoomKey};
use super::server_message::EventMessage;
use super::state_cache::StateCache;
use super::subscriber::{SentBytes, StateNeed, Subscriber, SubscriberId};
use crate::limits::{ROOM_BYTES_PER_SECOND, ROOM_SOCKETS_MAX, ROOMS_RETRY, SUBSCRIBERS_PER_YIELD};
use emberkeep_games::party::{Error, Followed, Look};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// A command to a hub.
pub(super) enum HubCommand {
    Subscribe(Box<Subscriber>),
    Unsubscribe(SubscriberId),
    SendState(SubscriberId),
    #[cfg(test)]
    Panic,
}

pub(super) struct Hub {
    room: RoomKey,
    hubs: Hubs,
    commands: mpsc::UnboundedReceiver<HubCommand>,
    signals: watch::Receiver<()>,
    subscribers: HashMap<SubscriberId, Subscriber>,
    /// The sequence after which the next read begins.
    position: u64,
    /// When something is due in the room, or a failed read is repeated.
    read_at: Option<Instant>,
    /// No state is sent before it.
    states_from: Instant,
    /// When pending states are sent.
    states_at: Option<Instant>,
    /// Bytes of events since the last states. They extend the interval after the next states.
    event_bytes: usize,
}

impl Hub {
    pub(super) fn new(
        room: RoomKey,
        hubs: Hubs,
        commands: mpsc::UnboundedReceiver<HubCommand>,
        signals: watch::Receiver<()>,
    ) -> Hub {
        let (subscribers, states_from) = (HashMap::new(), Instant::now());
        Hub {
            room,
            hubs,
            commands,
            signals,
            subscribers,
            position: 0,
            read_at: None,
            states_from,
            states_at: None,
            event_bytes: 0,
        }
    }

    /// Runs until the last subscriber leaves, the room ends, or the server shuts down.
    pub(super) async fn run(mut self) {
        let every = self.hubs.timing().poll_every;
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (read_at, states_at) = (self.read_at, self.states_at);
            let outcome = tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.execute(command).await,
                    None => return,
                },
                changed = self.signals.changed() => match changed {
                    Ok(()) => self.catch_up().await,
                    Err(_) => return,
                },
                () = sleep_until(read_at.unwrap_or_else(Instant::now)), if read_at.is_some() => self.catch_up().await,
                () = sleep_until(states_at.unwrap_or_else(Instant::now)), if states_at.is_some() => self.catch_up().await,
                _ = tick.tick() => self.poll().await,
            };
            if let Err(reason) = outcome {
                self.hubs.remove(self.room);
                return self.close(reason);
            }
            if self.subscribers.is_empty() && self.hubs.remove_if_idle(self.room, &self.commands) {
                return;
            }
        }
    }

    /// Executes all pending commands, then reads the room: a new subscriber may have missed the signal of a
    /// change after its state.
    async fn execute(&mut self, command: HubCommand) -> Result<(), CloseReason> {
        let mut next = Some(command);
        while let Some(command) = next {
            match command {
                HubCommand::Subscribe(subscriber) => self.subscribe(*subscriber),
                HubCommand::Unsubscribe(id) => drop(self.subscribers.remove(&id)),
                #[cfg(test)]
                HubCommand::Panic => panic!("as the test asked"),
                HubCommand::SendState(id) => {
                    if let Some(subscriber) = self.subscribers.get_mut(&id) {
                        subscriber.need = StateNeed::Now;
                    }
                }
            }
            next = self.commands.try_recv().ok();
        }
        self.catch_up().await
    }

    fn subscribe(&mut self, mut subscriber: Subscriber) {
        let replaced =
            self.subscribers.values().find(|other| other.device == subscriber.device).map(|other| other.id);
        if let Some(replaced) = replaced.and_then(|id| self.subscribers.remove(&id)) {
            replaced.queue.close(CloseReason::Replaced);
        }
        if self.subscribers.len() >= ROOM_SOCKETS_MAX {
            let spectators = self.subscribers.values().filter(|other| !other.has_priority());
            let newest = spectators.map(|other| other.id).max().filter(|_| subscriber.has_priority());
            match newest.and_then(|id| self.subscribers.remove(&id)) {
                Some(spectator) => spectator.queue.close(CloseReason::Full),
                None => return subscriber.refuse(),
            }
        }
        if let Some(accepted) = subscriber.accepted.take() {
            // If the connection is gone, its session unsubscribes.
            let _ = accepted.send(true);
        }
        // The hub goes back to the subscriber that is furthest behind; the others skip events that they
        // already have.
        self.position = match self.subscribers.is_empty() {
            true => subscriber.position,
            false => self.position.min(subscriber.position),
        };
        self.subscribers.insert(subscriber.id, subscriber);
    }

    async fn poll(&mut self) -> Result<(), CloseReason> {
        self.catch_up().await?;
        self.subscribers.values().for_each(Subscriber::ping);
        Ok(())
    }

    /// Reads the room, and sends what is new to the subscribers.
    async fn catch_up(&mut self) -> Result<(), CloseReason> {
        if self.subscribers.is_empty() {
            return Ok(());
        }
        let gaps = self.hubs.gaps();
        match self.hubs.rooms().follow(self.room.code, self.position).await {
            // Another room has the code now.
            Ok(followed) if followed.look.created_at() != self.room.created_at => {
                Err(CloseReason::RoomClosed)
            }
            Ok(followed) => {
                self.read_at = due(&followed.look);
                self.send(&followed, gaps).await;
                Ok(())
            }
            Err(Error::RoomNotFound(_)) => Err(CloseReason::RoomClosed),
            Err(Error::RoomExpired(_)) => Err(CloseReason::RoomExpired),
            Err(Error::ProtocolVersion { .. }) => Err(CloseReason::OtherVersion),
            Err(error) => {
                tracing::warn!(room = %self.room.code, "cannot follow a room: {error}");
                self.read_at = Some(Instant::now() + ROOMS_RETRY);
                Ok(())
            }
        }
    }

    /// Updates every subscriber, and yields to other tasks in between.
    async fn send(&mut self, followed: &Followed, gaps: u64) {
        let events: Vec<EventMessage<'_>> = followed.events.iter().map(EventMessage::new).collect();
        let (look, minimum, mut states) =
            (&followed.look, self.minimum_need(), StateCache::new(&followed.look));
        self.position = look.sequence();
        let (mut closed, mut too_slow, mut total) = (Vec::new(), 0, SentBytes::default());
        for (number, subscriber) in (1..).zip(self.subscribers.values_mut()) {
            if !followed.is_whole || subscriber.gaps != gaps {
                subscriber.need = StateNeed::Now;
            }
            subscriber.gaps = gaps;
            let is_banned = look.is_banned(&subscriber.device) && !subscriber.is_master;
            let reason = match subscriber.update(&events, &mut states, minimum) {
                Ok(sent) => {
                    total.events += sent.events;
                    total.state += sent.state;
                    is_banned.then_some(CloseReason::Banned)
                }
                Err(_) => {
                    too_slow += 1;
                    Some(CloseReason::TooSlow)
                }
            };
            if let Some(reason) = reason {
                subscriber.queue.close(reason);
                closed.push(subscriber.id);
            }
            if number % SUBSCRIBERS_PER_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
        self.hubs.metrics().sockets_too_slow.fetch_add(too_slow, Relaxed);
        self.subscribers.retain(|id, _| !closed.contains(id));
        self.schedule_states(total);
    }

    /// The need from which on a state is sent now; `None` if it is too early for any.
    fn minimum_need(&self) -> Option<StateNeed> {
        let now = Instant::now();
        match self.states_at {
            _ if now < self.states_from => None,
            Some(at) if at <= now => Some(StateNeed::Soon),
            _ => Some(StateNeed::Now),
        }
    }

    /// Sets when the next states may be sent, and when pending ones are.
    fn schedule_states(&mut self, sent: SentBytes) {
        let (now, every) = (Instant::now(), self.hubs.timing().state_every);
        self.event_bytes += sent.events;
        // Events alone never delay a pending state.
        if sent.state > 0 {
            let bytes = sent.state + std::mem::take(&mut self.event_bytes);
            let transfer = Duration::from_secs(1).mul_f64(bytes as f64 / ROOM_BYTES_PER_SECOND as f64);
            self.states_from = self.states_from.max(now + every.max(transfer));
        }
        let need =
            self.subscribers.values().map(|subscriber| subscriber.need).max().unwrap_or(StateNeed::None);
        self.states_at = match (need, self.states_at) {
            (StateNeed::None, _) => None,
            (StateNeed::Now, _) => Some(self.states_from),
            // The first vote sets the time, so that further votes do not delay it.
            (StateNeed::Soon, Some(at)) if at > now => Some(at),
            (StateNeed::Soon, _) => Some(self.states_from.max(now + every)),
        };
    }

    /// Closes all subscribers, also those whose command is still in the channel.
    fn close(&mut self, reason: CloseReason) {
        // A later subscriber starts a new hub.
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let HubCommand::Subscribe(subscriber) = command {
                subscriber.queue.close(reason);
            }
        }
        self.subscribers.values().for_each(|subscriber| subscriber.queue.close(reason));
    }
}

impl Drop for Hub {
    /// A hub that panics closes its connections, so that clients connect again and get a new hub.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.close(CloseReason::Shutdown);
        }
    }
}

/// When the next deadline of a room passes, its expiry included. A deadline in the past is ignored: the read
/// has already handled what was due.
fn due(look: &Look) -> Option<Instant> {
    let moments = [look.next_deadline(), Some(look.expires_at())].into_iter().flatten();
    let wait = moments.filter_map(|at| at.checked_sub(look.now())).filter(|ms| *ms > 0).min()?;
    // One more, because both times are truncated to milliseconds.
    Instant::now().checked_add(Duration::from_millis(wait as u64 + 1))
}
