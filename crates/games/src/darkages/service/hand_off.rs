//! Hand-off: a player moves to another zone, also of another shard.
//!
//! Within a partition it is one transaction. Between partitions there are four, and the directory says at every moment
//! where the player is:
//!
//! 1. The entry of the directory: on the way from the source to the target, with a new number.
//! 2. The source: session, play record and position leave as a [`Passage`] in the outbox.
//! 3. A courier brings it to the target, where it is an arrival, once: the target refuses numbers that are not higher.
//! 4. A zone server of the target accepts it: it is a session again; then the directory says so.
//!
//! The connections go along, and the channels of both zones carry the same messages in both cases: `entity_leaving` in the
//! zone that the player leaves, `entity_entering` and `handoff_complete` in the one that it enters.
//!
//! The source keeps a copy of the passage ([`DEPARTED`]) for as long as the session lives at least: a failover can set the target
//! back to a time at which the player had not arrived (`sweep_directory`).
//!
//! An arrival that is not accepted in time goes back the same way, with the next number, and is taken in by the source
//! without being asked for. A process may end at any point: after 1 the sweep keeps the player at the source, with a
//! higher number; after 2 any courier delivers; after 4 the sweep completes the entry. A login or logout in between has
//! a higher number, and the passage ends as a play session where it arrives. What a zone server was sent may be lost:
//! arrivals are listed.

use super::arrivals::{Accepted, arrived_in, put_position, receive, remove_arrival, take_in};
use super::homes::{FOLLOWED_MAX, Homes, Owner};
use super::sessions::check_point;
use super::sweep_shards::close_under;
use super::*;
use crate::darkages::limits::{DELIVERY_WAIT, MEMBERS_PER_TRANSACTION};
use crate::darkages::model::Point;
use crate::darkages::passage::{Passage, Passages};
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::directory::{self, AdmitError, ClaimError, Placement, State};
use emberkeep_primitives::mail::{self, Delivery, MailError};

/// A player who is to enter another zone.
#[derive(Debug, Clone, PartialEq)]
pub struct HandOffRequest {
    /// The entity of the player.
    pub entity: EntityId,
    /// The zone that it enters, from 1.
    pub zone: ZoneId,
    /// Where in the zone.
    pub position: Point,
}

/// How far a hand-off came.
#[derive(Debug, Clone, PartialEq)]
pub enum HandOff {
    /// The player is in the zone.
    Done(Session),
    /// The player is on its way to another shard, whose zone server accepts it.
    InTransit {
        /// The number of the hand-off.
        number: i64,
    },
}

