//! The sweep of the directory, where shards are partitions of their own: it finds players who are not where their entry
//! says.
//!
//! A failover of Redis can set one partition back, so that it has not what its entry, or another partition, says it has. What is
//! left of a player decides:
//!
//! 1. A session or an arrival, wherever it is: the sweep of that shard compares it at once, and makes it the player, or removes it
//!    if a newer one is there.
//! 2. The copy that a shard keeps of a player who left it, if the target has not what left: the player comes back to the zone that
//!    it left.
//! 3. Nothing: the player is logged out, and history gets a play session from its start to the last sweep that saw it.
//!
//! Budget of a call: a page of the directory, each entry by one or two reads; of one that is not in place all shards are read.

use super::arrivals::{arrivals_due, arrive};
use super::hand_off::admit;
use super::homes::{Owner, is_of_session};
use super::sweep_shards::is_here_since;
use super::*;
use crate::darkages::events::event_id;
use crate::darkages::limits::{DIRECTORY_LIFE, DIRECTORY_PER_CHECK, DIRECTORY_READS_AT_ONCE};
use crate::darkages::passage::Passage;
use emberkeep_hot::engine::{Cursor, Pending};
use emberkeep_primitives::directory::{Placement, State};
use tokio::task::JoinSet;

/// What a check of a part of the directory did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DirectoryChecked {
    /// Players who were not where their entry says and are found elsewhere: the sweep of that shard compares them next.
    pub found: usize,
    /// Players who are lost where they went, and come back to where they left.
    pub restored: usize,
    /// Players who are nowhere and are logged out.
    pub ended: usize,
    /// Entries that failed. They are as they were.
    pub failed: usize,
    /// Why the last of those failed.
    pub failure: Option<Error>,
    /// Where the next call continues; `None` after the whole directory.
    pub next: Option<Cursor>,
}

impl DirectoryChecked {
    fn add(&mut self, checked: Result<Checked>) {
        match checked {
            Ok(Checked::InPlace) => {}
            Ok(Checked::Found) => self.found += 1,
            Ok(Checked::Restored) => self.restored += 1,
            Ok(Checked::Ended) => self.ended += 1,
            Err(error) => {
                self.failed += 1;
                self.failure = Some(error);
            }
        }
    }
}

/// What became of an entry.
enum Checked {
    /// The player is where it says, or it changed meanwhile.
    InPlace,
    Found,
    Restored,
    Ended,
}

/// What a shard has of an entity.
struct Trace {
    shard: Shard,
    has_session: bool,
    has_arrival: bool,
    departed: Option<Passage>,
    /// The highest number.
    admitted: i64,
}

