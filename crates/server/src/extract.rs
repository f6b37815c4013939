//! Extractors of client address, service, path, query and body, whose rejections are [`ApiError`]s.
//!
//! A body that is not JSON is 400; one that does not arrive in time is 408. A body of the wrong shape is 422,
//! and so is an invalid path or query. Requests have `deny_unknown_fields`, so that a misspelt field is an
//! error.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::limit::bodies::{BodyLimit, BodyReservation};
use crate::limits::{BODY_BYTES_MAX, BODY_RETRY, BULK_BODY_BYTES_MAX};
use crate::state::AppState;
use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header::CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use emberkeep_schema::{Schema, Service};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The client, as the key of rate limits.
pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<AppState> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<ClientAddress, Infallible> {
        Ok(ClientAddress(app.access.trusted_proxies.client(&parts.extensions, &parts.headers)))
    }
}

/// The service that the caller's token names, for the routes of games that declare services; `None` = no token, or
/// one that may write everything.
pub struct ActingService(pub Option<Arc<str>>);

impl<S: Send + Sync> FromRequestParts<S> for ActingService {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ActingService, Infallible> {
        Ok(ActingService(parts.extensions.get::<Caller>().and_then(|caller| caller.service.clone())))
    }
}

impl ActingService {
    /// The declaration of the service in the schema of a game; 403 `forbidden` if the game has no such service.
    pub fn declared_in(&self, schema: &Schema) -> Result<Option<&'static Service>, ApiError> {
        let Some(name) = &self.0 else { return Ok(None) };
        schema.service(name).map(Some).ok_or_else(|| {
            let known = schema.services().map(|service| service.name).collect::<Vec<_>>().join(", ");
            let detail = format!("the token names the service {name}, expected one of this game: {known}");
            ApiError::new(StatusCode::FORBIDDEN, "forbidden", detail).with("service", &**name)
        })
    }
}

pub(crate) struct Path<T>(pub(crate) T);

/// A value that is made of path parameters.
///
/// Not serde: each type would compile a copy of its path deserializer.
pub(crate) trait FromPath: Sized {
    fn from_path(parameters: &PathParameters) -> Result<Self, ApiError>;
}

/// The parameters of a path by name, percent-decoded.
pub(crate) struct PathParameters(RawPathParams);

impl PathParameters {
    async fn read(parts: &mut Parts) -> Result<PathParameters, ApiError> {
        let raw = RawPathParams::from_request_parts(parts, &()).await;
        raw.map(PathParameters).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }

    /// A parameter of the route, as a value.
    pub(crate) fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, ApiError> {
        self.parse(name, str::parse)
    }

    /// The same, with a parser.
    pub(crate) fn parse<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ApiError> {
        let text = self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        parse(text).map_err(|error| invalid_parameter(name, text, &error))
    }
}

fn invalid_parameter(name: &str, text: &str, error: &dyn Display) -> ApiError {
    ApiError::invalid(format!("the path has {text:?} for {name}: {error}")).with("what", name)
}

impl<T: FromPath + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        T::from_path(&PathParameters::read(parts).await?).map(Path)
    }
}

pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(rejection) => Err(ApiError::invalid(rejection.body_text())),
        }
    }
}

pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let bytes = json_bytes(request, app, BODY_BYTES_MAX).await?;
        serde_json::from_slice(&bytes).map(Json).map_err(json_error)
    }
}

/// A body of many entries, which may be larger than others.
pub(crate) struct BulkJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<AppState> for BulkJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let bytes = json_bytes(request, app, BULK_BODY_BYTES_MAX).await?;
        serde_json::from_slice(&bytes).map(BulkJson).map_err(json_error)
    }
}