impl DarkAges {
    /// Hands a player off to a zone. If the zone's shard is a partition of its own, the zone server of the target finds the
    /// player in [`arrivals`](DarkAges::arrivals) and [`accept`](DarkAges::accept)s it; within a partition it is done.
    pub fn hand_off(&self, request: HandOffRequest) -> Pending<'_, Result<HandOff>> {
        Box::pin(async move {
            let HandOffRequest { entity, zone, position } = request;
            check_point(&position)?;
            if zone.0 < 1 {
                return Err(Error::invalid("zone", format!("{}, expected 1 or more", zone.0)));
            }
            let target = self.partition_of(zone);
            for _ in 0..FOLLOWED_MAX {
                if self.is_split() {
                    let found = self.find(entity).await?.filter(|found| found.state != State::Ended);
                    let found = found.filter(|found| self.is_here(found.home));
                    let found = found.ok_or(Error::NotLoggedIn { entity })?;
                    if found.home != target {
                        return self.send_to(entity, found, zone, position).await;
                    }
                }
                let position = position.clone();
                let transaction = move |tx: &mut Tx<'_, Shard>| {
                    // It may have gone on to another shard since its entry was read.
                    let is_target = *tx.partition() == target;
                    if is_target { transfer(tx, entity, zone, &position).map(Some) } else { Ok(None) }
                };
                if let Some(session) = self.at_home(entity, "darkages.hand_off", transaction).await? {
                    return Ok(HandOff::Done(session));
                }
            }
            Err(Error::InTransit { entity })
        })
    }

    /// The players who arrived in a zone from other shards and are not accepted, at most 1,000. Those that are not accepted
    /// in 30 s go back. One that cannot be read is not listed.
    pub fn arrivals(&self, zone: ZoneId) -> Pending<'_, Result<Vec<Passage>>> {
        Box::pin(async move {
            let scope = self.scope_of(zone).named("darkages.arrivals");
            let mut found = Vec::new();
            for chunk in arrived_in(&scope, zone).await?.chunks(MEMBERS_PER_TRANSACTION) {
                let keys: Vec<_> = chunk.iter().map(|entity| ARRIVAL.key(entity)).collect();
                let read = move |tx: &mut hot::ReadTx<'_, Shard>| tx.get_each(&keys);
                for passage in scope.read(read).await? {
                    match passage {
                        Ok(passage) => found.extend(passage.filter(|passage| passage.zone() == zone)),
                        // The sweep counts it.
                        Err(error) if error.is_corrupt() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(found)
        })
    }

    /// Takes a player in who arrived in a zone from another shard. Accepting it again returns the session, too.
    pub fn accept(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<Session>> {
        Box::pin(async move { self.accept_in(self.partition_of(zone), entity, zone).await })
    }

    /// Takes a player in. One that returns to no zone is in a shard that its zone does not name.
    pub(super) async fn accept_in(&self, shard: Shard, entity: EntityId, zone: ZoneId) -> Result<Session> {
        let scope = self.store.scope(shard).named("darkages.accept");
        let (session, play) = match scope.transact(move |tx| take_in(tx, entity, zone)).await? {
            Accepted::Session(accepted) => *accepted,
            Accepted::Ended => {
                self.forget_arrival(shard, entity).await?;
                return Err(Error::NotLoggedIn { entity });
            }
            Accepted::Replaced => return Err(Error::Replaced { entity }),
        };
        if !self.is_split() {
            return Ok(session);
        }
        let found = self.confirm(entity, shard, &play).await?;
        if found.is_at(&shard, play.number) {
            return Ok(session);
        }
        // It was being sent back at the same moment: it stays.
        if found.state == (State::Moving { from: shard }) && self.keep(entity, shard, play.number).await? {
            return Ok(session);
        }
        Err(Error::Replaced { entity })
    }

    /// Sends a player who arrived in a zone back to the zone that it left.
    pub fn refuse(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<()>> {
        Box::pin(async move {
            let scope = self.scope_of(zone);
            let passage = scope.get(&ARRIVAL.key(entity)).await?.filter(|passage| passage.zone() == zone);
            let passage = passage.ok_or(Error::NotArrived { entity, zone })?;
            self.send_back(*scope.partition(), passage).await
        })
    }

    /// Sends a player that is at the home of its entry to another shard.
    async fn send_to(
        &self,
        entity: EntityId,
        found: Placement<Shard>,
        zone: ZoneId,
        position: Point,
    ) -> Result<HandOff> {
        if found.state != State::Here {
            return Err(Error::InTransit { entity });
        }
        let (number, source, target) = (found.number, found.home, *self.scope_of(zone).partition());
        let entry = self.entry_scope(entity).named("darkages.depart");
        let departed = entry.transact(move |tx| directory::depart::<Homes>(tx, number, &target)).await;
        let departed = match departed {
            Ok(departed) => departed,
            Err(ClaimError::Changed { .. }) => return Err(Error::InTransit { entity }),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        };
        let number = departed.number;
        let from = found.number;
        let leaving = Leaving { entity, from, number, source, target, zone, position };
        let scope = self.store.scope(source).named("darkages.leave");
        match scope.transact(move |tx| leave(tx, &leaving)).await {
            Ok(Left::Sent) => {}
            // It was kept under another number, which the entry gets: nothing ends.
            Ok(Left::Another | Left::Nothing) => return Err(Error::InTransit { entity }),
            Ok(Left::Gone) => {
                // The entry first: until then the play record makes the sweep come by.
                self.end_entry(entity, number).await?;
                let close = move |tx: &mut Tx<'_, Shard>| close_under(tx, entity, from, false);
                self.store.scope(source).named("darkages.close_expired").transact(close).await?;
                return Err(Error::NotLoggedIn { entity });
            }
            Err(Error::TooManyInTransit { shard }) => {
                self.keep(entity, source, from).await?;
                return Err(Error::TooManyInTransit { shard });
            }
            Err(error) => return Err(error),
        }
        self.deliver_now(source).await;
        Ok(HandOff::InTransit { number })
    }

    /// Delivers at once. If that fails or takes long, the sweep delivers: a shard that cannot be reached does not hold up
    /// those who leave for another one.
    pub(super) async fn deliver_now(&self, shard: Shard) -> bool {
        matches!(tokio::time::timeout(DELIVERY_WAIT, self.deliver(shard)).await, Ok(Ok(_)))
    }

    /// Hands over what waits in a shard's outbox. One courier of a process at a time: others would carry the same.
    pub(super) async fn deliver(&self, shard: Shard) -> Result<Delivery<Shard>> {
        let _courier = self.couriers[usize::from(shard.0) % self.couriers.len()].lock().await;
        Ok(mail::deliver_from::<Passages, _>(&self.store.scope(shard), receive).await?)
    }

    /// Sends an arrival back to where it came from.
    pub(super) async fn send_back(&self, shard: Shard, passage: Passage) -> Result<()> {
        let (entity, number) = (passage.entity(), passage.number);
        let found = self.confirm_moving(entity, shard, &passage).await?;
        let source = Shard(passage.source_shard);
        let departed = match &found.state {
            // It was begun by a process that ended.
            State::Moving { from } if *from == shard && found.number > number && found.home == source => {
                found
            }
            _ => {
                let entry = self.entry_scope(entity).named("darkages.depart");
                let departed =
                    entry.transact(move |tx| directory::depart::<Homes>(tx, number, &source)).await;
                match departed {
                    Ok(departed) => departed,
                    Err(ClaimError::Changed { .. }) => return Err(Error::Replaced { entity }),
                    Err(ClaimError::Store(error)) => return Err(error.into()),
                }
            }
        };
        let (number, target, source_zone) = (departed.number, departed.home, passage.source_zone);
        let scope = self.store.scope(shard).named("darkages.send_back");
        scope.transact(move |tx| forward(tx, &passage, number, &target)).await?;
        if self.deliver_now(shard).await {
            let back = self.store.scope(target).named("darkages.accept");
            let zone = ZoneId(source_zone);
            if let Ok(Accepted::Session(accepted)) = back.transact(move |tx| take_in(tx, entity, zone)).await
            {
                self.confirm(entity, target, &accepted.1).await?;
            }
        }
        Ok(())
    }

    /// The entry of an arrival; one that was lost is as the arrival says.
    async fn confirm_moving(
        &self,
        entity: EntityId,
        shard: Shard,
        passage: &Passage,
    ) -> Result<Placement<Shard>> {
        match self.find(entity).await? {
            Some(found) if found.number >= passage.number => Ok(found),
            _ => self.confirm(entity, shard, &passage.play_here()).await,
        }
    }

    /// Says in the directory that an entity is in a shard, as its play record has it.
    pub(super) async fn confirm(
        &self,
        entity: EntityId,
        shard: Shard,
        play: &Play,
    ) -> Result<Placement<Shard>> {
        let (number, owner, since) = (play.number, Owner::of(play).to_text(entity), play.login_time);
        let entry = self.entry_scope(entity).named("darkages.confirm");
        Ok(entry.transact(move |tx| directory::confirm::<Homes>(tx, &shard, number, &owner, since)).await?)
    }

    /// Keeps a player in a shard that it was about to leave, under a higher number. `false` = it left, or is gone.
    pub(super) async fn keep(&self, entity: EntityId, shard: Shard, number: i64) -> Result<bool> {
        let above = self.find(entity).await?.map_or(0, |found| found.number);
        let scope = self.store.scope(shard).named("darkages.keep");
        match scope.transact(move |tx| stay(tx, entity, number, above)).await? {
            Some(play) => Ok(self.confirm(entity, shard, &play).await?.is_at(&shard, play.number)),
            None => Ok(false),
        }
    }

    /// Says in the directory that an entity is nowhere.
    pub(super) async fn end_entry(&self, entity: EntityId, number: i64) -> Result<()> {
        let entry = self.entry_scope(entity).named("darkages.end");
        entry.transact(move |tx| directory::end::<Homes>(tx, number)).await?;
        Ok(())
    }
}

/// Moves a player within a partition.
fn transfer(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId, position: &Point) -> Result<Session> {
    let (mut session, mut play) = logged_in(tx, entity)?;
    let former = ZoneId(session.zone_id);
    session.position = position.clone();
    put_position(tx, entity, position)?;
    zones::change_zone(tx, entity, (&mut session, &mut play), zone)?;
    zones::complete_hand_off(tx, &session, former, None)?;
    Ok(session)
}

/// A player who leaves a shard.
struct Leaving {
    entity: EntityId,
    /// The number that it has.
    from: i64,
    /// The number of the hand-off.
    number: i64,
    source: Shard,
    target: Shard,
    zone: ZoneId,
    position: Point,
}

/// What a departure found.
enum Left {
    /// The session, which is on its way.
    Sent,
    /// A session of another number: the player was kept, or logged in anew.
    Another,
    /// Nothing at all: the entry or the shard was set back, or a login is about to begin. The sweep finds the player.
    Nothing,
    /// A session that expired. From now on none of a lower number begins here.
    Gone,
}

/// Removes the session and sends it.
fn leave(tx: &mut Tx<'_, Shard>, leaving: &Leaving) -> Result<Left> {
    let Leaving { entity, from, number, source, target, zone, ref position } = *leaving;
    let (session, play) = tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity))))?;
    if session.is_none() && play.is_none() {
        return Ok(Left::Nothing);
    }
    // Without a number it is of another program, at the home of its entry.
    if play.as_ref().is_some_and(|play| play.number != from && play.number != 0) {
        return Ok(Left::Another);
    }
    if !admit(tx, entity, number)? {
        return Ok(Left::Another);
    }
    let Some(mut session) = session else { return Ok(Left::Gone) };
    let mut play = play_of(tx, entity, play, &session)?;
    let (source_zone, connections) = (ZoneId(session.zone_id), connections::taken_along(tx, entity)?);
    remove(tx, entity, source_zone, zone)?;
    let left_at = tx.now();
    // Like every other call it is an activity: the session lives for an hour on its way, whatever another program wrote.
    (session.last_activity, play.last_activity) = (left_at, left_at);
    session.position = position.clone();
    let passage = Passage::new(entity.0, number, source_zone.0, source.0, zone.0, left_at, session, play);
    send(tx, &target, &Passage { connections, ..passage })?;
    Ok(Left::Sent)
}

