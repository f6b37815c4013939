//! The target's side of a hand-off between partitions: what came waits as an arrival, and becomes a session or a play session.

use super::hand_off::admit;
use super::sessions::end_former;
use super::*;
use crate::darkages::limits::{ARRIVAL_WAIT, ARRIVALS_MAX};
use crate::darkages::model::{Point, Position};
use crate::darkages::passage::{Passage, Passages};
use emberkeep_hot::store::Member;
use emberkeep_primitives::mail::{DeliveryError, LetterOf};

/// What a courier does in the target's partition.
pub(super) fn receive(
    tx: &mut Tx<'_, Shard>,
    letter: &LetterOf<Passages>,
) -> std::result::Result<(), DeliveryError> {
    let passage = &letter.body;
    let entity = passage.entity();
    if !admit(tx, entity, passage.number)? {
        return Ok(end_passage(tx, passage, passage.left_at)?);
    }
    Ok(arrive(tx, passage)?)
}

/// Stores an arrival whose number was admitted.
pub(super) fn arrive(tx: &mut Tx<'_, Shard>, passage: &Passage) -> hot::Result<()> {
    let entity = passage.entity();
    replace_arrival(tx, passage)?;
    let wait = if passage.returns { 0 } else { ARRIVAL_WAIT.as_millis() as i64 };
    let due = tx.now() + wait;
    tx.put(&ARRIVAL.key(entity), passage)?;
    tx.sadd(&ZONE_ARRIVALS.key(passage.zone()), &entity)?;
    arrivals_due().set(tx, &entity, due)
}

/// Records an older arrival that no call has accepted, unless it is of the same session. One that cannot be read is replaced.
fn replace_arrival(tx: &mut Tx<'_, Shard>, passage: &Passage) -> hot::Result<()> {
    let older = readable(tx.get(&ARRIVAL.key(passage.entity())))?.flatten();
    let Some(older) = older else { return Ok(()) };
    tx.srem(&ZONE_ARRIVALS.key(older.zone()), &older.entity())?;
    if is_same(&older.play, &passage.play) { Ok(()) } else { end_passage(tx, &older, older.left_at) }
}

/// Whether two play records are states of one session.
fn is_same(one: &Play, other: &Play) -> bool {
    (one.session_id, one.login_time) == (other.session_id, other.login_time)
}

pub(super) fn arrivals_due() -> DueQueue<ARRIVALS_DUE> {
    DueQueue::new(ARRIVALS_DUE.key())
}

/// Records a passage that a later login or logout replaced, or whose session expired.
pub(super) fn end_passage(tx: &mut Tx<'_, Shard>, passage: &Passage, ended_at: i64) -> hot::Result<()> {
    tx.append(&PLAYS_LOG.key(), &PlayEnd::new(passage.play.clone(), ended_at))
}

/// Removes an arrival.
pub(super) fn remove_arrival(tx: &mut Tx<'_, Shard>, passage: &Passage) -> hot::Result<()> {
    remove_ended(tx, passage)?;
    tx.zrem(&ARRIVALS_DUE.key(), &passage.entity())
}

/// Removes an arrival whose entry has to end: it stays due until then, so that the sweep completes it.
pub(super) fn remove_ended(tx: &mut Tx<'_, Shard>, passage: &Passage) -> hot::Result<()> {
    let (entity, now) = (passage.entity(), tx.now());
    tx.del(&ARRIVAL.key(entity))?;
    tx.srem(&ZONE_ARRIVALS.key(passage.zone()), &entity)?;
    arrivals_due().set(tx, &entity, now)
}

/// Who arrived in a zone, the lowest id first.
pub(super) async fn arrived_in(scope: &Scope<Shard>, zone: ZoneId) -> hot::Result<Vec<EntityId>> {
    let (mut arrived, mut from) = (Vec::new(), None);
    while arrived.len() < ARRIVALS_MAX {
        let page = scope.members(&ZONE_ARRIVALS.key(zone), from, ARRIVALS_MAX).await?;
        arrived.extend(page.members.into_iter().filter_map(|member| match member {
            Member::Known(entity) => Some(entity),
            Member::External(_) => None,
        }));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    arrived.sort_unstable();
    arrived.dedup();
    arrived.truncate(ARRIVALS_MAX);
    Ok(arrived)
}

/// What became of an arrival.
pub(super) enum Accepted {
    Session(Box<(Session, Play)>),
    /// Its session had expired. It is recorded, and its entry has to end.
    Ended,
    /// A later login or logout came before. It is recorded.
    Replaced,
}

/// Makes a session of an arrival.
pub(super) fn take_in(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId) -> Result<Accepted> {
    let (arrival, session, play) = tx.together(|tx| {
        (tx.get(&ARRIVAL.key(entity)), tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity)))
    })?;
    let Some(passage) = arrival.filter(|arrival| arrival.zone() == zone) else {
        return match (session, play) {
            (Some(session), Some(play)) if session.zone_id == zone.0 => {
                Ok(Accepted::Session(Box::new((session, play))))
            }
            _ => Err(Error::NotArrived { entity, zone }),
        };
    };
    if !admit(tx, entity, passage.number)? {
        remove_arrival(tx, &passage)?;
        end_passage(tx, &passage, passage.left_at)?;
        return Ok(Accepted::Replaced);
    }
    let now = tx.now();
    if session_end(passage.session.last_activity) <= now {
        remove_ended(tx, &passage)?;
        end_passage(tx, &passage, passage.play.last_activity)?;
        return Ok(Accepted::Ended);
    }
    remove_arrival(tx, &passage)?;
    match &play {
        // An older state of the session that arrives: a failover brought it back.
        Some(play) if is_same(play, &passage.play) => {
            remove(tx, entity, ZoneId(play.zone_id), zone)?;
        }
        // Another program logged it in here meanwhile, or the end of such a session is not recorded yet.
        _ => drop(end_former(tx, entity, session, play)?),
    }
    let (mut session, mut play) = (passage.session.clone(), passage.play_here());
    session.zone_id = zone.0;
    put_active(tx, entity, &mut session, &mut play)?;
    put_position(tx, entity, &session.position.clone())?;
    // What left from here is here again.
    tx.del(&DEPARTED.key(entity))?;
    connections::brought_along(tx, entity, &passage.connections)?;
    let former = ZoneId(passage.source_zone);
    zones::enter(tx, entity, former, zone)?;
    if !passage.returns {
        zones::complete_hand_off(tx, &session, former, Some(passage.number))?;
    }
    sessions_due().set(tx, &entity, next_check(now))?;
    Ok(Accepted::Session(Box::new((session, play))))
}

/// Where a player is after a hand-off. A position of the future stays the newer one in time only.
pub(super) fn put_position(tx: &mut Tx<'_, Shard>, entity: EntityId, position: &Point) -> hot::Result<()> {
    let stored = readable(tx.get(&POSITION.key(entity)))?.flatten();
    let Point { x, y, z, .. } = *position;
    let at = stored.map_or(0, |stored| stored.at).max(tx.now());
    tx.put(&POSITION.key(entity), &Position { x, y, z, at })
}
