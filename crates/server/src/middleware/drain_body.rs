//! Reads the rest of a body whose request was answered early.
//!
//! On HTTP/1 the unread rest of a body precedes the next request, so hyper closes such a connection and the
//! client's next request is lost. Here a small rest is read and discarded before the response is sent, within
//! limits of bytes and time. If that is not possible, the response says `Connection: close`.

use crate::limits::{BODY_BYTES_MAX, DRAIN_TIMEOUT};
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

#[derive(Clone)]
pub(crate) struct DrainBody;

impl<S> Layer<S> for DrainBody {
    type Service = DrainBodyService<S>;

    fn layer(&self, inner: S) -> DrainBodyService<S> {
        DrainBodyService(inner)
    }
}

#[derive(Clone)]
pub(crate) struct DrainBodyService<S>(S);

impl<S> Service<Request> for DrainBodyService<S>
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
        // `Expect: 100-continue`: reading would ask the client to send its body.
        let expects_continue = request.headers().contains_key(EXPECT);
        let (parts, body) = request.into_parts();
        let unread = Unread::default();
        let body = TrackedBody { body: Some(body), unread: unread.clone() };
        let responding = self.0.call(Request::from_parts(parts, Body::new(body)));
        Either::Right(Box::pin(async move {
            let mut response = responding.await?;
            let rest = unread.0.lock().take();
            if let Some(rest) = rest
                && (expects_continue || !read_to_end(rest).await)
            {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        }))
    }
}

/// Whether the body ended within the limits.
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
    timeout(DRAIN_TIMEOUT, reading).await.unwrap_or(false)
}

/// Where a body goes that is dropped before its end.
#[derive(Clone, Default)]
struct Unread(Arc<Mutex<Option<Body>>>);

/// A body that returns to `unread` if it is dropped before its end.
struct TrackedBody {
    body: Option<Body>,
    unread: Unread,
}

impl HttpBody for TrackedBody {
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

impl Drop for TrackedBody {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *self.unread.0.lock() = unread;
    }
}
