//! Zones: who is where. A player is in at most one zone.
//!
//! The documented set of a zone is the authority. Beside it stands an auxiliary index, the members by the end of their
//! session. A session only gets longer, so a member whose time there has not come is alive, and counting is one read. Members
//! that are missing there, or whose time has come, are checked one by one and entered again.

use super::channels::publish;
use super::*;
use crate::darkages::channel::{EntityNotice, MessageType, ZoneMessage};
use crate::darkages::limits::{MEMBERS_PER_READ, MEMBERS_PER_TRANSACTION};
use crate::darkages::model::{Point, Position};
use emberkeep_hot::command::{Read, Reply, ScoreBound, ZSlice};
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_primitives::index::{self, Listing};
use std::collections::{HashMap, HashSet};

/// What a heartbeat did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Players in the zone.
    pub members: usize,
    /// Sessions that got a newer position.
    pub moved: usize,
}

/// The entries of a zone's set.
pub(super) struct ZoneEntries {
    /// Entities, in order, each once.
    pub(super) ids: Vec<EntityId>,
    /// Members that are no ids.
    invalid: Vec<bytes::Bytes>,
}

impl DarkAges {
    /// Moves a player into a zone of the same shard; [`ZoneId::NONE`] leaves the present one. Returns the zone that it left.
    /// Its session gets its present position. Both zones get a message. [`hand_off`](DarkAges::hand_off) moves to any zone.
    pub fn move_to(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<ZoneId>> {
        Box::pin(async move {
            if zone.0 < 0 {
                return Err(Error::invalid("zone", format!("{}, expected 0 or more", zone.0)));
            }
            let (shards, target) = (self.shards.clone(), self.partition_of(zone));
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let (mut session, mut play) = logged_in_where(tx, entity)?;
                let former = ZoneId(session.zone_id);
                let is_other = zone != ZoneId::NONE && *tx.partition() != target;
                if is_other || shards.are_apart(former, zone) {
                    return Err(Error::OtherShard { entity, what: format!("zone {zone}") });
                }
                change_zone(tx, entity, (&mut session, &mut play), zone)?;
                Ok(former)
            };
            self.at_home(entity, "darkages.move_to", transaction).await
        })
    }

