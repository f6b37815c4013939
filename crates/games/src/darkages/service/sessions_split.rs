//! Login and logout where shards are partitions of their own: the directory is claimed first, then what is behind ends,
//! then the session begins. In between the player is logged in nowhere, never twice.

use super::arrivals::{end_passage, remove_arrival};
use super::homes::{Homes, Owner};
use super::sessions::{Identity, LoginPolicy, LoginRequest, begin, end_former};
use super::*;
use crate::darkages::events::{audit, event_id};
use crate::darkages::history::{AuditEvent, Severity};
use crate::darkages::limits::LOGIN_WAIT;
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
            // What is there without a living session may still begin one.
            let expected = match request.existing {
                LoginPolicy::Replace => None,
                LoginPolicy::Refuse => Some(self.check_logged_out(entity).await?),
            };
            let claim = Claim { expected, above, ..Claim::new(home, "") };
            let Some(place) = self.claim(entity, claim, Some(request.player_id)).await? else { continue };
            let begun = match self.end_behind(entity, &place, None).await?.superseded_by {
                Some(highest) => Err(highest),
                None => self.begin_split(request.clone(), place.clone()).await?,
            };
            match begun {
                Ok(session) => {
                    if !place.behind.is_empty() {
                        self.settle(entity, place.number).await?;
                    }
                    return Ok(session);
                }
                Err(_) if self.is_claimed_again(entity, &place).await? => break,
                Err(highest) => above = highest,
            }
        }
        Err(Error::Replaced { entity })
    }

    /// Begins the session of a claim. `Ok(Err)` = a higher number was admitted.
    async fn begin_split(
        &self,
        request: Arc<LoginRequest>,
        place: Placement<Shard>,
    ) -> Result<std::result::Result<Session, i64>> {
        let server = self.server_instance.clone();
        let scope = self.store.scope(place.home).named("darkages.login");
        scope.transact(move |tx| begin_claimed(tx, &request, &server, &place)).await
    }

    /// Whether a later login or logout claimed an entity. Otherwise a higher number is that of a hand-off that was undone, or
    /// of an entry that was lost: the claim is repeated above it.
    async fn is_claimed_again(&self, entity: EntityId, place: &Placement<Shard>) -> Result<bool> {
        Ok(self.find(entity).await?.is_some_and(|found| found.since_ms > place.since_ms))
    }

    /// The number of an entry without a living session; 0 = there is none.
    async fn check_logged_out(&self, entity: EntityId) -> Result<i64> {
        let Some(found) = self.find(entity).await? else { return Ok(0) };
        let (is_alive, since) = match found.state {
            State::Ended => (false, 0),
            State::Moving { .. } => (true, found.since_ms),
            State::Here => {
                let (number, since_ms) = (found.number, found.since_ms);
                let scope = self.store.scope(found.home).named("darkages.login");
                let since = scope.transact(move |tx| fence(tx, entity, number, since_ms)).await?;
                (since.is_some(), since.unwrap_or_default())
            }
        };
        if is_alive { Err(Error::AlreadyLoggedIn { entity, since }) } else { Ok(found.number) }
    }

    /// Ends a session wherever it is. One whose end a process began and did not complete ends, too.
    pub(super) async fn end_split(&self, entity: EntityId, entry: Audit) -> Result<()> {
        let (mut above, mut ended, mut departed_from) = (0, false, None);
        for _ in 0..CLAIMS_MAX {
            let found = self.find(entity).await?.filter(|found| self.is_here(found.home));
            let found = found.filter(|found| found.state != State::Ended || !found.behind.is_empty());
            let found = found.ok_or(Error::NotLoggedIn { entity })?;
            if let State::Moving { from } = found.state {
                departed_from = Some(from);
                // It ends where it arrives; in its outbox it would end later.
                self.deliver_now(from).await;
            }
            let (home, expected) = (found.home, Some(found.number));
            let claim = Claim { expected, above, ends: true, ..Claim::new(home, found.owner) };
            let Some(place) = self.claim(entity, claim, None).await? else { continue };
            let behind = self.end_behind(entity, &place, Some(entry.clone())).await?;
            ended |= behind.ended;
            if let Some(highest) = behind.superseded_by {
                if self.is_claimed_again(entity, &place).await? {
                    break;
                }
                above = highest;
                continue;
            }
            if let Some(from) = departed_from.filter(|_| !ended) {
                // It is in an outbox, and ends where it arrives.
                let (entry, scope) = (entry.clone(), self.store.scope(from).named("darkages.audit"));
                scope.transact(move |tx| audit_departed(tx, entity, &entry)).await?;
                ended = true;
            }
            self.settle(entity, place.number).await?;
            return if ended { Ok(()) } else { Err(Error::NotLoggedIn { entity }) };
        }
        if ended {
            return Ok(());
        }
        // Of two logouts at once one succeeds.
        let is_over = self.find(entity).await?.is_none_or(|found| found.state == State::Ended);
        Err(if is_over { Error::NotLoggedIn { entity } } else { Error::Replaced { entity } })
    }

    /// Claims the entry of an entity. A player who logs in is the owner, with a new session. `None` = it changed meanwhile.
    async fn claim(
        &self,
        entity: EntityId,
        claim: Claim<Shard>,
        logs_in: Option<i64>,
    ) -> Result<Option<Placement<Shard>>> {
        let entry = self.entry_scope(entity).named("darkages.claim");
        let claimed = entry.transact(move |tx| {
            let session_of = |player_id| Owner { session_id: event_id(tx), player_id }.to_text(entity);
            let owner = logs_in.map_or_else(|| claim.owner.clone(), session_of);
            directory::claim::<Homes>(tx, &Claim { owner, ..claim.clone() })
        });
        match claimed.await {
            Ok(place) => Ok(Some(place)),
            Err(ClaimError::Changed { .. }) => Ok(None),
            Err(ClaimError::Store(error)) => Err(error.into()),
        }
    }

    /// Ends what the partitions behind a claim have of an entity.
    async fn end_behind(
        &self,
        entity: EntityId,
        place: &Placement<Shard>,
        entry: Option<Audit>,
    ) -> Result<Behind> {
        let mut behind = Behind::default();
        for shard in &place.behind {
            let (number, entry) = (place.number, entry.clone());
            let scope = self.store.scope(*shard).named("darkages.end");
            match scope.transact(move |tx| end_below(tx, entity, number, entry.as_ref())).await? {
                Ok(ended) => behind.ended |= ended,
                Err(highest) => behind.superseded_by = behind.superseded_by.max(Some(highest)),
            }
        }
        Ok(behind)
    }

    async fn settle(&self, entity: EntityId, number: i64) -> Result<()> {
        let entry = self.entry_scope(entity).named("darkages.settle");
        entry.transact(move |tx| directory::settle::<Homes>(tx, number)).await?;
        Ok(())
    }
}