/// The body of a request that declares JSON. Apart from [`Json`], so that it is compiled once.
async fn json_bytes(request: Request, app: &AppState, bytes_max: usize) -> Result<Bytes, ApiError> {
    check_media_type(&request)?;
    let (mut parts, body) = request.into_parts();
    let Ok(ClientAddress(address)) = ClientAddress::from_request_parts(&mut parts, app).await;
    let bytes =
        read_body(BoundedBody::new(body, bytes_max), app.bodies.reserve(address), app.access.body_timeout)
            .await?;
    // Serde reads an array as a struct by position, which clients must not come to rely on.
    if bytes.trim_ascii_start().first() == Some(&b'[') && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok()
    {
        return Err(ApiError::invalid("the body does not fit this route: an array, expected an object"));
    }
    Ok(bytes)
}

fn check_media_type(request: &Request) -> Result<(), ApiError> {
    let found = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = found.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("the body's Content-Type is {found:?}, expected application/json");
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message))
}

/// A body that ends with an error at its maximum.
struct BoundedBody {
    body: Limited<Body>,
    bytes_max: usize,
}

impl BoundedBody {
    fn new(body: Body, bytes_max: usize) -> BoundedBody {
        BoundedBody { body: Limited::new(body, bytes_max), bytes_max }
    }

    /// `None` after the end of the body.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        while let Some(frame) = self.body.frame().await {
            // Trailers are skipped.
            if let Ok(bytes) = frame.map_err(|error| self.read_error(&*error))?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn read_error(&self, error: &(dyn Error + 'static)) -> ApiError {
        if error.is::<LengthLimitError>() {
            let message = format!("the body has more than {} bytes, the maximum", self.bytes_max);
            return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message);
        }
        ApiError::new(StatusCode::BAD_REQUEST, "body_broke_off", format!("the body broke off: {error}"))
    }
}

/// Reads a body to its end, within `wait`.
async fn read_body(
    body: BoundedBody,
    reservation: BodyReservation<'_>,
    wait: Duration,
) -> Result<Bytes, ApiError> {
    match timeout(wait, collect(body, reservation)).await {
        Ok(collected) => collected,
        Err(_) => {
            let message = format!("the body did not arrive within {} s", wait.as_secs_f32());
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_too_late", message))
        }
    }
}

/// A body that arrives in one piece is neither counted nor copied.
async fn collect(mut body: BoundedBody, mut reservation: BodyReservation<'_>) -> Result<Bytes, ApiError> {
    let first = body.next().await?.unwrap_or_default();
    if body.body.is_end_stream() {
        return Ok(first);
    }
    reservation.grow(first.len()).map_err(limit_error)?;
    let mut all = BytesMut::from(first);
    while let Some(bytes) = body.next().await? {
        reservation.grow(bytes.len()).map_err(limit_error)?;
        all.extend_from_slice(&bytes);
    }
    Ok(all.freeze())
}

fn limit_error(limit: BodyLimit) -> ApiError {
    let error = match limit {
        BodyLimit::Address => {
            ApiError::rate_limited("too many unfinished requests from this address; wait, then try again")
        }
        BodyLimit::Total => {
            let detail = "too many unfinished requests; wait, then try again";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
        }
    };
    error.retry_after(BODY_RETRY)
}

/// What serde says about a value, without the names of Rust's types.
fn in_words_of_json(problem: &str) -> String {
    const TYPES: [(&str, &str); 10] = [
        ("u8", "an integer from 0 to 255"),
        ("u16", "an integer from 0 to 65535"),
        ("u32", "an integer from 0 to 4294967295"),
        ("u64", "an integer, 0 or more"),
        ("usize", "an integer, 0 or more"),
        ("i8", "an integer from -128 to 127"),
        ("i16", "an integer from -32768 to 32767"),
        ("i32", "an integer from -2147483648 to 2147483647"),
        ("i64", "an integer"),
        ("f64", "a number"),
    ];
    let Some((before, rest)) = problem.split_once("expected ") else { return problem.to_owned() };
    let end = |text: &str| text.find([' ', ',']).unwrap_or(text.len());
    if let Some(named) = rest.strip_prefix("struct ") {
        return format!("{before}expected an object{}", &named[end(named)..]);
    }
    let (name, after) = rest.split_at(end(rest));
    let plain = TYPES.iter().find(|(known, _)| *known == name).map_or(name, |(_, plain)| plain);
    format!("{before}expected {plain}{after}")
}

