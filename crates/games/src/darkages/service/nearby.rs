//! Players near a point, from their positions.

use super::*;
use crate::darkages::limits::MEMBERS_PER_READ;
use crate::darkages::model::{Point, PositionText, SpatialQuery};
use emberkeep_hot::engine::{MemberCursor, Pending};
use emberkeep_schema::{Codec, Name, ValueError};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Digits of a whole number that a double holds exactly.
const DIGITS_MAX: usize = 15;

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
    /// Players of the zone who may be in reach, but whose position cannot be read. They are not in the result.
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
    Ok(readable(scope.get(key).await)?.flatten())
}

/// The players in reach, in order, and how many positions cannot be read.
async fn find_nearby(scope: &Scope<Shard>, request: &NearbyRequest) -> Result<(Vec<i64>, usize)> {
    let reach = Reach::of(request);
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    let (mut page, mut next) = members_page(scope, request.zone, None).await?;
    loop {
        let positions = positions_in_reach(scope, &page, &reach);
        let Some(cursor) = next else {
            let (near, unread) = positions.await?;
            found.extend(near);
            unreadable.extend(unread);
            break;
        };
        // The next page is on its way while this one's positions are read.
        let later = members_page(scope, request.zone, Some(cursor));
        let ((near, unread), (later, cursor)) = tokio::try_join!(positions, later)?;
        found.extend(near);
        unreadable.extend(unread);
        (page, next) = (later, cursor);
    }
    // A player may stand on two pages.
    for list in [&mut found, &mut unreadable] {
        list.sort_unstable();
        list.dedup();
    }
    Ok((found, unreadable.len()))
}

/// A page of a zone's members, and the cursor of the next one. What is not an id is none of them.
async fn members_page(
    scope: &Scope<Shard>,
    zone: ZoneId,
    from: Option<MemberCursor>,
) -> hot::Result<(Vec<EntityId>, Option<MemberCursor>)> {
    let mut members = Vec::with_capacity(MEMBERS_PER_READ);
    let add = |member: std::result::Result<EntityId, &[u8]>| members.extend(member.ok());
    let next = scope.visit_members(&ZONE_PLAYERS.key(zone), from, MEMBERS_PER_READ, add).await?;
    Ok((members, next))
}

/// Those of these players who are in reach, and those whose position cannot be read.
async fn positions_in_reach(
    scope: &Scope<Shard>,
    players: &[EntityId],
    reach: &Reach,
) -> hot::Result<(Vec<i64>, Vec<i64>)> {
    let (mut found, mut unreadable, mut failure) = (Vec::new(), Vec::new(), None);
    let keys = players.iter().map(|entity| POSITION.key(entity));
    let look = |place: usize, text: hot::Result<Option<&[u8]>>| match text {
        Ok(None) => {}
        Ok(Some(text)) => match reach.has(text) {
            Ok(false) => {}
            Ok(true) => found.push(players[place].0),
            Err(_) => unreadable.push(players[place].0),
        },
        Err(error) if error.is_corrupt() => unreadable.push(players[place].0),
        Err(error) => failure = Some(error),
    };
    scope.visit_each(keys, look).await?;
    failure.map_or(Ok((found, unreadable)), Err)
}

/// A circle around a point.
struct Reach {
    centre: Point,
    /// Of the radius.
    square: f64,
    /// Where it begins and ends to the east.
    x: RangeInclusive<f64>,
}

impl Reach {
    fn of(request: &NearbyRequest) -> Reach {
        let (centre, radius) = (request.centre.clone(), request.radius);
        // Wider than any rounding of the distance.
        let side = radius + 1.0 + (centre.x.abs() + radius) * 1e-12;
        Reach { x: centre.x - side..=centre.x + side, square: radius * radius, centre }
    }

    /// Whether a position is within it. Most of a zone is out of reach by the whole part of the first coordinate: only the
    /// others are read in full.
    fn has(&self, text: &[u8]) -> std::result::Result<bool, ValueError> {
        if whole_x(text).is_some_and(|(least, most)| most < *self.x.start() || least > *self.x.end()) {
            return Ok(false);
        }
        Ok(PositionText::decode(text)?.distance_squared(&self.centre) <= self.square)
    }
}

/// Between which whole numbers the first coordinate is, if it is written in plain decimals.
fn whole_x(text: &[u8]) -> Option<(f64, f64)> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1.0, digits),
        digits => (1.0, digits),
    };
    let length = digits.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit()).count();
    let fraction = match &digits[length..] {
        [b'.', fraction @ ..] if length > 0 => fraction,
        _ => return None,
    };
    let end = fraction.iter().position(|byte| !byte.is_ascii_digit())?;
    let whole = digits[..length].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')) as f64;
    let (near, far) = (sign * whole, sign * (whole + 1.0));
    (fraction[end] == b',').then_some((near.min(far), near.max(far)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::darkages::model::Position;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_in_plain_decimals_is_read_in_full() {
        assert_eq!(whole_x(b"-12.5,0.0,1.0,7"), Some((-13.0, -12.0)));
        assert_eq!(whole_x(b"0.0,0.0,1.0,7"), Some((0.0, 1.0)));
        for text in [
            "",
            "-",
            ".",
            ".5,0,0,7",
            "12,0,0,7",
            "1.5e9,0,0,7",
            "1.5",
            "1.5;0,0,7",
            "nan,0,0,7",
            "1234567890123456.5,",
        ] {
            assert_eq!(whole_x(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_finds_the_same(
            (x, z, centre_x) in (-50.0..50.0f64, -50.0..50.0f64, -50.0..50.0f64),
            radius in prop_oneof![0.0..60.0f64, Just(0.0), Just(1e100)],
        ) {
            let position = Position { x, y: 0.5, z, at: 7 };
            let mut text = Vec::new();
            PositionText::encode(&position, &mut text).unwrap();
            let centre = Point::new(centre_x, 0.0, 0.0);
            let request = NearbyRequest {
                query: Name::new("q").unwrap(), zone: ZoneId(1), centre: centre.clone(), radius, max_age: Duration::ZERO,
            };
            let expected = position.distance_squared(&centre) <= radius * radius;
            prop_assert_eq!(Reach::of(&request).has(&text).unwrap(), expected);
            let around = NearbyRequest { centre: Point::new(x, 0.5, z), ..request };
            prop_assert_eq!(Reach::of(&around).has(&text).unwrap(), true);
        }
    }
}
