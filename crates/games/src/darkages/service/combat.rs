//! Damage: both sessions, both play records and the event for history change in one transaction.

use super::homes::FOLLOWED_MAX;
use super::*;
use crate::darkages::archive::recorder::HitRecord;
use crate::darkages::events::event_id;
use crate::darkages::history::HitType;
use crate::darkages::limits::HEALTH_MAX;
use crate::darkages::model::Position;
use emberkeep_hot::engine::Pending;

/// What attacks a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fighter {
    /// A player, who must be logged in.
    Player(EntityId),
    /// A creature of the game. It has no session and no statistics.
    Npc(i64),
}

/// A hit on a player.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamageRequest {
    /// The player or creature that attacks.
    pub attacker: Fighter,
    /// The player that is hit.
    pub target: EntityId,
    /// Damage, 0 or more; what exceeds the target's health is not counted. 0 if the hit missed.
    pub amount: i32,
    /// How it landed; a miss takes no health.
    pub hit_type: HitType,
    /// The ability, if one is used, at most 128 bytes.
    pub ability: Option<String>,
}

/// What a hit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Health that was taken: never more than was left.
    pub actual: i32,
    /// Health that is left; 0 = dead.
    pub health: i32,
    /// This hit killed: exactly one hit does.
    pub killed: bool,
    /// The event's id in history.
    pub event_id: uuid::Uuid,
}

impl DarkAges {
    /// Hits a player. Sessions, play records and the event change together or not at all, so each hit is in history once.
    /// It is activity of the attacker, not of the target.
    ///
    /// [`LogFull`](hot::Error::LogFull) = [`COMBAT_LOG_MAX`](crate::darkages::limits::COMBAT_LOG_MAX) hits wait for history:
    /// no hit counts until a consumer stores some. Where no history is configured that is for good; then the log is to be trimmed by
    /// [`log_trim`](Tx::log_trim).
    pub fn damage(&self, request: DamageRequest) -> Pending<'_, Result<Damage>> {
        Box::pin(async move {
            check(&request)?;
            let (server, shards) = (self.server_instance.clone(), self.shards.clone());
            let DamageRequest { attacker, target, .. } = request;
            let transaction = move |tx: &mut Tx<'_, Shard>| strike(tx, &request, &server, &shards);
            let Fighter::Player(attacker) = attacker else {
                return self.at_home(target, "darkages.damage", transaction).await;
            };
            for _ in 1..FOLLOWED_MAX {
                self.check_same_shard(attacker, target).await?;
                match self.at_home(target, "darkages.damage", transaction.clone()).await {
                    // The target may have left for another shard since, where the attacker is not.
                    Err(Error::NotLoggedIn { entity }) if entity == attacker && self.is_split() => {}
                    result => return result,
                }
            }
            self.check_same_shard(attacker, target).await?;
            self.at_home(target, "darkages.damage", transaction).await
        })
    }

    /// Refuses two players who are in different shards.
    async fn check_same_shard(&self, attacker: EntityId, target: EntityId) -> Result<()> {
        if !self.is_split() || self.home.is_some() {
            return Ok(());
        }
        // Two reads of different partitions, made at once.
        let (attackers, targets) = tokio::join!(self.shard_of(attacker), self.shard_of(target));
        if attackers? == targets? { Ok(()) } else { Err(other_shard(attacker, target)) }
    }
}

fn check(request: &DamageRequest) -> Result<()> {
    let DamageRequest { attacker, target, amount, hit_type, ability } = request;
    ability.as_deref().map_or(Ok(()), |name| check_text("ability", name))?;
    if *attacker == Fighter::Player(*target) {
        return Err(Error::invalid("attacker", "the target itself, expected another entity"));
    }
    let max = if *hit_type == HitType::Missed { 0 } else { HEALTH_MAX };
    if !(0..=max).contains(amount) {
        return Err(Error::invalid(
            "damage",
            format!("{amount}, expected 0 to {max} of a {} hit", hit_type.text()),
        ));
    }
    Ok(())
}

/// The same error on every engine, also where one partition has both.
fn other_shard(attacker: EntityId, target: EntityId) -> Error {
    Error::OtherShard { entity: target, what: format!("entity {attacker}") }
}

