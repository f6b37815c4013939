//! Players near a point, from their positions.

use super::zones::member_pages;
use super::*;
use crate::darkages::limits::NEARBY_PER_READ;
use crate::darkages::model::{Point, SpatialQuery};
use emberkeep_hot::engine::Pending;
use emberkeep_schema::Name;
use std::time::Duration;

/// Which players are near a point of a zone.
#[derive(Debug, Clone, PartialEq)]
pub struct NearbyRequest {
    /// Names the query in the cache. Other parameters under the same name are another query, and replace it there.
    pub query: Name,
    /// The zone whose members are searched.
    pub zone: ZoneId,
    /// The point around which is searched; finite.
    pub centre: Point,
    /// How far a player may be from the centre, 0 or more.
    pub radius: f64,
    /// How old a cached result may be; zero = none is used.
    pub max_age: Duration,
}

/// The players near a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearby {
    /// The players, the lowest id first.
    pub ids: Vec<EntityId>,
    /// When they were there, in milliseconds since 1970.
    pub at: i64,
    /// Whether the result comes from the cache.
    pub is_cached: bool,
    /// Players of the zone whose position cannot be read. They are not in the result.
    pub unreadable: usize,
}

impl DarkAges {
    /// The players of a zone within a distance of a point. Players without a position of the last two minutes are not found.
    pub fn nearby(&self, request: NearbyRequest) -> Pending<'_, Result<Nearby>> {
        Box::pin(async move {
            check(&request)?;
            let scope = self.scope_of(request.zone);
            let key = SPATIAL_QUERY.key(&request.query);
            let now = self.store.now().await?;
            let max_age_ms = i64::try_from(request.max_age.as_millis()).unwrap_or(i64::MAX);
            if max_age_ms > 0
                && let Some(cached) = cached(&scope, &key).await?
                && is_same(&cached, &request)
                && (0..=max_age_ms).contains(&now.saturating_sub(cached.at_ms))
            {
                let ids = cached.ids.iter().copied().map(EntityId).collect();
                return Ok(Nearby { ids, at: cached.at_ms, is_cached: true, unreadable: 0 });
            }
            let (ids, unreadable) = find_nearby(&scope, &request).await?;
            let NearbyRequest { zone, centre, radius, .. } = request;
            let found = SpatialQuery::new(zone.0, centre, radius, now, ids.clone().into());
            scope.named("darkages.nearby").put(&key, found).await?;
            Ok(Nearby { ids: ids.into_iter().map(EntityId).collect(), at: now, is_cached: false, unreadable })
        })
    }
}

/// A cached result. One that cannot be read is a miss.
async fn cached(scope: &Scope<Shard>, key: &Key<SPATIAL_QUERY>) -> Result<Option<SpatialQuery>> {
    match scope.get(key).await {
        Err(hot::Error::Corrupt { .. }) => Ok(None),
        found => Ok(found?),
    }
}

/// The players in reach, in order, and how many positions cannot be read.
async fn find_nearby(scope: &Scope<Shard>, request: &NearbyRequest) -> Result<(Vec<i64>, usize)> {
    let members = member_pages(scope, request.zone).await?.ids;
    let reach = request.radius * request.radius;
    let (mut ids, mut unreadable) = (Vec::new(), 0);
    for entities in members.chunks(NEARBY_PER_READ) {
        let keys: Vec<_> = entities.iter().map(|entity| POSITION.key(entity)).collect();
        for (entity, position) in entities.iter().zip(scope.get_each(&keys).await?) {
            match position {
                Ok(Some(position)) if position.distance_squared(&request.centre) <= reach => {
                    ids.push(entity.0);
                }
                Ok(_) => {}
                Err(hot::Error::Corrupt { .. } | hot::Error::WrongType { .. }) => unreadable += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok((ids, unreadable))
}

fn check(request: &NearbyRequest) -> Result<()> {
    if !request.centre.is_finite() {
        return Err(Error::invalid("centre", "a coordinate that is infinite or not a number"));
    }
    // A square that leaves the numbers would reach everything.
    if !(request.radius >= 0.0 && (request.radius * request.radius).is_finite()) {
        let problem = format!("{}, expected 0 or more, and a finite square", request.radius);
        return Err(Error::invalid("radius", problem));
    }
    Ok(())
}

fn is_same(cached: &SpatialQuery, request: &NearbyRequest) -> bool {
    (cached.zone, &cached.centre, cached.radius) == (request.zone.0, &request.centre, request.radius)
}