    /// The zone of a player; `None` if it is not logged in or in no zone.
    pub fn zone_of(&self, entity: EntityId) -> Pending<'_, Result<Option<ZoneId>>> {
        Box::pin(async move {
            let session = self.session(entity).await?;
            Ok(session.map(|session| ZoneId(session.zone_id)).filter(|zone| *zone != ZoneId::NONE))
        })
    }

    /// The sessions of the players in a zone. Entries of players without a living session are removed.
    pub fn members(&self, zone: ZoneId) -> Pending<'_, Result<Listing<Session>>> {
        Box::pin(async move {
            Ok(index::list::<InZone>(&self.scope_of(zone).named("darkages.members"), &ZONE_PLAYERS.key(zone))
                .await?)
        })
    }

    /// The players in a zone, the lowest id first, without reading their sessions. A session that another program deleted
    /// counts until it would have expired, or until the next call of [`members`](Self::members).
    pub fn member_ids(&self, zone: ZoneId) -> Pending<'_, Result<Vec<EntityId>>> {
        Box::pin(async move {
            let scope = self.scope_of(zone).named("darkages.member_ids");
            let now = self.store.now().await?;
            let until = session_ends(&scope, zone).await?;
            let entries = member_pages(&scope, zone).await?;
            let is_alive = |entity: &EntityId| until.get(entity).is_some_and(|end| *end > now as f64);
            let (mut living, unknown): (Vec<_>, Vec<_>) = entries.ids.iter().partition(|id| is_alive(id));
            for chunk in unknown.chunks(MEMBERS_PER_TRANSACTION) {
                let chunk = chunk.to_vec();
                let transaction = move |tx: &mut Tx<'_, Shard>| check_members(tx, zone, &chunk);
                living.extend(scope.transact::<_, hot::Error, _>(transaction).await?);
            }
            let entered: HashSet<EntityId> = entries.ids.into_iter().collect();
            let left: Vec<EntityId> = until.into_keys().filter(|entity| !entered.contains(entity)).collect();
            for chunk in left.chunks(MEMBERS_PER_TRANSACTION) {
                let chunk = chunk.to_vec();
                let transaction = move |tx: &mut Tx<'_, Shard>| remove_ends(tx, zone, &chunk);
                scope.transact::<(), hot::Error, _>(transaction).await?;
            }
            remove_invalid(&scope, zone, entries.invalid).await?;
            living.sort_unstable();
            Ok(living)
        })
    }

    /// How many players are in a zone. One round trip, unless another program changed the zone or sessions came to the end
    /// that was known; then their players are checked. It knows of deleted sessions what
    /// [`member_ids`](Self::member_ids) knows.
    pub fn count(&self, zone: ZoneId) -> Pending<'_, Result<usize>> {
        Box::pin(async move {
            let (players, until) = (ZONE_PLAYERS.key(zone), ZONE_UNTIL.key(zone));
            let now = self.store.now().await?;
            let transaction = move |tx: &mut hot::ReadTx<'_, Shard>| {
                let after = ScoreBound::Excluded(hot::command::Score::from_i64(now));
                tx.together(|tx| {
                    (tx.scard(&players), tx.zcard(&until), tx.zcount(&until, after, ScoreBound::MAX))
                })
            };
            let scope = self.scope_of(zone).named("darkages.count");
            let (entries, ends, living) = scope.read::<_, hot::Error, _>(transaction).await?;
            if entries == ends && ends == living {
                return Ok(living);
            }
            Ok(self.member_ids(zone).await?.len())
        })
    }

    /// Whether a player with a living session is in a zone.
    pub fn is_in_zone(&self, entity: EntityId, zone: ZoneId) -> Pending<'_, Result<bool>> {
        Box::pin(async move {
            let transaction = move |tx: &mut hot::ReadTx<'_, Shard>| {
                let (session, is_member) = tx.together(|tx| {
                    (tx.get(&SESSION.key(entity)), tx.sismember(&ZONE_PLAYERS.key(zone), &entity))
                })?;
                Ok(is_member && session.is_some_and(|session| session.zone_id == zone.0))
            };
            self.scope_of(zone).named("darkages.is_in_zone").read(transaction).await
        })
    }

    /// Keeps the members of a zone for another half hour, and writes the positions of players that moved into their
    /// sessions. A move after the last activity is activity. A zone server calls it while it serves the zone. A loop of
    /// transactions of at most 100 players.
    pub fn heartbeat(&self, zone: ZoneId) -> Pending<'_, Result<Heartbeat>> {
        Box::pin(async move {
            let scope = self.scope_of(zone).named("darkages.heartbeat");
            let keep = move |tx: &mut Tx<'_, Shard>| {
                tx.touch(&ZONE_PLAYERS.key(zone))?;
                tx.touch(&ZONE_UNTIL.key(zone))
            };
            scope.transact::<(), hot::Error, _>(keep).await?;
            let members = self.member_ids(zone).await?;
            let mut done = Heartbeat { members: members.len(), moved: 0 };
            for chunk in members.chunks(MEMBERS_PER_TRANSACTION) {
                let chunk = chunk.to_vec();
                let transaction = move |tx: &mut Tx<'_, Shard>| write_positions(tx, zone, &chunk);
                done.moved += scope.transact::<_, hot::Error, _>(transaction).await?;
            }
            Ok(done)
        })
    }
}

/// Moves a player to another zone of its partition, with the messages of both zones.
pub(super) fn change_zone(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    (session, play): (&mut Session, &mut Play),
    zone: ZoneId,
) -> hot::Result<()> {
    let former = ZoneId(session.zone_id);
    if former != zone {
        leave_zone(tx, entity, former)?;
        notify(tx, MessageType::EntityLeaving, EntityNotice::new(entity.0), (former, zone))?;
    }
    session.zone_id = zone.0;
    put_active(tx, entity, session, play)?;
    add(tx, entity, zone)?;
    if former == zone {
        return Ok(());
    }
    notify(tx, MessageType::EntityEntering, EntityNotice::new(entity.0), (former, zone))
}

/// Enters a zone that the session names already, from another shard or, without a zone, at a login.
pub(super) fn enter(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    former: ZoneId,
    zone: ZoneId,
) -> hot::Result<()> {
    add(tx, entity, zone)?;
    notify(tx, MessageType::EntityEntering, EntityNotice::new(entity.0), (former, zone))
}

/// Leaves a zone for one of another shard or, without a zone, because the session ends.
pub(super) fn leave(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId, next: ZoneId) -> hot::Result<()> {
    tx.del(&PLAYER_ZONE.key(entity))?;
    leave_zone(tx, entity, zone)?;
    notify(tx, MessageType::EntityLeaving, EntityNotice::new(entity.0), (zone, next))
}

