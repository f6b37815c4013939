//! A player of the city: one turn after another, until the game is over. Then it logs out.

use super::ledger::CityLedger;
use crate::city_plan::City;
use crate::world::{Retryable, World, retry_transient};
use emberkeep::games::darkages::history::HitType;
use emberkeep::games::darkages::{
    DamageRequest, EntityId, Error, Fighter, HandOff, HandOffRequest, LoginRequest, Point, Position,
    SessionChange, ZoneId,
};
use emberkeep::hot::Store;
use fastrand::Rng;
use std::sync::Arc;

/// Full health, about six hits.
const HEALTH: i32 = 100;
/// Most damage of a hit.
const DAMAGE_MAX: i32 = 35;
/// Size of a zone.
const ZONE_SIZE: f64 = 1_000.0;

impl Retryable for Error {
    fn is_transient(&self) -> bool {
        match self {
            Error::Store(error) => error.is_transient(),
            // A player between two shards arrives in a moment.
            Error::InTransit { .. } | Error::NotArrived { .. } => true,
            _ => false,
        }
    }
}

/// Plays, and returns what calls reported. Whatever may not happen ends the game.
pub(crate) async fn play(world: Arc<World>, number: i64) -> CityLedger {
    let Some(city) = &world.city else { return CityLedger::default() };
    let (store, random) = (&world.store, Rng::with_seed(number as u64));
    let mut player = Player { city, store, number, random, ledger: CityLedger::default() };
    if let Err(error) = player.live(&world).await {
        world.report_violation(format!("the player {number} of the city cannot go on: {error:#}"));
    }
    player.ledger
}

struct Player<'w> {
    city: &'w City,
    store: &'w Store,
    number: i64,
    random: Rng,
    ledger: CityLedger,
}

impl Player<'_> {
    async fn live(&mut self, world: &World) -> anyhow::Result<()> {
        self.log_in().await?;
        while world.rest(self.city.plan.rest).await {
            match self.random.u32(..100) {
                0..70 => self.fight().await?,
                70..85 => self.walk().await?,
                85..93 => self.recover().await?,
                93..98 => self.change_zone().await?,
                _ => {
                    self.log_out().await?;
                    self.log_in().await?;
                }
            }
        }
        self.log_out().await
    }

    fn entity(&self) -> EntityId {
        EntityId(self.number)
    }

    fn somewhere(&mut self) -> (ZoneId, Point) {
        let zones = self.city.plan.all_zones();
        let zone = zones[self.random.usize(..zones.len())];
        (zone, Point::new(self.random.f64() * ZONE_SIZE, 0.0, self.random.f64() * ZONE_SIZE))
    }

    async fn log_in(&mut self) -> anyhow::Result<()> {
        let (zone, point) = self.somewhere();
        let mut request = LoginRequest::new(self.number, format!("demo-{}", self.number), zone, point);
        request.max_health = HEALTH;
        request.client_version = "demo".to_owned();
        request.player_name = format!("Player {}", self.number - self.city.plan.first_player + 1);
        retry_transient(|| self.city.game.login(request.clone())).await?;
        Ok(())
    }

    /// Becomes a play session of history.
    async fn log_out(&mut self) -> anyhow::Result<()> {
        retry_transient(|| self.city.game.logout(self.entity())).await?;
        self.ledger.book(self.number).sessions += 1;
        Ok(())
    }

    /// Hits any other player, who may be dead or gone.
    async fn fight(&mut self) -> anyhow::Result<()> {
        let players = self.city.plan.all_players();
        let target = players[self.random.usize(..players.len())];
        if target == self.number {
            return Ok(());
        }
        let is_missed = self.random.u32(..10) == 0;
        let request = DamageRequest {
            attacker: Fighter::Player(self.entity()),
            target: EntityId(target),
            amount: if is_missed { 0 } else { self.random.i32(1..=DAMAGE_MAX) },
            hit_type: if is_missed { HitType::Missed } else { HitType::Normal },
            ability: None,
        };
        match retry_transient(|| self.city.game.damage(request.clone())).await {
            Ok(hit) => self.ledger.hit(self.number, target, hit.actual, hit.killed),
            Err(Error::Dead { entity }) if entity.0 == target => {}
            Err(Error::NotLoggedIn { entity } | Error::OtherShard { entity, .. }) if entity.0 == target => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn walk(&mut self) -> anyhow::Result<()> {
        let Point { x, y, z, .. } = self.somewhere().1;
        let at = self.store.now().await?;
        let position = vec![(self.entity(), Position { x, y, z, at })];
        retry_transient(|| self.city.game.set_positions(position.clone())).await?;
        Ok(())
    }

    /// Has full health again, also after its death.
    async fn recover(&mut self) -> anyhow::Result<()> {
        let change = SessionChange { health: Some(HEALTH), ..SessionChange::default() };
        retry_transient(|| self.city.game.change(self.entity(), change.clone())).await?;
        Ok(())
    }

    /// Half of the players walk over by themselves, the others are handed off. A zone of another shard is entered by hand-off
    /// only.
    async fn change_zone(&mut self) -> anyhow::Result<()> {
        let (zone, position) = self.somewhere();
        if self.random.bool() {
            match retry_transient(|| self.city.game.move_to(self.entity(), zone)).await {
                Ok(_) => {
                    self.ledger.moves += 1;
                    return Ok(());
                }
                Err(Error::OtherShard { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let request = HandOffRequest { entity: self.entity(), zone, position };
        retry_transient(|| self.cross_over(request.clone())).await?;
        self.ledger.hand_offs += 1;
        Ok(())
    }

    /// Is handed off and, in another shard, accepted, as its zone server does.
    async fn cross_over(&self, request: HandOffRequest) -> Result<(), Error> {
        let HandOffRequest { entity, zone, .. } = request;
        match self.city.game.hand_off(request).await {
            Ok(HandOff::Done(_)) => Ok(()),
            Ok(HandOff::InTransit { .. }) | Err(Error::InTransit { .. }) => {
                self.city.game.accept(entity, zone).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }
}
