//! Positions: thousands per tick. An older one never replaces a newer one.

use super::sessions::check_point;
use super::*;
use crate::darkages::limits::{DIRECTORY_READS_AT_ONCE, POSITIONS_MAX, POSITIONS_PER_READ};
use crate::darkages::model::{Point, Position};
use emberkeep_hot::engine::Pending;
use std::collections::{BTreeMap, HashMap};
use tokio::task::JoinSet;

/// What became of a bulk update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PositionsReport {
    /// Positions that were written.
    pub written: usize,
    /// Positions that were older than the stored one, or as old.
    pub outdated: usize,
    /// Where shards are partitions of their own: positions of players who are not logged in.
    pub absent: usize,
}

impl DarkAges {
    /// Sets the positions of many players, at most 50,000. Each is atomic by itself: they are written in bulk, without a
    /// read. Of several positions of one player the newest counts. Where a position cannot be read, because another program
    /// left something else, it has no time and is replaced. Sessions are not read: a position that comes after the logout
    /// expires by itself, and [`nearby`](DarkAges::nearby) does not find it.
    ///
    /// Where shards are partitions of their own, the directory is asked for each player, unless
    /// [`in_zone`](DarkAges::in_zone) says where they are.
    pub fn set_positions(
        &self,
        positions: Vec<(EntityId, Position)>,
    ) -> Pending<'_, Result<PositionsReport>> {
        Box::pin(async move {
            if positions.len() > POSITIONS_MAX {
                let problem = format!("{}, expected at most {POSITIONS_MAX}", positions.len());
                return Err(Error::invalid("number of positions", problem));
            }
            for (_, Position { x, y, z, .. }) in &positions {
                check_point(&Point::new(*x, *y, *z))?;
            }
            let mut report = PositionsReport::default();
            let (groups, absent) = self.by_shard(positions, |(entity, _)| *entity).await?;
            report.absent = absent.len();
            for (shard, positions) in groups {
                let scope = self.store.scope(shard).named("darkages.set_positions");
                let (count, keyed) = (positions.len(), |(entity, position)| (POSITION.key(entity), position));
                let outdated = scope.put_each_if_greater(positions.into_iter().map(keyed)).await?;
                report.written += count - outdated;
                report.outdated += outdated;
            }
            Ok(report)
        })
    }

    /// Where a player is: its position, or that of its session if that is newer. `None` = it is not logged in.
    pub fn position(&self, entity: EntityId) -> Pending<'_, Result<Option<Position>>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let (session, position) =
                    tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&POSITION.key(entity))))?;
                Ok(session.map(|session| newest(&session, position)))
            };
            self.at_home(entity, "darkages.position", transaction).await
        })
    }

    /// The positions of players, in the order of the request; `None` where there is none. Each has a result of its own: one
    /// that another program wrote and that cannot be read hides no other.
    pub fn positions(
        &self,
        entities: &[EntityId],
    ) -> Pending<'_, Result<Vec<hot::Result<Option<Position>>>>> {
        let entities: Vec<_> = entities.iter().copied().enumerate().collect();
        Box::pin(async move {
            let mut found: Vec<_> = entities.iter().map(|_| Ok(None)).collect();
            let (groups, _) = self.by_shard(entities, |(_, entity)| *entity).await?;
            for (shard, entities) in groups {
                let scope = self.store.scope(shard).named("darkages.positions");
                for chunk in entities.chunks(POSITIONS_PER_READ) {
                    let keys: Vec<_> = chunk.iter().map(|(_, entity)| POSITION.key(entity)).collect();
                    for ((place, _), position) in chunk.iter().zip(scope.get_each(&keys).await?) {
                        found[*place] = position;
                    }
                }
            }
            Ok(found)
        })
    }

    /// Divides what is about entities by the partition that each is in, and returns what is about those that are in none.
    async fn by_shard<T>(
        &self,
        all: Vec<T>,
        entity: fn(&T) -> EntityId,
    ) -> Result<(BTreeMap<Shard, Vec<T>>, Vec<T>)> {
        if self.home.is_some() || !self.is_split() {
            return Ok((BTreeMap::from([(*self.scope().partition(), all)]), Vec::new()));
        }
        let mut known: HashMap<EntityId, Option<Shard>> =
            all.iter().map(|about| (entity(about), None)).collect();
        let mut unknown = known.keys().copied().collect::<Vec<_>>().into_iter();
        let mut reads = JoinSet::new();
        loop {
            // Each entry is in a partition of its own.
            while reads.len() < DIRECTORY_READS_AT_ONCE
                && let Some(entity) = unknown.next()
            {
                let game = self.clone();
                reads.spawn(async move { (entity, game.shard_of(entity).await) });
            }
            match reads.join_next().await {
                None => break,
                Some(Ok((entity, Ok(shard)))) => drop(known.insert(entity, Some(shard))),
                Some(Ok((_, Err(Error::NotLoggedIn { .. })))) => {}
                Some(Ok((_, Err(error)))) => return Err(error),
                Some(Err(error)) => return Err(hot::Error::Panicked { message: error.to_string() }.into()),
            }
        }
        let (mut groups, mut absent) = (BTreeMap::<Shard, Vec<T>>::new(), Vec::new());
        for about in all {
            match known.get(&entity(&about)).copied().flatten() {
                Some(shard) => groups.entry(shard).or_default().push(about),
                None => absent.push(about),
            }
        }
        Ok((groups, absent))
    }
}

/// The newer one of a session's position and a player's own. A session's position is written at login, hand-off and
/// heartbeat together with, or from, the player's own: it is newer than one of before the login only.
fn newest(session: &Session, position: Option<Position>) -> Position {
    let Point { x, y, z, .. } = session.position;
    let of_session = Position { x, y, z, at: position_since(session) };
    position.filter(|position| position.at >= of_session.at).unwrap_or(of_session)
}