/// What the partitions behind a claim had.
#[derive(Default)]
struct Behind {
    /// A living session or an arrival, which has ended.
    ended: bool,
    /// Something of a higher number, which has not.
    superseded_by: Option<i64>,
}

/// Since when the session of an entry lives, or is about to begin. `None` = there is none, and from now on none begins under
/// this number: of two logins that found no session one begins.
fn fence(tx: &mut Tx<'_, Shard>, entity: EntityId, number: i64, since_ms: i64) -> Result<Option<i64>> {
    let (session, admitted) =
        tx.together(|tx| (tx.get(&SESSION.key(entity)), tx.get(&ADMITTED.key(entity))))?;
    if let Some(session) = session {
        return Ok(Some(session.login_time));
    }
    let is_beginning = admitted.is_none_or(|highest| highest < number);
    if is_beginning && tx.now().abs_diff(since_ms) < LOGIN_WAIT.as_millis() as u64 {
        return Ok(Some(since_ms));
    }
    super::hand_off::admit(tx, entity, number.saturating_add(1))?;
    Ok(None)
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
    let owner = Owner::parse(&place.owner, entity);
    let session_id = owner.map_or_else(|| event_id(tx), |owner| owner.session_id);
    let identity = Identity { session_id, login_time: place.since_ms, number: place.number };
    begin(tx, request, server, &identity).map(Ok)
}

/// Ends what a partition has of an entity below a number, and lets nothing below it in. Whether a living session or an arrival
/// ended; `Ok(Err)` = a higher number was admitted.
fn end_below(
    tx: &mut Tx<'_, Shard>,
    entity: EntityId,
    number: i64,
    entry: Option<&Audit>,
) -> hot::Result<std::result::Result<bool, i64>> {
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
        Err(AdmitError::Superseded { highest, .. }) => return Ok(Err(highest)),
        Err(AdmitError::Store(error)) => return Err(error),
    }
    // A session that expired unnoticed ends by itself, as on one server.
    let is_alive = session.is_some() || arrival.is_some();
    let living =
        play.as_ref().filter(|_| session.is_some()).or(arrival.as_ref().map(|arrival| &arrival.play));
    if let (Some(Audit { event, severity, details }), Some(play)) = (entry, living) {
        audit(tx, *event, *severity, play, details.clone())?;
    }
    end_former(tx, entity, session, play)?;
    if let Some(passage) = arrival {
        remove_arrival(tx, &passage)?;
        end_passage(tx, &passage, passage.left_at)?;
    }
    Ok(Ok(is_alive))
}

/// The audit entry of a player whose session is in the outbox of this shard. Without its copy the player is taken for its entity.
fn audit_departed(tx: &mut Tx<'_, Shard>, entity: EntityId, entry: &Audit) -> hot::Result<()> {
    let (id, now) = (event_id(tx), tx.now());
    let play = match tx.get(&DEPARTED.key(entity)) {
        Ok(Some(departed)) => departed.play,
        Err(error) if !error.is_corrupt() => return Err(error),
        _ => Play::new(id, entity.0, now, now, 0),
    };
    audit(tx, entry.event, entry.severity, &play, entry.details.clone())
}
