//! Applies the limit of wrong room codes to the routes of rooms.

use crate::error::{ApiError, LoggedError};
use crate::limit::room_codes::REFUSED;
use crate::state::AppState;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use emberkeep_games::party::RoomCode;
use futures_util::future::BoxFuture;
use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The code of the error that spends a token.
const MISSING: &str = "room_not_found";

#[derive(Clone)]
pub(crate) struct RoomCodeLimit(pub(crate) AppState);

impl<S> Layer<S> for RoomCodeLimit {
    type Service = RoomCodeLimitService<S>;

    fn layer(&self, inner: S) -> RoomCodeLimitService<S> {
        RoomCodeLimitService { app: self.0.clone(), inner }
    }
}

#[derive(Clone)]
pub(crate) struct RoomCodeLimitService<S> {
    app: AppState,
    inner: S,
}

impl<S> Service<Request> for RoomCodeLimitService<S>
where
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Some(code) = after_rooms(request.uri().path()).map(room_code) else {
            return Box::pin(self.inner.call(request));
        };
        if self.app.has_service_token(request.headers()) {
            return Box::pin(self.inner.call(request));
        }
        let address = self.app.access.trusted_proxies.client(request.extensions(), request.headers());
        // The service that is ready is moved out; the clone takes its place.
        let ready = self.inner.clone();
        let (app, mut inner) = (self.app.clone(), std::mem::replace(&mut self.inner, ready));
        Box::pin(async move {
            let guess = match app.room_codes.check(address, code).await {
                Ok(guess) => guess,
                Err(wait) => {
                    app.metrics.limits.room_codes_refused.fetch_add(1, Relaxed);
                    return Ok(ApiError::rate_limited(REFUSED).retry_after(wait).into_response());
                }
            };
            let response = inner.call(request).await?;
            if response.extensions().get::<LoggedError>().is_some_and(|error| error.code == MISSING) {
                guess.confirm_missing();
            } else if response.status().is_success() {
                guess.confirm_found();
            }
            Ok(response)
        })
    }
}

/// What follows `/room/` or `/v1/rooms/`.
fn after_rooms(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/rooms/").or_else(|| path.strip_prefix("/room/"))
}

/// The code at the start of a path; `None` if it is percent-encoded or not a code, which no room is found by.
fn room_code(path: &str) -> Option<RoomCode> {
    RoomCode::new(path.split('/').next()?).ok()
}
