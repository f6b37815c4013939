//! Closing sessions that have expired: each becomes a play session of history, once.

use super::*;
use crate::darkages::limits::{CLOSED_PER_TRANSACTION, EXPIRED_MAX, EXPIRED_PER_READ};
use emberkeep_hot::command::{Read, Reply, ZSlice};
use emberkeep_hot::engine::Pending;
use emberkeep_primitives::Presence;

/// What a pass over the sessions that were due did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionSweep {
    /// Sessions that had ended and are recorded now.
    pub closed: usize,
    /// Sessions that live: they are checked again when they can be gone.
    pub alive: usize,
    /// Play records that cannot be read: they are as they were, and checked again in an hour.
    pub unreadable: usize,
    /// Older copies of sessions that live elsewhere, which a failover brought back where shards are partitions of their own: they
    /// are removed, and nothing is recorded.
    pub copies: usize,
    /// Sessions that failed, such as one whose zone has a key of a wrong type: they are as they were, and checked again in a
    /// minute.
    pub failed: usize,
    /// Why the last of those, or a whole shard, failed.
    pub failure: Option<Error>,
}

impl SessionSweep {
    fn seen(&self) -> usize {
        self.closed + self.alive + self.unreadable + self.copies + self.failed
    }

    fn add(&mut self, more: SessionSweep) {
        self.closed += more.closed;
        self.alive += more.alive;
        self.unreadable += more.unreadable;
        self.copies += more.copies;
        self.failed += more.failed;
        self.failure = more.failure.or(self.failure.take());
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failed += 1;
        self.failure = Some(error);
    }
}

impl DarkAges {
    /// Closes up to `limit` sessions that have expired or that an external client deleted, in all shards or in that of
    /// [`in_zone`](DarkAges::in_zone). Their end is the last known activity. A loop of transactions of at most 32 sessions
    /// each; call it again while it does something. A key that another program overwrote stops only the sessions that need it.
    ///
    /// Where shards are partitions of their own, each session is compared with the directory once a minute, and one that
    /// it does not know is closed, too. A shard that fails does not stop the others; an error says that nothing was done.
    pub fn close_expired(&self, limit: usize) -> Pending<'_, Result<SessionSweep>> {
        Box::pin(async move {
            let mut done = SessionSweep::default();
            for scope in self.scopes().into_iter().filter(|scope| self.is_here(*scope.partition())) {
                while done.seen() < limit {
                    let count = (limit - done.seen()).min(CLOSED_PER_TRANSACTION);
                    let more = if self.is_split() {
                        self.compare_due(&scope, count).await
                    } else {
                        close_some(&scope, count).await
                    };
                    match more {
                        Ok(more) if more.seen() == 0 => break,
                        Ok(more) => done.add(more),
                        // A shard that fails does not stop the others.
                        Err(error) => {
                            done.failure = Some(error);
                            break;
                        }
                    }
                }
            }
            if done.seen() > 0 { Ok(done) } else { done.failure.take().map_or(Ok(done), Err) }
        })
    }

    /// Entities whose session has ended and is not closed yet: at most `limit`, and at most 1,000. Those of sessions that live
    /// longer than they were known to are passed over, in one read of at most 250 each; they stay as they are.
    pub fn expired(&self, limit: usize) -> Pending<'_, Result<Vec<EntityId>>> {
        Box::pin(async move {
            let (limit, now) = (limit.min(EXPIRED_MAX), self.store.now().await? as f64);
            let mut expired = Vec::new();
            for scope in self.scopes().into_iter().filter(|scope| self.is_here(*scope.partition())) {
                let scope = scope.named("darkages.expired");
                for first in (0..).step_by(EXPIRED_PER_READ) {
                    if expired.len() >= limit {
                        break;
                    }
                    let page = move |tx: &mut hot::ReadTx<'_, Shard>| expired_page(tx, first, now);
                    let (more, is_last) = scope.read::<_, hot::Error, _>(page).await?;
                    expired.extend(more);
                    if is_last {
                        break;
                    }
                }
            }
            expired.truncate(limit);
            Ok(expired)
        })
    }
}

/// The entities of a page of what is due whose session has ended, and whether nothing more is due.
fn expired_page(
    tx: &mut hot::ReadTx<'_, Shard>,
    first: usize,
    now: f64,
) -> hot::Result<(Vec<EntityId>, bool)> {
    let ranks = ZSlice::Rank(first as i64, (first + EXPIRED_PER_READ) as i64 - 1);
    let page = tx.zrange_lossy(&SESSIONS_DUE.key(), ranks, false)?;
    let due = page.iter().take_while(|(_, at)| *at <= now).count();
    let is_last = due < EXPIRED_PER_READ;
    let due = page.into_iter().take(due).filter_map(|(entity, _)| entity.known());
    let due: Vec<EntityId> = due.collect();
    let keys: Vec<_> = due.iter().map(|entity| SESSION.key(entity)).collect();
    let alive = tx.exists_many(&keys)?;
    let ended = due.into_iter().zip(alive).filter(|(_, alive)| !alive);
    Ok((ended.map(|(entity, _)| entity).collect(), is_last))
}

