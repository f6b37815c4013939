//! The sweep where shards are partitions of their own: it compares what each shard has with the directory, and completes
//! what a process began before it ended.
//!
//! Budget of a call: `limit` sessions or arrivals, each by a read of its entry and a few transactions. It holds nothing
//! between calls and can be dropped at any time. One that fails is tried again later and does not stop the others.

use super::arrivals::{Accepted, arrivals_due, end_passage, remove_arrival, remove_ended, take_in};
use super::homes::{Homes, is_of_session};
use super::sessions::end_former;
use super::sweep::{SessionSweep, postpone};
use super::*;
use crate::darkages::limits::ARRIVAL_WAIT;
use crate::darkages::passage::Passage;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::directory::{self, AdmitError, Claim, ClaimError, Placement, Standing, State};

/// What a pass over the hand-offs did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HandOffsSwept {
    /// Players that were brought to the shard of their zone.
    pub delivered: usize,
    /// Arrivals that no zone server accepted in time, and that went back.
    pub returned: usize,
    /// Players that came back and are logged in where they left.
    pub accepted: usize,
    /// Arrivals that ended: their session expired, or a later login or logout replaced it.
    pub closed: usize,
    /// Older copies of players who are elsewhere, which a failover brought back: they are removed, and nothing is recorded.
    pub copies: usize,
    /// Shards that cannot be reached or fail: what is on the way there waits.
    pub waiting: usize,
    /// Arrivals that cannot be read. They are as they were, and checked again in an hour.
    pub unreadable: usize,
    /// Arrivals, and whole shards, that failed. They are as they were, and tried again; the others were swept.
    pub failed: usize,
    /// Why the last of those failed.
    pub failure: Option<Error>,
}

impl HandOffsSwept {
    fn fail(&mut self, error: Error) {
        self.failed += 1;
        self.failure = Some(error);
    }
}

/// What a session of a shard is.
enum Verdict {
    /// The player.
    Current,
    /// An older state of a session that lives elsewhere: a failover brought it back.
    Copy,
    /// Over: it becomes a play session.
    Over,
}

/// A session that is due, with what the decision needs.
struct Due {
    entity: EntityId,
    /// `None` = there is none, or it cannot be read.
    play: Option<Play>,
    is_readable: bool,
    session: Option<Session>,
}

