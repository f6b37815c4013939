//! Login and logout where shards are partitions of their own: the directory is claimed first, then what is behind ends,
//! then the session begins. In between the player is logged in nowhere, never twice.

use super::hand_off::{end_passage, remove_arrival};
use super::homes::Homes;
use super::sessions::{Existing, Identity, LoginRequest, begin, end_former};
use super::*;
use crate::darkages::events::{audit, event_id};
use crate::darkages::history::{AuditEvent, Severity};
use emberkeep_primitives::directory::{self, AdmitError, Claim, ClaimError, Placement, State};

/// How often a login or logout that others came before begins anew.
const CLAIMS_MAX: usize = 16;

/// An entry of the audit log, if a session ends by a call.
#[derive(Clone)]
pub(super) struct Audit {
    pub(super) event: AuditEvent,
    pub(super) severity: Severity,
    pub(super) details: Option<String>,
}

impl DarkAges {
    pub(super) async fn login_split(&self, request: LoginRequest) -> Result<Session> {
        let (entity, home) = (request.entity(), self.partition_of(request.zone));
        let (request, mut above) = (Arc::new(request), 0);
        for _ in 0..CLAIMS_MAX {
            let expected = match request.existing {
                Existing::Replace => None,
                Existing::Refuse => Some(self.check_logged_out(entity).await?),
            };
            let claim = Claim { expected, above, ..Claim::new(home, "") };
            let Some(place) = self.claim(entity, claim).await? else { continue };
            self.end_behind(entity, &place, None).await?;
            let (request, server, claimed) = (request.clone(), self.server_instance.clone(), place.clone());
            let scope = self.store.scope(home).named("darkages.login");
            let begun = scope.transact(move |tx| begin_claimed(tx, &request, &server, &claimed)).await?;
            match begun {
                Ok(session) => {
                    if !place.behind.is_empty() {
                        self.settle(entity, place.number).await?;
                    }
                    return Ok(session);
                }
                // A later claim, unless the entry was lost and began again too low.
                Err(_) if self.find(entity).await?.is_none_or(|found| found.number != place.number) => break,
                Err(highest) => above = highest,
            }
        }
        Err(Error::Replaced { entity })
    }

    /// The number of an entry without a living session; 0 = there is none.
    async fn check_logged_out(&self, entity: EntityId) -> Result<i64> {
        let Some(found) = self.find(entity).await? else { return Ok(0) };
        let (is_alive, since) = match found.state {
            State::Ended => (false, 0),
            State::Moving { .. } => (true, found.since_ms),
            State::Here => {
                let session = self.store.scope(found.home).get(&SESSION.key(entity)).await?;
                (session.is_some(), session.map_or(0, |session| session.login_time))
            }
        };
        if is_alive { Err(Error::AlreadyLoggedIn { entity, since }) } else { Ok(found.number) }
    }

    /// Ends a session wherever it is.
    pub(super) async fn end_split(&self, entity: EntityId, entry: Audit) -> Result<()> {
        for _ in 0..CLAIMS_MAX {
            let found = self.find(entity).await?.filter(|found| found.state != State::Ended);
            let found =
                found.filter(|found| self.is_here(found.home)).ok_or(Error::NotLoggedIn { entity })?;
            let is_moving = found.state != State::Here;
            let (home, expected) = (found.home, Some(found.number));
            let claim = Claim { expected, ends: true, ..Claim::new(home, found.owner) };
            let Some(place) = self.claim(entity, claim).await? else { continue };
            let ended = self.end_behind(entity, &place, Some(entry.clone())).await?;
            self.settle(entity, place.number).await?;
            if !ended && is_moving {
                // It is in an outbox, and ends where it arrives.
                let scope = self.store.scope(home).named("darkages.audit");
                scope.transact(move |tx| audit_absent(tx, entity, &entry)).await?;
            }
            return if ended || is_moving { Ok(()) } else { Err(Error::NotLoggedIn { entity }) };
        }
        Err(Error::Replaced { entity })
    }