fn strike(tx: &mut Tx<'_, Shard>, request: &DamageRequest, server: &str, shards: &Shards) -> Result<Damage> {
    let entity = request.target;
    let Fighters { attacker, target: (mut session, mut play), position } = fighters(tx, request)?;
    if let Some((attacker, (attacking, _))) = &attacker
        && shards.are_apart(ZoneId(attacking.zone_id), ZoneId(session.zone_id))
    {
        return Err(other_shard(*attacker, entity));
    }
    if session.health <= 0 {
        return Err(Error::Dead { entity });
    }
    let actual = request.amount.min(session.health);
    session.health -= actual;
    let killed = session.health == 0;
    play.deaths = play.deaths.saturating_add(killed.into());
    play.damage_taken = play.damage_taken.saturating_add(actual.into());
    let event_id = event_id(tx);
    let position = position.unwrap_or([session.position.x, session.position.y, session.position.z]);
    let attacker_id = attacker.as_ref().map(|(_, (_, play))| play.player_id);
    let npc = match request.attacker {
        Fighter::Npc(id) => id,
        Fighter::Player(EntityId(id)) => id,
    };
    let hit = HitRecord {
        timestamp: tx.now(),
        event_id,
        attacker_id: attacker_id.unwrap_or(npc),
        attacker_is_player: attacker_id.is_some(),
        attacker_name: attacker.as_ref().map(|(_, (_, play))| play.player_name.clone()),
        target_id: play.player_id,
        target_is_player: true,
        damage: actual,
        hit_type: request.hit_type,
        is_kill: killed,
        ability_name: request.ability.clone(),
        zone_id: session.zone_id,
        position,
        server_instance: server.to_owned(),
        shard_id: i32::from(shards.of(ZoneId(session.zone_id)).0),
    };
    let health = session.health;
    // Who is hit did nothing: a player who left ends, whatever stands beside it.
    put_passive(tx, entity, &session, &play)?;
    if let Some((attacker, (mut session, mut play))) = attacker {
        play.kills = play.kills.saturating_add(killed.into());
        play.damage_dealt = play.damage_dealt.saturating_add(actual.into());
        put_active(tx, attacker, &mut session, &mut play)?;
    }
    tx.append(&COMBAT_LOG.key(), &hit)?;
    Ok(Damage { actual, health, killed, event_id })
}

/// What a hit reads.
struct Fighters {
    /// The attacker, if it is a player.
    attacker: Option<(EntityId, (Session, Play))>,
    target: (Session, Play),
    /// Where the target is; `None` = there is no position that can be read.
    position: Option<[f64; 3]>,
}

/// Reads both fighters in one round trip.
fn fighters(tx: &mut Tx<'_, Shard>, request: &DamageRequest) -> Result<Fighters> {
    let attacker = match request.attacker {
        Fighter::Player(attacker) => Some(attacker),
        Fighter::Npc(_) => None,
    };
    let entities: Vec<EntityId> = attacker.into_iter().chain([request.target]).collect();
    let (sessions, plays): (Vec<_>, Vec<_>) =
        entities.iter().map(|entity| (SESSION.key(entity), PLAY.key(entity))).unzip();
    let position = [POSITION.key(request.target)];
    let (sessions, plays, position) =
        tx.together(|tx| (tx.get_many(&sessions), tx.get_many(&plays), tx.get_each(&position)))?;
    let mut found = Vec::with_capacity(entities.len());
    for ((entity, session), play) in entities.into_iter().zip(sessions).zip(plays) {
        let session = session.ok_or(Error::NotLoggedIn { entity })?;
        let play = play_of(tx, entity, play, &session)?;
        found.push((session, play));
    }
    let not_logged_in = Error::NotLoggedIn { entity: request.target };
    let target = found.pop().ok_or(not_logged_in)?;
    let position = position.into_iter().next().map_or(Ok(None), readable)?.flatten();
    let position = position.map(|Position { x, y, z, .. }| [x, y, z]);
    Ok(Fighters { attacker: attacker.zip(found.pop()), target, position })
}