impl DarkAges {
    /// Brings players who are on their way to their shards, and ends or sends back up to `limit` arrivals that no zone server
    /// accepted, in all shards or in that of [`in_zone`](DarkAges::in_zone). To be called every few seconds. Where all shards
    /// are one partition there is nothing to do. An error says that every shard failed.
    pub fn sweep_hand_offs(&self, limit: usize) -> Pending<'_, Result<HandOffsSwept>> {
        Box::pin(async move {
            let mut done = HandOffsSwept::default();
            if !self.is_split() {
                return Ok(done);
            }
            let mut swept = 0;
            for shard in self.partitions.iter().filter(|shard| self.is_here(**shard)) {
                match self.sweep_shard(*shard, limit, &mut done).await {
                    Ok(()) => swept += 1,
                    Err(error) => done.fail(error),
                }
            }
            if swept > 0 { Ok(done) } else { done.failure.take().map_or(Ok(done), Err) }
        })
    }

    async fn sweep_shard(&self, shard: Shard, limit: usize, done: &mut HandOffsSwept) -> Result<()> {
        let delivery = self.deliver(shard).await;
        if let Ok(delivery) = &delivery {
            done.delivered += delivery.delivered;
            done.waiting += delivery.waiting.len();
        }
        // What cannot leave the shard does not hold up what came there.
        self.sweep_arrivals(shard, limit, done).await?;
        delivery.map(drop)
    }

    async fn sweep_arrivals(&self, shard: Shard, limit: usize, done: &mut HandOffsSwept) -> Result<()> {
        let scope = self.store.scope(shard).named("darkages.arrivals_due");
        let due = scope.transact(move |tx| arrivals_due().due(tx, limit)).await?;
        for (entity, _) in due {
            if let Err(error) = self.sweep_due(&scope, entity, done).await {
                done.fail(error);
                // Behind the others. If this fails, too, it is still due.
                let later = move |tx: &mut Tx<'_, Shard>| {
                    let at = tx.now() + ARRIVAL_WAIT.as_millis() as i64;
                    arrivals_due().set(tx, &entity, at)
                };
                let _ = scope.transact(later).await;
            }
        }
        Ok(())
    }

    async fn sweep_due(
        &self,
        scope: &Scope<Shard>,
        entity: EntityId,
        done: &mut HandOffsSwept,
    ) -> Result<()> {
        let shard = *scope.partition();
        match scope.get(&ARRIVAL.key(entity)).await {
            Ok(Some(passage)) => self.sweep_arrival(shard, passage, done).await,
            Ok(None) => self.forget_arrival(shard, entity).await,
            Err(error) if error.is_corrupt() => {
                let later = move |tx: &mut Tx<'_, Shard>| {
                    let end = session_end(tx.now());
                    arrivals_due().set(tx, &entity, end)
                };
                scope.transact(later).await?;
                done.unreadable += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An arrival is gone. If it ended here, its entry ends, too; then it is not due any more.
    pub(super) async fn forget_arrival(&self, shard: Shard, entity: EntityId) -> Result<()> {
        let scope = self.store.scope(shard).named("darkages.end_arrival");
        let found = self.find(entity).await?.filter(|found| found.home == shard);
        let coming = found.filter(|found| matches!(found.state, State::Moving { .. }));
        if let Some(number) = coming.map(|coming| coming.number)
            && scope.transact(move |tx| has_ended(tx, entity, number)).await?
        {
            self.end_entry(entity, number).await?;
        }
        let forget = move |tx: &mut Tx<'_, Shard>| {
            let is_there = tx.exists(&ARRIVAL.key(entity))?;
            if is_there { Ok(()) } else { tx.zrem(&ARRIVALS_DUE.key(), &entity) }
        };
        Ok(scope.transact::<_, hot::Error, _>(forget).await?)
    }

    async fn sweep_arrival(&self, shard: Shard, passage: Passage, done: &mut HandOffsSwept) -> Result<()> {
        let (entity, zone) = (passage.entity(), passage.zone());
        let found = self.find(entity).await?;
        let is_over = Placement::standing(found.as_ref(), &shard, passage.number) == Standing::Superseded;
        let is_departing = found.as_ref().is_some_and(|found| found.number > passage.number);
        // Not back to where it came from: it had been accepted, and went on, before the shard was set back.
        let source = Shard(passage.source_shard);
        let went_on = is_departing && found.as_ref().is_some_and(|found| found.home != source);
        let is_over = is_over || went_on;
        let now = self.store.now().await?;
        let has_expired = session_end(passage.session.last_activity) <= now;
        if let Some(found) = found.filter(|found| is_over && is_same_session(found, entity, &passage.play)) {
            return self.sweep_copy(shard, passage, &found, done).await;
        }
        if is_over || (has_expired && !is_departing) {
            let ended_at = if has_expired { passage.play.last_activity } else { passage.left_at };
            let scope = self.store.scope(shard).named("darkages.end_arrival");
            if scope.transact(move |tx| end_arrival(tx, &passage, ended_at)).await? {
                done.closed += 1;
            }
            return self.forget_arrival(shard, entity).await;
        }
        let outcome = if passage.returns && !is_departing {
            self.accept_in(shard, entity, zone).await.map(|_| done.accepted += 1)
        } else {
            self.send_back(shard, passage).await.map(|()| done.returned += 1)
        };
        match outcome {
            // It was accepted, or replaced, in this moment.
            Err(Error::Replaced { .. } | Error::NotArrived { .. } | Error::NotLoggedIn { .. }) => Ok(()),
            Err(Error::TooManyInTransit { .. }) => {
                done.waiting += 1;
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// An arrival of a session that the entry has elsewhere, under a higher number: it is removed, or taken in if the newer one is
    /// lost.
    async fn sweep_copy(
        &self,
        shard: Shard,
        passage: Passage,
        found: &Placement<Shard>,
        done: &mut HandOffsSwept,
    ) -> Result<()> {
        let (entity, zone, number) = (passage.entity(), passage.zone(), passage.number);
        let scope = self.store.scope(shard).named("darkages.sweep_copy");
        // What is left where it departed from is this copy.
        let is_from_here = found.state == (State::Moving { from: shard });
        let is_in_place = if is_from_here {
            self.was_at_home(entity, found).await?
        } else {
            self.is_in_place(entity, found).await?
        };
        if is_in_place {
            done.copies += usize::from(scope.transact(move |tx| drop_arrival(tx, entity, number)).await?);
            return Ok(());
        }
        match scope.transact(move |tx| take_in(tx, entity, zone)).await {
            Ok(Accepted::Session(_)) => done.accepted += usize::from(self.keep(entity, shard, number).await?),
            Ok(Accepted::Ended) => {
                done.closed += 1;
                return self.forget_arrival(shard, entity).await;
            }
            Ok(Accepted::Replaced) | Err(Error::NotArrived { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether an entity is where its entry says, or was there since.
    async fn was_at_home(&self, entity: EntityId, found: &Placement<Shard>) -> Result<bool> {
        let number = found.number;
        let was_here = move |tx: &mut hot::ReadTx<'_, Shard>| {
            let highest = tx.get(&ADMITTED.key(entity))?;
            Ok(highest.is_some_and(|highest| highest > number) || is_here_since(tx, entity, number)?)
        };
        let home = self.store.scope(found.home).named("darkages.is_in_place");
        Ok(home.read::<_, hot::Error, _>(was_here).await?)
    }

    /// Whether an entity is where its entry says, was there since, or is on its way there.
    async fn is_in_place(&self, entity: EntityId, found: &Placement<Shard>) -> Result<bool> {
        if self.was_at_home(entity, found).await? {
            return Ok(true);
        }
        let number = found.number;
        let State::Moving { from } = found.state else { return Ok(false) };
        let leaves = move |tx: &mut hot::ReadTx<'_, Shard>| leaves_under(tx, entity, number);
        Ok(self.store.scope(from).named("darkages.is_in_place").read::<_, hot::Error, _>(leaves).await?)
    }

    /// Compares the sessions of a shard that are due with the directory.
    pub(super) async fn compare_due(&self, scope: &Scope<Shard>, count: usize) -> Result<SessionSweep> {
        let mut done = SessionSweep::default();
        let due =
            scope.clone().named("darkages.close_expired").transact(move |tx| read_due(tx, count)).await?;
        for due in due {
            let entity = due.entity;
            if let Err(error) = self.compare(scope, due, &mut done).await {
                postpone(scope, entity).await;
                done.fail(error);
            }
        }
        Ok(done)
    }

    async fn compare(&self, scope: &Scope<Shard>, due: Due, done: &mut SessionSweep) -> Result<()> {
        let entity = due.entity;
        if !due.is_readable {
            let later = move |tx: &mut Tx<'_, Shard>| {
                let end = session_end(tx.now());
                sessions_due().set(tx, &entity, end)
            };
            scope.transact(later).await?;
            done.unreadable += 1;
            return Ok(());
        }
        let number = due.play.as_ref().map_or(0, |play| play.number);
        let scope = scope.clone();
        match self.verdict(*scope.partition(), &due).await? {
            Verdict::Current => {
                scope.named("darkages.recheck").transact(move |tx| check_later(tx, entity)).await?;
                done.alive += 1;
            }
            Verdict::Copy => {
                let drop_copy = move |tx: &mut Tx<'_, Shard>| drop_session(tx, entity, number);
                done.copies += usize::from(scope.named("darkages.drop_copy").transact(drop_copy).await?);
            }
            Verdict::Over => {
                let was_alive = due.session.is_some();
                let close = move |tx: &mut Tx<'_, Shard>| close_under(tx, entity, number, was_alive);
                done.closed += usize::from(scope.named("darkages.close_expired").transact(close).await?);
            }
        }
        Ok(())
    }

    /// What a session is. Completes the entry of one that is the player.
    async fn verdict(&self, shard: Shard, due: &Due) -> Result<Verdict> {
        let entity = due.entity;
        let is_current = |is_current| if is_current { Verdict::Current } else { Verdict::Over };
        let Some(play) = due.play.as_ref().filter(|play| due.session.is_none() || play.number != 0) else {
            return Ok(is_current(self.adopt(entity, shard, due).await?));
        };
        let mut found = self.find(entity).await?;
        let mut standing = Placement::standing(found.as_ref(), &shard, play.number);
        if due.session.is_some() && matches!(standing, Standing::Current | Standing::Unconfirmed) {
            // Confirming it prolongs the life of the entry.
            let confirmed = self.confirm(entity, shard, play).await?;
            standing = Placement::standing(Some(&confirmed), &shard, play.number);
            if standing != Standing::Superseded {
                // It may have begun to depart in this moment: then it leaves, or the next check keeps it.
                return Ok(Verdict::Current);
            }
            found = Some(confirmed);
        }
        match (standing, found) {
            (Standing::Superseded, Some(found)) if is_same_session(&found, entity, play) => {
                if self.is_in_place(entity, &found).await? {
                    return Ok(Verdict::Copy);
                }
                // The newer state is lost: this one is the player.
                Ok(is_current(self.keep(entity, shard, play.number).await?))
            }
            (Standing::Departing { .. }, _) if due.session.is_some() => {
                Ok(is_current(self.keep(entity, shard, play.number).await?))
            }
            _ => {
                if due.session.is_none() {
                    self.end_expired(entity, shard, play.number).await?;
                }
                Ok(Verdict::Over)
            }
        }
    }

    /// Ends the entry of a session that expired, also of one that a process announced to leave and that never left.
    async fn end_expired(&self, entity: EntityId, shard: Shard, number: i64) -> Result<()> {
        let found = self.find(entity).await?.filter(|_| number != 0);
        let standing = Placement::standing(found.as_ref(), &shard, number);
        let departing = found.filter(|_| matches!(standing, Standing::Departing { .. }));
        self.end_entry(entity, departing.map_or(number, |found| found.number)).await
    }

    /// Enters a session of another program into the directory. `false` = there is no session, or the player is logged in
    /// elsewhere. Several sweeps may do so at once: who comes late leaves the session for the next check.
    async fn adopt(&self, entity: EntityId, shard: Shard, due: &Due) -> Result<bool> {
        let Some(session) = due.session.clone() else { return Ok(false) };
        let number = match self.find(entity).await? {
            // Its entry was made by a process that ended before the session had the number.
            Some(found) if found.state == State::Here && found.home == shard => found.number,
            Some(found) if found.state != State::Ended => return Ok(false),
            found => {
                let expected = Some(found.map_or(0, |found| found.number));
                let claim = Claim { expected, ..Claim::new(shard, session.client_id.clone()) };
                let Some(number) = self.claim_adopted(entity, claim).await? else { return Ok(true) };
                number
            }
        };
        let scope = self.store.scope(shard).named("darkages.adopt");
        let numbered = scope.transact(move |tx| number_session(tx, entity, number)).await?;
        if let Err(highest) = numbered {
            // The entry was lost and began again too low.
            let claim =
                Claim { expected: Some(number), above: highest, ..Claim::new(shard, session.client_id) };
            if let Some(number) = self.claim_adopted(entity, claim).await? {
                let _ = scope.transact(move |tx| number_session(tx, entity, number)).await?;
            }
        }
        Ok(true)
    }

    /// The number of a claim for a session of another program. `None` = another sweep came before.
    async fn claim_adopted(&self, entity: EntityId, claim: Claim<Shard>) -> Result<Option<i64>> {
        let entry = self.entry_scope(entity).named("darkages.adopt");
        match entry.transact(move |tx| directory::claim::<Homes>(tx, &claim)).await {
            Ok(place) => Ok(Some(place.number)),
            Err(ClaimError::Changed { .. }) => Ok(None),
            Err(ClaimError::Store(error)) => Err(error.into()),
        }
    }
}

fn read_due(tx: &mut Tx<'_, Shard>, count: usize) -> hot::Result<Vec<Due>> {
    let due: Vec<EntityId> = sessions_due().due(tx, count)?.into_iter().map(|(entity, _)| entity).collect();
    let (sessions, plays): (Vec<_>, Vec<_>) =
        due.iter().map(|entity| (SESSION.key(entity), PLAY.key(entity))).unzip();
    let (sessions, plays) = tx.together(|tx| (tx.get_each(&sessions), tx.get_each(&plays)))?;
    let mut found = Vec::with_capacity(due.len());
    for ((entity, session), play) in due.into_iter().zip(sessions).zip(plays) {
        let (session, play) = (readable(session)?, readable(play)?);
        let is_readable = session.is_some() && play.is_some();
        found.push(Due { entity, is_readable, session: session.flatten(), play: play.flatten() });
    }
    Ok(found)
}

/// A session that lives is compared again in a minute, or when it can be gone.
fn check_later(tx: &mut Tx<'_, Shard>, entity: EntityId) -> hot::Result<()> {
    let (end, now) = (tx.deadline(&SESSION.key(entity))?, tx.now());
    let end = end.map_or(session_end(now), |deadline| deadline + 1);
    sessions_due().set(tx, &entity, end.min(next_check(now)))
}

/// Closes what a shard has of an entity under a number, unless it changed since it was read. Whether it did.
pub(super) fn close_under(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    number: i64,
    was_alive: bool,
) -> hot::Result<bool> {
    let (session, play) = tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity))))?;
    if session.is_some() != was_alive || play.as_ref().map_or(0, |play| play.number) != number {
        check_later(tx, entity)?;
        return Ok(false);
    }
    match (session, play) {
        (_, Some(play)) => {
            let ended_at = play.last_activity;
            close(tx, entity, play, ended_at)?;
            Ok(true)
        }
        (Some(session), None) => end_former(tx, entity, Some(session), None),
        (None, None) => {
            tx.zrem(&SESSIONS_DUE.key(), &entity)?;
            Ok(false)
        }
    }
}

/// Whether an entry is of the session of this play record, and not over.
fn is_same_session(found: &Placement<Shard>, entity: EntityId, play: &Play) -> bool {
    found.state != State::Ended && is_of_session(found, entity, play)
}

/// Whether a shard has a session or an arrival of an entity, of this number or a higher one.
pub(super) fn is_here_since(
    tx: &mut hot::ReadTx<'_, Shard>,
    entity: EntityId,
    number: i64,
) -> hot::Result<bool> {
    let (play, arrival) = tx.together(|tx| (tx.get(&PLAY.key(entity)), tx.get(&ARRIVAL.key(entity))))?;
    Ok(play.is_some_and(|play| play.number >= number)
        || arrival.is_some_and(|passage| passage.number >= number))
}

/// Whether an entity is about to leave a shard, or left it under this number.
fn leaves_under(tx: &mut hot::ReadTx<'_, Shard>, entity: EntityId, number: i64) -> hot::Result<bool> {
    let (session, arrival, departed) = tx.together(|tx| {
        (tx.exists(&SESSION.key(entity)), tx.exists(&ARRIVAL.key(entity)), tx.get(&DEPARTED.key(entity)))
    })?;
    Ok(session || arrival || departed.is_some_and(|departed| departed.number == number))
}

/// Removes an older copy of a session, unless it changed since it was read. Whether it did.
fn drop_session(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64) -> hot::Result<bool> {
    let play = tx.get(&PLAY.key(entity))?.filter(|play| play.number == number);
    let Some(play) = play else {
        check_later(tx, entity)?;
        return Ok(false);
    };
    remove(tx, entity, ZoneId(play.zone_id), ZoneId::NONE)?;
    Ok(true)
}

/// Removes an older copy of an arrival, unless it is gone.
fn drop_arrival(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64) -> hot::Result<bool> {
    let passage = tx.get(&ARRIVAL.key(entity))?.filter(|passage| passage.number == number);
    passage.map_or(Ok(false), |passage| remove_arrival(tx, &passage).map(|()| true))
}

/// Records an arrival that ends here, unless it is gone.
fn end_arrival(tx: &mut Tx<'_, Shard>, passage: &Passage, ended_at: i64) -> hot::Result<bool> {
    let stored = tx.get(&ARRIVAL.key(passage.entity()))?;
    if stored.is_none_or(|stored| stored.number != passage.number) {
        return Ok(false);
    }
    remove_ended(tx, passage)?;
    end_passage(tx, passage, ended_at)?;
    Ok(true)
}

/// Whether what came to a shard under a number is nowhere in it any more.
fn has_ended(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64) -> hot::Result<bool> {
    let (arrival, play, admitted) = tx.together(|tx| {
        (tx.exists(&ARRIVAL.key(entity)), tx.get(&PLAY.key(entity)), tx.get(&ADMITTED.key(entity)))
    })?;
    Ok(!arrival && play.is_none_or(|play| play.number != number) && admitted == Some(number))
}

/// Gives a session of another program its number; `Ok(Err)` = a higher one was admitted.
fn number_session(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    number: i64,
) -> hot::Result<std::result::Result<(), i64>> {
    let (session, play) = tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity))))?;
    let Some(session) = session else { return Ok(Ok(())) };
    match directory::admit::<Homes>(tx, &Entity(entity), number) {
        Ok(()) => {}
        Err(AdmitError::Superseded { highest, .. }) => return Ok(Err(highest)),
        Err(AdmitError::Store(error)) => return Err(error),
    }
    let play = play_of(tx, entity, play, &session)?;
    tx.put(&PLAY.key(entity), &Play { number, ..play })?;
    Ok(Ok(()))
}
