//! What looks at a request before anybody else does, and lets it pass or answers it.
//!
//! A service of its own and not a function between two handlers, for the same reason as in `observe`.

use crate::auth::Caller;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::{Either, Ready, ready};
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// Decides about requests.
pub(crate) trait Guard: Clone {
    /// Who calls, if a name is asked for; or what is said to a request that may not pass.
    fn pass(&self, request: &Request) -> Result<Option<Caller>, Box<Response>>;
}

/// Puts a guard before a service.
#[derive(Clone)]
pub(crate) struct Guarding<G>(pub(crate) G);

impl<G: Guard, S> Layer<S> for Guarding<G> {
    type Service = Guarded<G, S>;

    fn layer(&self, inner: S) -> Guarded<G, S> {
        Guarded { guard: self.0.clone(), inner }
    }
}

/// A service behind a guard.
#[derive(Clone)]
pub(crate) struct Guarded<G, S> {
    guard: G,
    inner: S,
}

impl<G, S> Service<Request> for Guarded<G, S>
where
    G: Guard,
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, Named<S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.guard.pass(&request) {
            Ok(caller) => Either::Right(Named { caller, inner: self.inner.call(request) }),
            Err(refusal) => Either::Left(ready(Ok(*refusal))),
        }
    }
}

pin_project! {
    /// A request of somebody whose name the log shall have: it goes with the response to `observe`.
    pub(crate) struct Named<F> {
        caller: Option<Caller>,
        #[pin]
        inner: F,
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Named<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.inner.poll(context));
        if let (Ok(response), Some(caller)) = (&mut answer, this.caller.take()) {
            response.extensions_mut().insert(caller);
        }
        Poll::Ready(answer)
    }
}
