//! Reading whole ticks.

use super::chunk::Chunk;
use super::records::TickHead;
use super::world::{BodyState, Entity, ShipState, World};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{CHUNKS_PER_READ, KEYS_PER_PAGE, READ_ATTEMPTS_MAX};
use crate::galaxy::model::{GameTime, SystemId};
use crate::galaxy::schema::{BODY, CHUNK, HEAD, JUMPGATE, SHIP, STATION};
use crate::galaxy::service::GalaxyState;
use emberkeep_hot as hot;
use emberkeep_hot::engine::Pending;
use std::sync::Arc;
use tokio::sync::Mutex;

/// A whole tick.
#[derive(Clone, Debug, PartialEq)]
pub struct TickView {
    /// The generation of hot state; 0 = no tick engine was ever started.
    pub generation: i64,
    /// The tick.
    pub tick: i64,
    /// Its game time.
    pub time: GameTime,
    /// Seconds by which game time is behind UTC.
    pub drift: f64,
    /// All entities, as of this tick.
    pub world: World,
}

/// The part of a tick that is in one star system. Its world has no other entities.
pub type SystemView = TickView;

/// The last tick that this process read as a whole.
#[derive(Clone, Default)]
pub(crate) struct TickCache(Arc<Mutex<Option<Arc<TickView>>>>);

impl TickView {
    fn new(head: &TickHead, world: World) -> TickView {
        let TickHead { generation, tick, drift, .. } = *head;
        TickView { generation, tick, time: head.time(), drift, world }
    }
}

impl GalaxyState {
    /// The present tick as a whole. A process reads the chunks of a tick once, whatever the number of callers; if the
    /// tick did not change, a call is one read of a small key.
    pub fn tick(&self) -> Pending<'_, Result<Arc<TickView>>> {
        Box::pin(async move {
            let cache = self.cache().0.clone();
            let mut last = cache.lock().await;
            let head = self.head().await?;
            if let Some(view) = last.as_ref().filter(|view| (view.generation, view.tick) == place(&head)) {
                return Ok(view.clone());
            }
            let (head, world) = self.present(head, all_chunks).await?;
            let view = Arc::new(TickView::new(&head, world));
            *last = Some(view.clone());
            Ok(view)
        })
    }

    /// The part of the present tick that is in a star system. Only the chunks that contain it are read.
    pub fn system<'a>(&'a self, system: &'a SystemId) -> Pending<'a, Result<SystemView>> {
        Box::pin(async move {
            let head = self.head().await?;
            let (head, world) = self.present(head, |head| head.chunks_of(&system.0)).await?;
            Ok(TickView::new(&head, world.of_system(system)))
        })
    }

    /// The head of the present tick: number, time, and how many entities, without them.
    pub fn head(&self) -> Pending<'_, Result<TickHead>> {
        Box::pin(
            async move { Ok(self.scope().get(&HEAD.key()).await?.unwrap_or_else(|| TickHead::new(0, 0, 0))) },
        )
    }

    /// The chunks of the present tick; of the one after it, if they were removed while they were read.
    async fn present(
        &self,
        mut head: TickHead,
        chunks: impl Fn(&TickHead) -> Option<(i64, i64)>,
    ) -> Result<(TickHead, World)> {
        for _ in 0..READ_ATTEMPTS_MAX {
            match self.chunks(&head, chunks(&head)).await {
                Err(Error::TickGone { .. }) => head = self.head().await?,
                result => return result.map(|world| (head, world)),
            }
        }
        Err(Error::TickGone { generation: head.generation, tick: head.tick })
    }

    /// The world of a tick whose chunks are kept.
    pub(super) async fn world_of(&self, head: &TickHead) -> Result<World> {
        self.chunks(head, all_chunks(head)).await
    }

    async fn chunks(&self, head: &TickHead, range: Option<(i64, i64)>) -> Result<World> {
        let mut world = World::default();
        let Some((first, last)) = range else { return Ok(world) };
        let keys: Vec<_> =
            (first..=last).map(|number| CHUNK.key(head.generation, head.tick, number)).collect();
        for (page, keys) in keys.chunks(CHUNKS_PER_READ).enumerate() {
            let chunks = self.scope().get_many(keys).await?;
            for (index, chunk) in chunks.into_iter().enumerate() {
                let number = first + (page * CHUNKS_PER_READ + index) as i64;
                let chunk = chunk.filter(|chunk| is_of(chunk, head, number));
                let chunk = chunk.ok_or(Error::TickGone { generation: head.generation, tick: head.tick })?;
                chunk.entities.into_iter().for_each(|entity| world.insert(entity));
            }
        }
        Ok(world)
    }

    /// The world as the documented hashes have it: for a galaxy that other programs filled. What cannot be read is left out.
    pub(super) async fn world_of_hashes(&self) -> Result<World> {
        let mut world = World::default();
        for kind in [ship_page, body_page, station_page, jumpgate_page] {
            kind(self, &mut world).await?;
        }
        Ok(world)
    }
}

fn place(head: &TickHead) -> (i64, i64) {
    (head.generation, head.tick)
}

fn all_chunks(head: &TickHead) -> Option<(i64, i64)> {
    (head.chunks > 0).then_some((0, head.chunks - 1))
}

fn is_of(chunk: &Chunk, head: &TickHead, number: i64) -> bool {
    (chunk.generation, chunk.tick, chunk.number) == (head.generation, head.tick, number)
}

/// Declares the function that adds all entities of a kind to a world, a page of keys after the other.
macro_rules! pages_of_hashes {
    ($($name:ident, $family:ident, $get:ident, |$entity:ident| $state:expr;)*) => { $(
        fn $name<'a>(state: &'a GalaxyState, world: &'a mut World) -> Pending<'a, Result<()>> {
            Box::pin(async move {
                let mut from = None;
                loop {
                    let page = state.scope().scan::<$family>(from, KEYS_PER_PAGE).await?;
                    for key in page.keys {
                        let id = $family.parts(&key).0;
                        match state.$get(&id).await {
                            Ok(Some($entity)) => world.insert($state),
                            Ok(None) => {}
                            Err(Error::Store(error)) if error.is_corrupt() => {}
                            Err(error) => return Err(error),
                        }
                    }
                    from = page.next;
                    if from.is_none() {
                        return Ok(());
                    }
                }
            })
        }
    )* };
}

pages_of_hashes! {
    ship_page, SHIP, ship, |ship| {
        // A tick could not store it.
        if ship.motion.check().is_err() {
            continue;
        }
        let state = ShipState { player_id: ship.player_id, system_id: ship.system_id, motion: ship.motion };
        Entity::Ship(ship.ship_id, state)
    };
    body_page, BODY, body, |body| {
        let state = BodyState { system_id: body.system_id, position: body.position, velocity: body.velocity };
        Entity::Body(body.name, state)
    };
    station_page, STATION, station, |station| {
        let state =
            BodyState { system_id: station.system_id, position: station.position, velocity: station.velocity };
        Entity::Station(station.station_id, state)
    };
    jumpgate_page, JUMPGATE, jumpgate, |gate| {
        let state = BodyState { system_id: gate.system_id, position: gate.position, velocity: gate.velocity };
        Entity::Jumpgate(gate.jumpgate_id, state)
    };
}

/// A page of a scan is restarted if its cursor was refused.
pub(super) fn is_invalid_cursor(error: &hot::Error) -> bool {
    matches!(error, hot::Error::Invalid { what: "cursor", .. })
}
