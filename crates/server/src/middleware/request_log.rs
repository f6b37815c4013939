//! Request id, metrics and access log of every request.

use crate::auth::Caller;
use crate::error::LoggedError;
use crate::headers::REQUEST_ID;
use crate::limits::REQUEST_ID_CHARS_MAX;
use crate::state::AppState;
use axum::extract::{MatchedPath, Request};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use pin_project_lite::pin_project;
use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tower::{Layer, Service};
use uuid::Uuid;

#[derive(Clone)]
pub(crate) struct RequestLog(pub(crate) AppState);

impl<S> Layer<S> for RequestLog {
    type Service = RequestLogService<S>;

    fn layer(&self, inner: S) -> RequestLogService<S> {
        RequestLogService { app: self.0.clone(), inner }
    }
}

#[derive(Clone)]
pub(crate) struct RequestLogService<S> {
    app: AppState,
    inner: S,
}

impl<S> Service<Request> for RequestLogService<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RequestLogFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> RequestLogFuture<S::Future> {
        let entry = Entry {
            started: Instant::now(),
            id: request_id(request.headers().get(REQUEST_ID)),
            method: request.method().clone(),
            path: request.extensions().get::<MatchedPath>().cloned(),
            app: self.app.clone(),
        };
        RequestLogFuture { entry: Some(entry), inner: self.inner.call(request) }
    }
}

pin_project! {
    /// Logs the request when it completes or is dropped.
    pub(crate) struct RequestLogFuture<F> {
        entry: Option<Entry>,
        #[pin]
        inner: F,
    }

    impl<F> PinnedDrop for RequestLogFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(entry) = this.project().entry.take() {
                entry.abandon();
            }
        }
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for RequestLogFuture<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match ready!(this.inner.poll(context)) {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if let Some(entry) = this.entry.take() {
            entry.complete(&mut response);
        }
        Poll::Ready(Ok(response))
    }
}

/// What is recorded when a request begins.
struct Entry {
    started: Instant,
    id: HeaderValue,
    method: Method,
    path: Option<MatchedPath>,
    app: AppState,
}

impl Entry {
    /// Records the request, and adds its id to the response.
    fn complete(self, response: &mut Response) {
        let error = response.extensions().get::<LoggedError>();
        self.app.metrics.count(
            &self.method,
            self.path(),
            self.started.elapsed(),
            error.map(|error| error.code),
        );
        self.log(response, error);
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id);
        // Responses show the current state and may hold secrets, such as a master key.
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }

    /// Server errors are logged as errors with their reason, everything else only at debug level.
    fn log(&self, response: &Response, error: Option<&LoggedError>) {
        let caller = response.extensions().get::<Caller>().map(|caller| &*caller.name);
        let (request_id, method, path) = (self.id_text(), &self.method, self.path());
        let (status, us) = (response.status().as_u16(), self.started.elapsed().as_micros() as u64);
        let (error, reason) = (error.map(|e| e.code), error.and_then(|e| e.reason.as_deref()));
        if response.status().is_server_error() {
            tracing::error!(request_id, caller, %method, path, status, us, error, reason, "request failed");
        } else {
            tracing::debug!(request_id, caller, %method, path, status, us, error, "request");
        }
    }

    /// The client closed the connection before the response.
    fn abandon(self) {
        self.app.metrics.count(&self.method, self.path(), self.started.elapsed(), Some("hung_up"));
        let (request_id, method, path) = (self.id_text(), &self.method, self.path());
        tracing::debug!(request_id, %method, path, "the client hung up");
    }

    fn path(&self) -> &str {
        self.path.as_ref().map_or("(none)", MatchedPath::as_str)
    }

    fn id_text(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }
}

/// The client's id if it is printable and not too long, otherwise a new one.
fn request_id(given: Option<&HeaderValue>) -> HeaderValue {
    let fits = |value: &&HeaderValue| {
        let text = value.as_bytes();
        !text.is_empty() && text.len() <= REQUEST_ID_CHARS_MAX && text.iter().all(u8::is_ascii_graphic)
    };
    match given.filter(fits) {
        Some(given) => given.clone(),
        None => new_id(),
    }
}

/// A keyed hash of a counter: unique across servers, does not reveal the number of requests, and needs no
/// system call.
fn new_id() -> HeaderValue {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = Uuid::from_u64_pair(KEY.hash_one((count, 0_u8)), KEY.hash_one((count, 1_u8)));
    let mut text = Uuid::encode_buffer();
    HeaderValue::from_str(id.as_simple().encode_lower(&mut text))
        .expect("hex digits are a valid header value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::AccessPolicy;
    use emberkeep_games::darkages::DarkAges;
    use emberkeep_hot::Store;
    use emberkeep_hot::embedded::Embedded;
    use std::sync::Arc;

    #[test]
    fn an_id_does_not_tell_how_many_requests_there_were() {
        let of = || u128::from_str_radix(new_id().to_str().unwrap(), 16).unwrap();
        let (first, second, third) = (of(), of(), of());
        for (one, next) in [(first, second), (second, third), (first, third)] {
            assert!(one.abs_diff(next) > 1 << 32, "{one:x} and {next:x}");
            assert_ne!(one as u64, next as u64);
            assert_ne!(one >> 64, next >> 64, "no part stays the same");
        }
    }

    #[test]
    fn a_request_whose_caller_hung_up_is_counted() {
        let store = Store::new(Arc::new(Embedded::in_memory()));
        let darkages = DarkAges::new(store.clone(), "test").unwrap();
        let app = AppState::new(store, AccessPolicy::open(), Default::default(), darkages);
        let never = tower::service_fn(|_: Request| std::future::pending::<Result<Response, Infallible>>());
        drop(RequestLog(app.clone()).layer(never).call(Request::default()));
        let page = app.metrics.page(&app.store.stats().unwrap_or_default(), &[], None);
        let line = "emberkeep_request_errors_total{method=\"GET\",path=\"(none)\",error=\"hung_up\"} 1";
        assert!(page.lines().any(|found| found == line), "{page}");
    }
}
