//! The limit of room codes before the routes of rooms.

use super::{LIMITED, MISSING};
use crate::access::is_service;
use crate::app::App;
use crate::extract::household;
use crate::problem::{Problem, Told};
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use emberkeep_games::party::RoomCode;
use futures_util::future::BoxFuture;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Puts the limit before routes of rooms.
#[derive(Clone)]
pub(crate) struct LimitRoomCodes(pub(crate) App);

impl<S> Layer<S> for LimitRoomCodes {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { app: self.0.clone(), inner }
    }
}

/// Routes of rooms behind the limit.
#[derive(Clone)]
pub(crate) struct Limited<S> {
    app: App,
    inner: S,
}

impl<S> Service<Request> for Limited<S>
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
        if !names_a_room(request.uri().path()) || is_service(&self.app, request.headers()) {
            return Box::pin(self.inner.call(request));
        }
        let (address, code) = (address(&request), code(request.uri().path()));
        // The clone takes the place of the service that is ready.
        let ready = self.inner.clone();
        let (app, mut inner) = (self.app.clone(), std::mem::replace(&mut self.inner, ready));
        Box::pin(async move {
            let guess = match app.room_codes.check(address, code).await {
                Ok(guess) => guess,
                Err(wait) => {
                    app.metrics.bounds.room_codes_refused.fetch_add(1, Relaxed);
                    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", LIMITED);
                    return Ok(problem.retry_after(wait).into_response());
                }
            };
            let response = inner.call(request).await?;
            if response.extensions().get::<Told>().is_some_and(|told| told.error == MISSING) {
                guess.missed();
            } else if response.status().is_success() {
                guess.found();
            }
            Ok(response)
        })
    }
}

fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| household(peer.ip()))
}

/// What follows `/room/` or `/v1/rooms/`.
fn after_rooms(path: &str) -> Option<&str> {
    path.strip_prefix("/v1/rooms/").or_else(|| path.strip_prefix("/room/"))
}

fn names_a_room(path: &str) -> bool {
    after_rooms(path).is_some()
}

/// The code in a path; `None` where it is written in an unusual way, which no room was found by.
fn code(path: &str) -> Option<RoomCode> {
    RoomCode::new(after_rooms(path)?.split('/').next()?).ok()
}
