//! The simulation inside a server: the same players and background tasks, at a low rate and without an end, and a star system
//! beside them.
//!
//! Nothing is checked: clients of the server may hit the same monsters, and no ledger contains that.
//!
//! Budget: [`PLAYERS`] players with a turn every [`REST`], and the background tasks. Ends within a turn when asked to.
//! Runs in rounds, so that the unused ledger does not grow.

use crate::background;
use crate::city_plan::CityPlan;
use crate::plan::Plan;
use crate::play::{play, populate};
use crate::stars;
use crate::world::World;
use anyhow::Context;
use emberkeep::games::world::Tenant;
use emberkeep::hot::Store;
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The tenant of the simulated fields.
pub const TENANT: Tenant = Tenant(Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0001));
const FIELDS: u32 = 3;
const MONSTERS: u32 = 60;
const PLAYERS: u32 = 8;
const REST: Duration = Duration::from_millis(100);
const ROUND: Duration = Duration::from_secs(60);
/// The first player of the city and its first zone, which the links of the server name.
pub const CITY_PLAYER: i64 = 1;
/// The zone of the city that the demo serves; see [`CITY_PLAYER`].
pub const CITY_ZONE: i32 = 1;
/// Before the next round, when one could not be played.
const PAUSE_AFTER_TROUBLE: Duration = Duration::from_secs(5);

/// A simulation that runs until [`ServerDemo::end`].
pub struct ServerDemo {
    end: watch::Sender<bool>,
    living: JoinHandle<()>,
}

impl ServerDemo {
    /// Starts the players and background tasks.
    pub fn start(store: Store) -> ServerDemo {
        let end = watch::Sender::new(false);
        let living = tokio::spawn(live(store, end.subscribe()));
        ServerDemo { end, living }
    }

    /// Ends it, and waits until all players have finished their turns.
    pub async fn end(self) {
        self.end.send_replace(true);
        if let Err(error) = self.living.await {
            tracing::error!("the demo's life panicked: {error}");
        }
    }
}

async fn live(store: Store, end: watch::Receiver<bool>) {
    let fields = again_and_again(&end, || round(&store, &end));
    let star_system = again_and_again(&end, || stars::live(&store, &end));
    tokio::join!(fields, star_system);
}

/// Runs a part of the demo until the end; after trouble it pauses and begins again.
async fn again_and_again<F: Future<Output = anyhow::Result<()>>>(
    end: &watch::Receiver<bool>,
    part: impl Fn() -> F,
) {
    let mut end = end.clone();
    while !*end.borrow() {
        let played = AssertUnwindSafe(part()).catch_unwind().await;
        if let Err(error) = played.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked"))) {
            tracing::warn!("the demo pauses: {error:#}");
            let _ = tokio::time::timeout(PAUSE_AFTER_TROUBLE, end.wait_for(|end| *end)).await;
        }
    }
}

async fn round(store: &Store, end: &watch::Receiver<bool>) -> anyhow::Result<()> {
    let plan = Plan { tenants: vec![TENANT.0], ..Plan::new(1, Some(FIELDS), MONSTERS) };
    // One shard, as the server has that shows it.
    let city = CityPlan {
        first_player: CITY_PLAYER,
        first_zone: CITY_ZONE,
        shards: 1,
        rest: REST,
        ..CityPlan::new()
    };
    let plan = Plan { players: PLAYERS, length: ROUND, rest: REST, city: Some(city), ..plan };
    let world = Arc::new(World::new(store.clone(), plan, 0));
    if !is_populated(&world).await? {
        populate(&world).await.context("cannot spawn the monsters")?;
    }
    background::list_all_fields(&world).await.context("cannot list the fields")?;
    let mut end = end.clone();
    let stop = async move {
        let _ = end.wait_for(|end| *end).await;
    };
    let played = play(&world, stop, ROUND, |_| {}).await?;
    for trouble in played.violations {
        tracing::warn!("the demo noticed: {trouble}");
    }
    Ok(())
}

/// Whether monsters live there from an earlier round or an earlier start.
async fn is_populated(world: &World) -> anyhow::Result<bool> {
    for number in 0..world.plan.grounds() {
        let field = world.plan.ground(number).field;
        if !world.monsters.in_field(TENANT, field).await?.living.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