/// Says in the zone of a player who was handed off that it is there. A hand-off within a partition has no number.
pub(super) fn complete_hand_off(
    tx: &mut Tx<'_, Shard>,
    session: &Session,
    former: ZoneId,
    number: Option<i64>,
) -> hot::Result<()> {
    let notice = EntityNotice {
        position: Some(session.position.clone()),
        handoff: number.and_then(|number| u64::try_from(number).ok()),
        ..EntityNotice::new(session.entity_id)
    };
    notify(tx, MessageType::HandoffComplete, notice, (former, ZoneId(session.zone_id)))
}

/// Writes the entries of a player that is active now.
fn add(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId) -> hot::Result<()> {
    if zone == ZoneId::NONE {
        return tx.del(&PLAYER_ZONE.key(entity));
    }
    tx.sadd(&ZONE_PLAYERS.key(zone), &entity)?;
    let end = session_end(tx.now());
    tx.zadd(&ZONE_UNTIL.key(zone), &entity, end as f64)?;
    tx.put(&PLAYER_ZONE.key(entity), &zone.0)
}

/// Removes the entries of a player from its zone.
pub(super) fn leave_zone(tx: &mut Tx<'_, Shard>, entity: EntityId, zone: ZoneId) -> hot::Result<()> {
    if zone == ZoneId::NONE {
        return Ok(());
    }
    tx.srem(&ZONE_PLAYERS.key(zone), &entity)?;
    tx.zrem(&ZONE_UNTIL.key(zone), &entity)
}

/// Sends a message about a player on the channel of the zone that it leaves or enters.
fn notify(
    tx: &mut Tx<'_, Shard>,
    message_type: MessageType,
    notice: EntityNotice,
    (source, target): (ZoneId, ZoneId),
) -> hot::Result<()> {
    let zone = if message_type == MessageType::EntityLeaving { source } else { target };
    if zone == ZoneId::NONE {
        return Ok(());
    }
    let message = ZoneMessage::about(message_type, source, target, &notice);
    publish(tx, zone, message).map(|_| ())
}

