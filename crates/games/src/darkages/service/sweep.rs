//! Closing sessions that have expired: each becomes a play session of history, once.

use super::*;
use crate::darkages::limits::CLOSED_PER_TRANSACTION;
use emberkeep_hot::engine::Pending;

/// What a pass over the sessions that were due did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionsClosed {
    /// Sessions that had ended and are recorded now.
    pub closed: usize,
    /// Sessions that live: they are looked at again when they can be gone.
    pub alive: usize,
}

impl DarkAges {
    /// Closes up to `limit` sessions that have expired or that an external client deleted. Their end is the last known
    /// activity. A loop of transactions of at most 32 sessions each; call it again while it does something.
    pub fn close_expired(&self, limit: usize) -> Pending<'_, Result<SessionsClosed>> {
        Box::pin(async move {
            let mut done = SessionsClosed::default();
            while done.closed + done.alive < limit {
                let count = (limit - done.closed - done.alive).min(CLOSED_PER_TRANSACTION);
                let transaction = move |tx: &mut Tx<'_, Shard>| close_due(tx, count);
                let SessionsClosed { closed, alive } =
                    self.named("darkages.close_expired").transact(transaction).await?;
                done.closed += closed;
                done.alive += alive;
                if closed + alive == 0 {
                    break;
                }
            }
            Ok(done)
        })
    }

    /// Entities whose session has ended and is not closed yet, at most `limit`, 1,000 at most.
    pub fn expired(&self, limit: usize) -> Pending<'_, Result<Vec<EntityId>>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Shard>| {
                let due = sessions_due().due(tx, limit)?;
                let keys: Vec<_> = due.iter().map(|(entity, _)| SESSION.key(entity)).collect();
                let alive = tx.exists_many(&keys)?;
                Ok::<_, Error>(
                    due.into_iter()
                        .zip(alive)
                        .filter(|(_, alive)| !alive)
                        .map(|((entity, _), _)| entity)
                        .collect(),
                )
            };
            self.named("darkages.expired").transact(transaction).await
        })
    }
}

fn close_due(tx: &mut Tx<'_, Shard>, count: usize) -> hot::Result<SessionsClosed> {
    let due: Vec<EntityId> =
        sessions_due().pop_due(tx, count)?.into_iter().map(|(entity, _)| entity).collect();
    let (sessions, plays): (Vec<_>, Vec<_>) =
        due.iter().map(|entity| (SESSION.key(entity), PLAY.key(entity))).unzip();
    let (alive, plays) = tx.together(|tx| (tx.exists_many(&sessions), tx.get_each(&plays)))?;
    let mut done = SessionsClosed::default();
    for ((entity, alive), play) in due.into_iter().zip(alive).zip(plays) {
        if alive {
            // Every activity prolongs the session; its deadline says until when.
            let now = tx.now();
            let end = tx.deadline(&SESSION.key(entity))?.map_or(session_end(now), |deadline| deadline + 1);
            sessions_due().set(tx, &entity, end)?;
            done.alive += 1;
        } else if let Some(play) = play? {
            let ended_at = play.last_activity;
            close(tx, entity, play, ended_at)?;
            done.closed += 1;
        }
    }
    Ok(done)
}
