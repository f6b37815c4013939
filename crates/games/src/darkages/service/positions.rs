//! Positions: thousands per tick. An older one never replaces a newer one.

use super::sessions::check_point;
use super::*;
use crate::darkages::limits::{POSITIONS_MAX, POSITIONS_PER_TRANSACTION};
use crate::darkages::model::{Point, Position};
use emberkeep_hot::engine::Pending;

/// What became of a bulk update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Positioned {
    /// Positions that were written.
    pub written: usize,
    /// Positions that were older than the stored one, or as old.
    pub outdated: usize,
}

impl DarkAges {
    /// Sets the positions of many players, at most 50,000. Each is atomic by itself: a loop of transactions of 250. Of
    /// several positions of one player the newest counts.
    pub fn set_positions(&self, positions: Vec<(EntityId, Position)>) -> Pending<'_, Result<Positioned>> {
        Box::pin(async move {
            if positions.len() > POSITIONS_MAX {
                let problem = format!("{}, expected at most {POSITIONS_MAX}", positions.len());
                return Err(Error::invalid("number of positions", problem));
            }
            for (_, Position { x, y, z, .. }) in &positions {
                check_point(&Point::new(*x, *y, *z))?;
            }
            let mut done = Positioned::default();
            for chunk in positions.chunks(POSITIONS_PER_TRANSACTION) {
                let (chunk, count) = (chunk.to_vec(), chunk.len());
                let transaction = move |tx: &mut Tx<'_, Shard>| set_newer(tx, &chunk);
                let written = self.scope().named("darkages.set_positions").transact(transaction).await?;
                done.written += written;
                done.outdated += count - written;
            }
            Ok(done)
        })
    }

    /// The positions of players, in the order of the request; `None` where there is none.
    pub fn positions(&self, entities: &[EntityId]) -> Pending<'_, Result<Vec<Option<Position>>>> {
        let keys: Vec<_> = entities.iter().map(|entity| POSITION.key(entity)).collect();
        Box::pin(async move {
            let mut found = Vec::with_capacity(keys.len());
            for chunk in keys.chunks(POSITIONS_PER_TRANSACTION) {
                found.extend(self.scope().get_many(chunk).await?);
            }
            Ok(found)
        })
    }
}

fn set_newer(tx: &mut Tx<'_, Shard>, positions: &[(EntityId, Position)]) -> hot::Result<usize> {
    let keys: Vec<_> = positions.iter().map(|(entity, _)| POSITION.key(entity)).collect();
    tx.prefetch(|tx| tx.get_many(&keys));
    let mut written = 0;
    for (key, (_, position)) in keys.iter().zip(positions) {
        if tx.get(key)?.is_none_or(|stored| stored.at < position.at) {
            tx.put(key, position)?;
            written += 1;
        }
    }
    Ok(written)
}