/// All entries of a zone's set, page by page.
pub(super) async fn member_pages(scope: &Scope<Shard>, zone: ZoneId) -> hot::Result<ZoneEntries> {
    let (mut ids, mut invalid, mut from) = (Vec::new(), Vec::new(), None);
    loop {
        let page = scope.members(&ZONE_PLAYERS.key(zone), from, MEMBERS_PER_READ).await?;
        for member in page.members {
            match member {
                Member::Known(entity) => ids.push(entity),
                Member::External(bytes) => invalid.push(bytes),
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ZoneEntries { ids, invalid })
}

/// The known ends of the sessions of a zone's members, page by page. An end that a page misses, because others changed
/// the order meanwhile, is unknown.
async fn session_ends(scope: &Scope<Shard>, zone: ZoneId) -> hot::Result<HashMap<EntityId, f64>> {
    let mut ends = HashMap::new();
    for first in (0..).step_by(MEMBERS_PER_READ) {
        let ranks = ZSlice::Rank(first, first + MEMBERS_PER_READ as i64 - 1);
        let page = scope.zrange(&ZONE_UNTIL.key(zone), ranks, false).await?;
        let is_last = page.len() < MEMBERS_PER_READ;
        ends.extend(page);
        if is_last {
            break;
        }
    }
    Ok(ends)
}

/// Which members have a living session in the zone. They are entered with its end, the others are removed.
fn check_members(tx: &mut Tx<'_, Shard>, zone: ZoneId, members: &[EntityId]) -> hot::Result<Vec<EntityId>> {
    let sessions: Vec<_> = members.iter().map(|entity| SESSION.key(entity)).collect();
    let deadlines: Vec<_> = sessions.iter().map(|key| (tx.raw_name(key), Read::ExpireTime)).collect();
    let found = tx.get_each(&sessions)?;
    let deadlines = tx.raw_read_many(&deadlines)?;
    let (mut living, mut ends, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for ((entity, session), deadline) in members.iter().zip(found).zip(deadlines) {
        match session {
            Ok(Some(session)) if session.zone_id == zone.0 => {
                let end = match deadline? {
                    Reply::Int(at) if at > 0 => at + 1,
                    // Another program wrote it without a TTL.
                    _ => session_end(tx.now()),
                };
                ends.push(end as f64);
                living.push(*entity);
            }
            Ok(_) => gone.push(*entity),
            // It may be alive, but the zone is not known.
            Err(error) if error.is_corrupt() => {}
            Err(error) => return Err(error),
        }
    }
    if !living.is_empty() {
        tx.zadd_many(&ZONE_UNTIL.key(zone), living.iter().zip(ends))?;
    }
    if !gone.is_empty() {
        tx.srem_many(&ZONE_PLAYERS.key(zone), &gone)?;
        tx.zrem_many(&ZONE_UNTIL.key(zone), &gone)?;
    }
    Ok(living)
}

/// Removes the ends of players that are no longer in the zone's set.
fn remove_ends(tx: &mut Tx<'_, Shard>, zone: ZoneId, entities: &[EntityId]) -> hot::Result<()> {
    let players = tx.raw_name(&ZONE_PLAYERS.key(zone));
    let member = |entity: &EntityId| bytes::Bytes::from(entity.0.to_string());
    let reads: Vec<_> =
        entities.iter().map(|entity| (players.clone(), Read::SIsMember(member(entity)))).collect();
    for (entity, reply) in entities.iter().zip(tx.raw_read_many(&reads)?) {
        if reply? == Reply::Int(0) {
            tx.zrem(&ZONE_UNTIL.key(zone), entity)?;
        }
    }
    Ok(())
}

/// Removes members that are no ids.
async fn remove_invalid(scope: &Scope<Shard>, zone: ZoneId, invalid: Vec<bytes::Bytes>) -> hot::Result<()> {
    for chunk in invalid.chunks(MEMBERS_PER_TRANSACTION) {
        let chunk = chunk.to_vec();
        let transaction = move |tx: &mut Tx<'_, Shard>| {
            chunk.iter().try_for_each(|bytes| tx.srem_raw(&ZONE_PLAYERS.key(zone), bytes.clone()))
        };
        scope.transact::<(), hot::Error, _>(transaction).await?;
    }
    Ok(())
}

/// Writes newer positions into sessions. Returns how many.
fn write_positions(tx: &mut Tx<'_, Shard>, zone: ZoneId, members: &[EntityId]) -> hot::Result<usize> {
    let (sessions, positions): (Vec<_>, Vec<_>) =
        members.iter().map(|entity| (SESSION.key(entity), POSITION.key(entity))).unzip();
    let plays: Vec<_> = members.iter().map(|entity| PLAY.key(entity)).collect();
    let (sessions, positions, plays) =
        tx.together(|tx| (tx.get_each(&sessions), tx.get_each(&positions), tx.get_each(&plays)))?;
    let mut moved = 0;
    for (((entity, session), position), play) in members.iter().zip(sessions).zip(positions).zip(plays) {
        // What cannot be read stays as it is; reading it names the key.
        let (Some(Some(mut session)), Some(Some(position)), Some(play)) =
            (readable(session)?, readable(position)?, readable(play)?)
        else {
            continue;
        };
        if session.zone_id != zone.0 || !take_position(&mut session, &position) {
            continue;
        }
        let mut play = play_of(tx, *entity, play, &session)?;
        if position.at > session.last_activity {
            put_active(tx, *entity, &mut session, &mut play)?;
        } else {
            // It stopped before its last activity.
            put_passive(tx, *entity, &session, &play)?;
        }
        moved += 1;
    }
    Ok(moved)
}

/// The living session of an entity, with its present position, and its play record.
fn logged_in_where(tx: &mut Tx<'_, Shard>, entity: EntityId) -> Result<(Session, Play)> {
    let position = [POSITION.key(entity)];
    let (session, play, position) =
        tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&PLAY.key(entity)), tx.get_each(&position)))?;
    let mut session = session.ok_or(Error::NotLoggedIn { entity })?;
    let play = play_of(tx, entity, play, &session)?;
    for position in position {
        if let Some(Some(position)) = readable(position)? {
            take_position(&mut session, &position);
        }
    }
    Ok((session, play))
}

/// Copies a player's position into its session. `false` = it is there already, or is one of an earlier session.
fn take_position(session: &mut Session, position: &Position) -> bool {
    let Position { x, y, z, at } = *position;
    let former = (session.position.x, session.position.y, session.position.z);
    let is_new = at >= position_since(session) && former != (x, y, z);
    if is_new {
        session.position = Point { extra: session.position.extra.clone(), ..Point::new(x, y, z) };
    }
    is_new
}