/// Closes what is due, together or, if a key is at fault, one by one.
async fn close_some(scope: &Scope<Shard>, count: usize) -> Result<SessionSweep> {
    let scope = scope.clone().named("darkages.close_expired");
    let together = move |tx: &mut Tx<'_, Shard>| {
        let due = sessions_due().due(tx, count)?.into_iter().map(|(entity, _)| entity).collect();
        close_all(tx, due)
    };
    match scope.transact::<_, hot::Error, _>(together).await {
        Err(error) if error.is_corrupt() => close_one_by_one(&scope, count).await,
        done => Ok(done?),
    }
}

async fn close_one_by_one(scope: &Scope<Shard>, count: usize) -> Result<SessionSweep> {
    let due = scope.transact::<_, hot::Error, _>(move |tx| sessions_due().due(tx, count)).await?;
    let mut done = SessionSweep::default();
    for (entity, _) in due {
        match scope.transact::<_, hot::Error, _>(move |tx| close_all(tx, vec![entity])).await {
            Ok(more) => done.add(more),
            Err(error) if error.is_corrupt() => {
                postpone(scope, entity).await;
                done.fail(error.into());
            }
            // The store is at fault, and the others would fail, too.
            Err(error) if done.seen() == 0 => return Err(error.into()),
            Err(error) => {
                done.failure = Some(error.into());
                break;
            }
        }
    }
    Ok(done)
}

/// Puts a session that failed behind the others. If this fails, too, it is still due.
pub(super) async fn postpone(scope: &Scope<Shard>, entity: EntityId) {
    let later = move |tx: &mut Tx<'_, Shard>| {
        let next = next_check(tx.now());
        sessions_due().set(tx, &entity, next)
    };
    let _ = scope.transact::<_, hot::Error, _>(later).await;
}

/// Closes those of these sessions, which are due, that have ended.
fn close_all(tx: &mut Tx<'_, Shard>, due: Vec<EntityId>) -> hot::Result<SessionSweep> {
    due.iter().try_for_each(|entity| tx.zrem(&SESSIONS_DUE.key(), entity))?;
    let mut done = SessionSweep::default();
    let now = tx.now();
    let (mut ended, lives) = (Vec::new(), lives(tx, &due)?);
    for (entity, life) in due.into_iter().zip(lives) {
        // Every activity prolongs the session; its deadline says until when.
        let end = match life {
            Life::Until(deadline) => deadline + 1,
            Life::Unlimited => session_end(now),
            Life::Ended => {
                ended.push(entity);
                continue;
            }
        };
        sessions_due().set(tx, &entity, end)?;
        done.alive += 1;
    }
    // Of those that live nothing more is read: every hit changes their play record.
    let connections: Vec<_> = ended.iter().map(|entity| connections::of_entity(*entity)).collect();
    Presence::read_together(tx, &connections)?;
    let plays: Vec<_> = ended.iter().map(|entity| PLAY.key(entity)).collect();
    let plays = tx.get_each(&plays)?;
    for (entity, play) in ended.into_iter().zip(plays) {
        match readable(play)? {
            Some(Some(play)) => {
                let ended_at = play.last_activity;
                close(tx, entity, play, ended_at)?;
                done.closed += 1;
            }
            Some(None) => {}
            None => {
                // It must not keep the others from being closed.
                sessions_due().set(tx, &entity, session_end(now))?;
                done.unreadable += 1;
            }
        }
    }
    Ok(done)
}

/// How long a session lives.
enum Life {
    Ended,
    Until(i64),
    /// Another program wrote it without a TTL.
    Unlimited,
}

/// How long sessions live, in one round trip.
fn lives(tx: &mut Tx<'_, Shard>, entities: &[EntityId]) -> hot::Result<Vec<Life>> {
    let name = |entity| (tx.raw_name(&SESSION.key(entity)), Read::ExpireTime);
    let reads: Vec<_> = entities.iter().map(name).collect();
    let replies = tx.raw_read_many(&reads)?;
    let life = |reply: hot::Result<Reply>| match reply? {
        Reply::Int(-2) => Ok(Life::Ended),
        Reply::Int(deadline) if deadline > 0 => Ok(Life::Until(deadline)),
        _ => Ok(Life::Unlimited),
    };
    replies.into_iter().map(life).collect()
}