fn send(tx: &mut Tx<'_, Shard>, target: &Shard, passage: &Passage) -> Result<()> {
    tx.put(&DEPARTED.key(passage.entity()), passage)?;
    mail::send::<Passages>(tx, target, passage).map_err(|error| match error {
        MailError::Store(error) => error.into(),
        MailError::Full { .. } => Error::TooManyInTransit { shard: tx.partition().0 },
    })
}

/// Raises the highest number of an entity; one that is higher already stays.
pub(super) fn admit(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64) -> hot::Result<bool> {
    match directory::admit::<Homes>(tx, &Entity(entity), number) {
        Ok(()) => Ok(true),
        Err(AdmitError::Superseded { .. }) => Ok(false),
        // An external client wrote it. One player must not hold up the mail of all others.
        Err(AdmitError::Store(error)) if error.is_corrupt() => {
            tx.del(&ADMITTED.key(entity))?;
            tx.put(&ADMITTED.key(entity), &number)?;
            Ok(true)
        }
        Err(AdmitError::Store(error)) => Err(error),
    }
}

/// Keeps a session under a number greater than `above`.
fn stay(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64, above: i64) -> Result<Option<Play>> {
    let (session, play) = tx.together(|tx| (tx.exists(&SESSION.key(entity)), tx.get(&PLAY.key(entity))))?;
    let Some(mut play) = play.filter(|play| session && play.number == number) else { return Ok(None) };
    play.number = above.max(number).saturating_add(1).max(tx.now().saturating_mul(1_000));
    admit(tx, entity, play.number)?;
    tx.put(&PLAY.key(entity), &play)?;
    Ok(Some(play))
}

/// Sends an arrival on, under a new number.
fn forward(tx: &mut Tx<'_, Shard>, passage: &Passage, number: i64, target: &Shard) -> Result<()> {
    let entity = passage.entity();
    let stored = tx.get(&ARRIVAL.key(entity))?.filter(|stored| stored.number == passage.number);
    let Some(stored) = stored else { return Err(Error::Replaced { entity }) };
    remove_arrival(tx, &stored)?;
    admit(tx, entity, number)?;
    let (source_zone, target_zone) = (stored.target_zone, stored.source_zone);
    let (source_shard, left_at) = (tx.partition().0, tx.now());
    let back = Passage { number, source_zone, source_shard, target_zone, left_at, returns: true, ..stored };
    send(tx, target, &back)
}