impl DarkAges {
    /// Looks for players who are not where the directory says, as after a failover that lost transactions, and brings them back or
    /// logs them out. A page for each call: begin with `None` and continue with [`DirectoryChecked::next`], every few seconds.
    /// Entries that changed in the last minute are left alone. Where all shards are one partition there is nothing to do.
    pub fn check_directory(&self, from: Option<Cursor>) -> Pending<'_, Result<DirectoryChecked>> {
        Box::pin(async move {
            let mut done = DirectoryChecked::default();
            if !self.is_split() {
                return Ok(done);
            }
            let before = self.store.now().await? - DIRECTORY_CHECK_EVERY.as_millis() as i64;
            let page = self.store.scan::<DIRECTORY>(from, DIRECTORY_PER_CHECK).await?;
            let mut entities = page.keys.into_iter().filter_map(|(entity, _)| entity);
            let mut checks = JoinSet::new();
            loop {
                // Each entry is in a partition of its own.
                while checks.len() < DIRECTORY_READS_AT_ONCE
                    && let Some(entity) = entities.next()
                {
                    let game = self.clone();
                    checks.spawn(async move { game.check_entry(entity.0, before).await });
                }
                let Some(checked) = checks.join_next().await else { break };
                done.add(
                    checked.unwrap_or_else(|panic| {
                        Err(hot::Error::Panicked { message: panic.to_string() }.into())
                    }),
                );
            }
            done.next = page.next;
            Ok(done)
        })
    }

    async fn check_entry(&self, entity: EntityId, before: i64) -> Result<Checked> {
        let found = self.find(entity).await?.filter(|found| found.state != State::Ended);
        // The number of a login or hand-off is its time in microseconds, or soon after it.
        let Some(found) = found.filter(|found| found.number / 1_000 <= before) else {
            return Ok(Checked::InPlace);
        };
        // Also a player on its way has arrived after a minute.
        let number = found.number;
        let home = self.store.scope(found.home).named("darkages.check_directory");
        if home.read(move |tx| is_here_since(tx, entity, number)).await? {
            return Ok(Checked::InPlace);
        }
        let mut traces = Vec::new();
        for scope in self.scopes() {
            let read = move |tx: &mut hot::ReadTx<'_, Shard>| trace_of(tx, entity);
            traces.push(scope.named("darkages.trace").read::<_, hot::Error, _>(read).await?);
        }
        if self.find(entity).await?.as_ref() != Some(&found) {
            return Ok(Checked::InPlace);
        }
        self.recover(entity, found, traces).await
    }

    async fn recover(
        &self,
        entity: EntityId,
        found: Placement<Shard>,
        traces: Vec<Trace>,
    ) -> Result<Checked> {
        if traces.iter().any(|trace| trace.has_session || trace.has_arrival) {
            for Trace { shard, has_session, has_arrival, .. } in traces {
                let due = move |tx: &mut Tx<'_, Shard>| make_due(tx, entity, has_session, has_arrival);
                self.store.scope(shard).named("darkages.make_due").transact(due).await?;
            }
            return Ok(Checked::Found);
        }
        let admitted_by =
            |shard: Shard| traces.iter().find(|trace| trace.shard == shard).map_or(0, |trace| trace.admitted);
        let own = |passage: &&Passage| is_of_session(&found, entity, &passage.play);
        let departed = traces.iter().filter_map(|trace| trace.departed.as_ref().filter(own));
        let departed = departed.max_by_key(|passage| passage.number);
        if let Some(passage) = departed {
            // A player in no zone returned to a shard that its zone does not name.
            let is_nowhere = passage.zone() == ZoneId::NONE;
            let target = if is_nowhere { found.home } else { self.partition_of(passage.zone()) };
            if admitted_by(target) < passage.number {
                let (number, above) = (passage.number, found.number);
                let scope = self.store.scope(Shard(passage.source_shard)).named("darkages.restore");
                let back = scope.transact(move |tx| restore(tx, entity, (number, above), target)).await?;
                return Ok(if back { Checked::Restored } else { Checked::InPlace });
            }
        }
        if admitted_by(found.home) < found.number {
            self.record_lost(entity, &found).await?;
        }
        // Otherwise it was there and has ended, in the transaction that recorded it.
        self.end_entry(entity, found.number).await?;
        Ok(Checked::Ended)
    }

    /// Records the play session of a player of whom nothing but the entry is left. One who was only about to log in has none.
    async fn record_lost(&self, entity: EntityId, found: &Placement<Shard>) -> Result<()> {
        let seen = move |tx: &mut Tx<'_, Entity>| tx.deadline(&DIRECTORY.key());
        let deadline = self.entry_scope(entity).transact::<_, hot::Error, _>(seen).await?;
        let seen = deadline.map_or(0, |deadline| deadline - DIRECTORY_LIFE.as_millis() as i64);
        let (number, since) = (found.number, found.since_ms);
        let owner = Owner::parse(&found.owner, entity);
        let (session_id, player_id) =
            owner.map_or((None, entity.0), |owner| (Some(owner.session_id), owner.player_id));
        let record = move |tx: &mut Tx<'_, Shard>| {
            let highest = tx.get(&ADMITTED.key(entity))?.unwrap_or_default();
            // From now on nothing of this number begins here. Another pass that did this has recorded it, too.
            if highest > number || !admit(tx, entity, number.saturating_add(1))? || seen <= since {
                return Ok(());
            }
            let session_id = session_id.unwrap_or_else(|| event_id(tx));
            let play = Play::new(session_id, player_id, since, seen, ZoneId::NONE.0);
            tx.append(&PLAYS_LOG.key(), &PlayEnd::new(play, seen))
        };
        let scope = self.store.scope(found.home).named("darkages.record_lost");
        Ok(scope.transact::<(), hot::Error, _>(record).await?)
    }
}

fn trace_of(tx: &mut hot::ReadTx<'_, Shard>, entity: EntityId) -> hot::Result<Trace> {
    let shard = *tx.partition();
    let (departed, admitted) = ([DEPARTED.key(entity)], [ADMITTED.key(entity)]);
    let (session, play, arrival, departed, admitted) = tx.together(|tx| {
        (
            tx.exists(&SESSION.key(entity)),
            tx.exists(&PLAY.key(entity)),
            tx.exists(&ARRIVAL.key(entity)),
            tx.get_each(&departed),
            tx.get_each(&admitted),
        )
    })?;
    // What cannot be read is not there.
    let departed = departed.into_iter().find_map(|departed| departed.ok().flatten());
    let admitted = admitted.into_iter().find_map(|admitted| admitted.ok().flatten()).unwrap_or_default();
    Ok(Trace { shard, has_session: session || play, has_arrival: arrival, departed, admitted })
}

fn make_due(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    has_session: bool,
    has_arrival: bool,
) -> hot::Result<()> {
    let now = tx.now();
    if has_session {
        sessions_due().set(tx, &entity, now)?;
    }
    if has_arrival { arrivals_due().set(tx, &entity, now) } else { Ok(()) }
}

/// Makes an arrival of a player who left under this number, and is lost in the shard where it went. It comes from there: who
/// refuses it sends it there again. Whether it was still there.
fn restore(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    (number, above): (i64, i64),
    lost_in: Shard,
) -> Result<bool> {
    let (departed, highest) =
        tx.together(|tx| (tx.get(&DEPARTED.key(entity)), tx.get(&ADMITTED.key(entity))))?;
    let Some(departed) = departed.filter(|departed| departed.number == number) else { return Ok(false) };
    let now = tx.now();
    let number = above.max(highest.unwrap_or_default()).saturating_add(1).max(now.saturating_mul(1_000));
    let (source_zone, source_shard, target_zone) = (departed.target_zone, lost_in.0, departed.source_zone);
    let back =
        Passage { number, source_zone, source_shard, target_zone, left_at: now, returns: true, ..departed };
    tx.del(&DEPARTED.key(entity))?;
    admit(tx, entity, number)?;
    arrive(tx, &back)?;
    Ok(true)
}
