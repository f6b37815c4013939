//! A layer that lets a request pass or answers it, by a synchronous check of its head.

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

pub(crate) trait Guard: Clone {
    /// The caller, if it is known by a token; the error is the answer to a refused request.
    fn check(&self, request: &Request) -> Result<Option<Caller>, Box<Response>>;
}

#[derive(Clone)]
pub(crate) struct GuardLayer<G>(pub(crate) G);

impl<G: Guard, S> Layer<S> for GuardLayer<G> {
    type Service = GuardService<G, S>;

    fn layer(&self, inner: S) -> GuardService<G, S> {
        GuardService { guard: self.0.clone(), inner }
    }
}

#[derive(Clone)]
pub(crate) struct GuardService<G, S> {
    guard: G,
    inner: S,
}

impl<G, S> Service<Request> for GuardService<G, S>
where
    G: Guard,
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<Ready<Result<Response, Infallible>>, WithCaller<S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        match self.guard.check(&request) {
            Ok(caller) => {
                // For the extractor of the service.
                if let Some(caller) = caller.as_ref().filter(|caller| caller.service.is_some()) {
                    request.extensions_mut().insert(caller.clone());
                }
                Either::Right(WithCaller { caller, inner: self.inner.call(request) })
            }
            Err(refusal) => Either::Left(ready(Ok(*refusal))),
        }
    }
}

pin_project! {
    /// Adds the caller to the response, for the request log.
    pub(crate) struct WithCaller<F> {
        caller: Option<Caller>,
        #[pin]
        inner: F,
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for WithCaller<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut result = ready!(this.inner.poll(context));
        if let (Ok(response), Some(caller)) = (&mut result, this.caller.take()) {
            response.extensions_mut().insert(caller);
        }
        Poll::Ready(result)
    }
}
