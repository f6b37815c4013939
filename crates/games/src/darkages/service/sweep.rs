//! Closing sessions that have expired: each becomes a play session of history, once.

use super::*;
use crate::darkages::limits::CLOSED_PER_TRANSACTION;
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::Presence;
use emberkeep_schema::Name;

/// What a pass over the sessions that were due did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionsClosed {
    /// Sessions that had ended and are recorded now.
    pub closed: usize,
    /// Sessions that live: they are checked again when they can be gone.
    pub alive: usize,
    /// Play records that cannot be read: they are as they were, and checked again in an hour.
    pub unreadable: usize,
    /// Sessions that failed where shards are partitions of their own: they are as they were, and checked again in a minute.
    pub failed: usize,
}

impl SessionsClosed {
    fn seen(&self) -> usize {
        self.closed + self.alive + self.unreadable + self.failed
    }
}

impl DarkAges {
    /// Closes up to `limit` sessions that have expired or that an external client deleted, in all shards or in that of
    /// [`in_zone`](DarkAges::in_zone). Their end is the last known activity. A loop of transactions of at most 32 sessions
    /// each; call it again while it does something.
    ///
    /// Where shards are partitions of their own, each session is compared with the directory once a minute, and one that
    /// it does not know is closed, too. A shard that fails does not stop the others; an error says that nothing was done.
    pub fn close_expired(&self, limit: usize) -> Pending<'_, Result<SessionsClosed>> {
        Box::pin(async move {
            let (mut done, mut failure) = (SessionsClosed::default(), None);
            for scope in self.scopes().into_iter().filter(|scope| self.is_here(*scope.partition())) {
                while done.seen() < limit {
                    let count = (limit - done.seen()).min(CLOSED_PER_TRANSACTION);
                    let more = if self.is_split() {
                        self.compare_due(&scope, count).await
                    } else {
                        let transaction = move |tx: &mut Tx<'_, Shard>| close_due(tx, count);
                        let scope = scope.clone().named("darkages.close_expired");
                        scope.transact::<_, hot::Error, _>(transaction).await.map_err(Error::from)
                    };
                    let more = match more {
                        Ok(more) => more,
                        // A shard that fails does not stop the others.
                        Err(error) => {
                            failure = Some(error);
                            break;
                        }
                    };
                    done.closed += more.closed;
                    done.alive += more.alive;
                    done.unreadable += more.unreadable;
                    done.failed += more.failed;
                    if more.seen() == 0 {
                        break;
                    }
                }
            }
            failure.filter(|_| done.seen() == 0).map_or(Ok(done), Err)
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
            let mut expired = Vec::new();
            for scope in self.scopes().into_iter().filter(|scope| self.is_here(*scope.partition())) {
                let more: Vec<EntityId> = scope.named("darkages.expired").transact(transaction).await?;
                expired.extend(more);
            }
            expired.truncate(limit);
            Ok(expired)
        })
    }
}

fn close_due(tx: &mut Tx<'_, Shard>, count: usize) -> hot::Result<SessionsClosed> {
    let due: Vec<EntityId> =
        sessions_due().pop_due(tx, count)?.into_iter().map(|(entity, _)| entity).collect();
    let (sessions, plays): (Vec<_>, Vec<_>) =
        due.iter().map(|entity| (SESSION.key(entity), PLAY.key(entity))).unzip();
    let (alive, plays) = tx.together(|tx| (tx.exists_many(&sessions), tx.get_each(&plays)))?;
    // One round trip for the connections of all sessions that have ended.
    let ended = due.iter().zip(&alive).filter(|(_, alive)| !**alive);
    let connections: Vec<_> = ended.map(|(entity, _)| CONNECTIONS.key(entity)).collect();
    Presence::<CONNECTIONS, CONNECTION, Name>::read_together(tx, &connections)?;
    let mut done = SessionsClosed::default();
    let now = tx.now();
    for ((entity, alive), play) in due.into_iter().zip(alive).zip(plays) {
        match play {
            _ if alive => {
                // Every activity prolongs the session; its deadline says until when.
                let end =
                    tx.deadline(&SESSION.key(entity))?.map_or(session_end(now), |deadline| deadline + 1);
                sessions_due().set(tx, &entity, end)?;
                done.alive += 1;
            }
            Ok(Some(play)) => {
                let ended_at = play.last_activity;
                close(tx, entity, play, ended_at)?;
                done.closed += 1;
            }
            Ok(None) => {}
            Err(hot::Error::Corrupt { .. }) => {
                // It must not keep the others from being closed.
                sessions_due().set(tx, &entity, session_end(now))?;
                done.unreadable += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
