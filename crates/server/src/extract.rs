//! Where a request comes from, its path, query and body, with refusals in our shape.
//!
//! A body that is no JSON is 400, one that does not arrive 408; one that is JSON but not what the route takes is 422, and
//! so is a path or query that cannot be read. Unknown fields are refused where the type says `deny_unknown_fields`, which every command does.

use crate::app::App;
use crate::bodies::Held;
use crate::limits::BODY_BYTES_MAX;
use crate::problem::Problem;
use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header::CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::time::timeout;

/// Where a request comes from, as far as limits tell callers apart.
pub(crate) struct Address(pub(crate) IpAddr);

/// A connection at home has 2^64 addresses of IPv6; they count as one.
pub(crate) fn household(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        ip => ip,
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Address, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Address(peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| household(peer.ip()))))
    }
}

/// The parts of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Path(value)),
            Err(rejection) => Err(Problem::invalid(rejection.body_text())),
        }
    }
}

/// The query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(rejection) => Err(Problem::invalid(rejection.body_text())),
        }
    }
}

/// The body as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        check_media_type(&request)?;
        let (mut parts, body) = request.into_parts();
        let Ok(Address(from)) = Address::from_request_parts(&mut parts, app).await;
        let bytes = whole(body, app.bodies.hold(from), app.doors.waits.body).await?;
        // Serde takes a list for a struct, too: fields without names. Nobody should come to rely on it.
        if bytes.trim_ascii_start().first() == Some(&b'[')
            && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok()
        {
            return Err(Problem::invalid(
                "the body is not what this route takes: a list, expected an object",
            ));
        }
        serde_json::from_slice(&bytes).map(Json).map_err(unreadable)
    }
}

fn check_media_type(request: &Request) -> Result<(), Problem> {
    let found = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = found.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("the body's Content-Type is {found:?}, expected application/json");
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
}

/// All bytes of a body that ends in time.
async fn whole(body: Body, held: Held<'_>, wait: Duration) -> Result<Bytes, Problem> {
    match timeout(wait, collect(body, held)).await {
        Ok(collected) => collected,
        Err(_) => {
            let message = format!("the body did not arrive within {} s", wait.as_secs_f32());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_late", message))
        }
    }
}

/// All bytes of a body. What arrives at once is neither counted nor copied.
async fn collect(body: Body, mut held: Held<'_>) -> Result<Bytes, Problem> {
    let mut body = Limited::new(body, BODY_BYTES_MAX);
    let first = next(&mut body).await?.unwrap_or_default();
    if body.is_end_stream() {
        return Ok(first);
    }
    held.add(first.len())?;
    let mut all = BytesMut::from(first);
    while let Some(bytes) = next(&mut body).await? {
        held.add(bytes.len())?;
        all.extend_from_slice(&bytes);
    }
    Ok(all.freeze())
}

/// The next bytes of a body; `None` after its end.
async fn next(body: &mut Limited<Body>) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        // Trailers say nothing to us.
        if let Ok(bytes) = frame.map_err(|error| unread(&*error))?.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn unread(error: &(dyn Error + 'static)) -> Problem {
    if error.is::<LengthLimitError>() {
        let message =
            format!("the body has more than {BODY_BYTES_MAX} bytes, which is the most that is read");
        return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message);
    }
    Problem::new(StatusCode::BAD_REQUEST, "body_broke_off", format!("the body broke off: {error}"))
}

fn unreadable(error: serde_json::Error) -> Problem {
    match error.classify() {
        Category::Data => Problem::invalid(format!("the body is not what this route takes: {error}")),
        _ => Problem::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is no JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_household_is_one_caller() {
        let of = |ip: &str| household(ip.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(
            (of("::ffff:10.0.0.1"), of("10.0.0.1"), of("::1")),
            ("10.0.0.1".into(), "10.0.0.1".into(), "::1".into())
        );
    }
}
