//! Requests that are answered before their body was read.
//!
//! On HTTP/1 the rest of the body stands before the next request, so that hyper ends such a connection, and the client's next request
//! is lost. Here a small rest is read and dropped before the answer leaves, within bounds of bytes and time. Where that is not
//! possible, the answer says `Connection: close`.

use crate::limits::{BODY_BYTES_MAX, DRAIN_WAIT};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use futures_util::future::{BoxFuture, Either};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::timeout;
use tower::{Layer, Service};

/// Puts the reading of rests around a service.
#[derive(Clone)]
pub(crate) struct Drain;

impl<S> Layer<S> for Drain {
    type Service = Draining<S>;

    fn layer(&self, inner: S) -> Draining<S> {
        Draining(inner)
    }
}

/// A service whose unread bodies are read.
#[derive(Clone)]
pub(crate) struct Draining<S>(S);

impl<S> Service<Request> for Draining<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
            return Either::Left(self.0.call(request));
        }
        // Such a client sends its body only if it is asked to: reading would ask.
        let waits_for_leave = request.headers().contains_key(EXPECT);
        let (parts, body) = request.into_parts();
        let unread = Unread::default();
        let lent = Lent { body: Some(body), owner: unread.clone() };
        let answering = self.0.call(Request::from_parts(parts, Body::new(lent)));
        Either::Right(Box::pin(async move {
            let mut response = answering.await?;
            let rest = unread.0.lock().take();
            if let Some(rest) = rest
                && (waits_for_leave || !read_to_end(rest).await)
            {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        }))
    }
}

/// Whether a body came to its end within the bounds.
async fn read_to_end(body: Body) -> bool {
    let mut rest = Limited::new(body, BODY_BYTES_MAX);
    let reading = async {
        while let Some(frame) = rest.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    };
    timeout(DRAIN_WAIT, reading).await.unwrap_or(false)
}

/// A body that was let go before its end.
#[derive(Clone, Default)]
struct Unread(Arc<Mutex<Option<Body>>>);

/// A body that goes back to its owner if it is let go before its end.
struct Lent {
    body: Option<Body>,
    owner: Unread,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            this.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *self.owner.0.lock() = unread;
    }
}