fn json_error(error: serde_json::Error) -> ApiError {
    match error.classify() {
        Category::Data => {
            let problem = in_words_of_json(&error.to_string());
            ApiError::invalid(format!("the body does not fit this route: {problem}"))
        }
        _ => {
            ApiError::new(StatusCode::BAD_REQUEST, "malformed_json", format!("the body is not JSON: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Entry, Role, Token, Tokens};
    use crate::middleware::GuardLayer;
    use crate::middleware::require_role::RequireRole;
    use axum::{Router, routing::get};
    use emberkeep_schema::service;
    use tower::Service as _;

    service! { pub(crate) PHYSICS = "physics" {} }

    /// What a handler behind a role check sees of the service of its caller's token.
    async fn seen(tokens: &Tokens, token: Option<&Token>) -> String {
        let handler = |ActingService(service): ActingService| async move { format!("{service:?}") };
        let guard = RequireRole { tokens: tokens.clone(), role: Role::ReadOnly };
        let mut app: Router = Router::new().route("/", get(handler)).layer(GuardLayer(guard));
        let request = axum::http::Request::builder().uri("/");
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.reveal())),
            None => request,
        };
        let answer = app.call(request.body(Body::empty()).unwrap()).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_handler_gets_the_service_that_the_token_names() {
        let (physics, lobby) = (Token::new().unwrap(), Token::new().unwrap());
        let entry = |name: &str, token: &Token, service: Option<&str>| Entry {
            name: name.into(),
            role: Role::Service,
            service: service.map(str::to_owned),
            hash: token.hash(),
        };
        let tokens =
            Tokens::of(&[entry("physics 1", &physics, Some("physics")), entry("lobby", &lobby, None)]);
        assert_eq!(seen(&tokens, Some(&physics)).await, "Some(\"physics\")");
        assert_eq!(seen(&tokens, Some(&lobby)).await, "None");
        assert_eq!(seen(&Tokens::open(), None).await, "None");
        assert!(seen(&tokens, None).await.contains("unauthorized"));
    }

    #[test]
    fn a_service_that_no_game_declares_is_forbidden() {
        let schema = Schema::of(&[]).and_then(|schema| schema.with_services(&[&PHYSICS])).unwrap();
        let acting = |name: Option<&str>| ActingService(name.map(Arc::from)).declared_in(&schema);
        assert!(acting(None).unwrap().is_none());
        assert_eq!(acting(Some("physics")).unwrap().map(|service| service.name), Some("physics"));
        let error = acting(Some("tick-engine")).unwrap_err();
        assert_eq!((error.status(), error.code()), (StatusCode::FORBIDDEN, "forbidden"));
        let details = serde_json::to_value(error.into_details()).unwrap();
        assert!(details["detail"].as_str().unwrap().ends_with("expected one of this game: physics"));
    }

    #[test]
    fn errors_of_bodies_name_no_type_of_rust() {
        #[derive(serde::Deserialize, Debug)]
        #[allow(dead_code)]
        struct Body {
            amount: u32,
        }
        for (body, expected) in [
            (
                r#"{"amount": "x"}"#,
                "invalid type: string \"x\", expected an integer from 0 to 4294967295 at line 1 column 14",
            ),
            (
                r#"{"amount": -1}"#,
                "invalid value: integer `-1`, expected an integer from 0 to 4294967295 at line 1 column 13",
            ),
            ("{}", "missing field `amount` at line 1 column 2"),
            ("7", "invalid type: integer `7`, expected an object at line 1 column 1"),
        ] {
            let error = serde_json::from_str::<Body>(body).unwrap_err();
            assert_eq!(in_words_of_json(&error.to_string()), expected);
        }
    }
}