    /// Claims the entry of an entity. The claim without an owner gets a new id. `None` = it changed meanwhile.
    async fn claim(&self, entity: EntityId, claim: Claim<Shard>) -> Result<Option<Placement<Shard>>> {
        let entry = self.entry_scope(entity).named("darkages.claim");
        let claimed = entry.transact(move |tx| {
            let owner = if claim.owner.is_empty() { event_id(tx).to_string() } else { claim.owner.clone() };
            directory::claim::<Homes>(tx, &Claim { owner, ..claim.clone() })
        });
        match claimed.await {
            Ok(place) => Ok(Some(place)),
            Err(ClaimError::Changed { .. }) => Ok(None),
            Err(ClaimError::Store(error)) => Err(error.into()),
        }
    }

    /// Ends what the partitions behind a claim have of an entity. Whether one had something.
    async fn end_behind(
        &self,
        entity: EntityId,
        place: &Placement<Shard>,
        entry: Option<Audit>,
    ) -> Result<bool> {
        let mut ended = false;
        for shard in &place.behind {
            let (number, entry) = (place.number, entry.clone());
            let scope = self.store.scope(*shard).named("darkages.end");
            ended |= scope.transact(move |tx| end_below(tx, entity, number, entry.as_ref())).await?;
        }
        Ok(ended)
    }

    async fn settle(&self, entity: EntityId, number: i64) -> Result<()> {
        let entry = self.entry_scope(entity).named("darkages.settle");
        entry.transact(move |tx| directory::settle::<Homes>(tx, number)).await?;
        Ok(())
    }
}

/// Begins a session under the number of a claim. `Ok(Err)` = a higher number was admitted.
fn begin_claimed(
    tx: &mut Tx<'_, Shard>,
    request: &LoginRequest,
    server: &str,
    place: &Placement<Shard>,
) -> Result<std::result::Result<Session, i64>> {
    let entity = request.entity();
    // One round trip for all of it.
    let (session, play, arrival, _) = tx.together(|tx| {
        (
            tx.get(&SESSION.key(entity)),
            tx.get(&PLAY.key(entity)),
            tx.get(&ARRIVAL.key(entity)),
            tx.get(&ADMITTED.key(entity)),
        )
    })?;
    match directory::admit::<Homes>(tx, &Entity(entity), place.number) {
        Ok(()) => {}
        Err(AdmitError::Superseded { highest, .. }) => return Ok(Err(highest)),
        Err(AdmitError::Store(error)) => return Err(error.into()),
    }
    if let Some(passage) = arrival {
        remove_arrival(tx, &passage)?;
        end_passage(tx, &passage, passage.left_at)?;
    }
    end_former(tx, entity, session, play)?;
    let session_id = place.owner.parse().unwrap_or_else(|_| event_id(tx));
    let identity = Identity { session_id, login_time: place.since_ms, number: place.number };
    begin(tx, request, server, &identity).map(Ok)
}

/// Ends what a partition has of an entity below a number, and lets nothing below it in. Whether there was something.
fn end_below(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    number: i64,
    entry: Option<&Audit>,
) -> hot::Result<bool> {
    let (session, play, arrival, _) = tx.together(|tx| {
        (
            tx.get(&SESSION.key(entity)),
            tx.get(&PLAY.key(entity)),
            tx.get(&ARRIVAL.key(entity)),
            tx.get(&ADMITTED.key(entity)),
        )
    })?;
    match directory::admit::<Homes>(tx, &Entity(entity), number) {
        Ok(()) => {}
        // A later claim ends it, or did.
        Err(AdmitError::Superseded { .. }) => return Ok(false),
        Err(AdmitError::Store(error)) => return Err(error),
    }
    if let (Some(Audit { event, severity, details }), Some(play)) =
        (entry, play.as_ref().or(arrival.as_ref().map(|arrival| &arrival.play)))
    {
        audit(tx, *event, *severity, play, details.clone())?;
    }
    let mut ended = end_former(tx, entity, session, play)?;
    if let Some(passage) = arrival {
        remove_arrival(tx, &passage)?;
        end_passage(tx, &passage, passage.left_at)?;
        ended = true;
    }
    Ok(ended)
}

/// The audit entry of a player whose session is in an outbox. Its player is taken for its entity.
fn audit_absent(tx: &mut Tx<'_, Shard>, entity: EntityId, entry: &Audit) -> hot::Result<()> {
    let (id, now) = (event_id(tx), tx.now());
    audit(tx, entry.event, entry.severity, &Play::new(id, entity.0, now, now, 0), entry.details.clone())
}
