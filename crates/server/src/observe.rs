//! Every request: an id, a place in the counters, a line in the log.
//!
//! A service of its own and not a function between two handlers: those box a future and copy the handler for every
//! request, which is worth a good part of a hit.

use crate::app::App;
use crate::auth::Caller;
use crate::headers::REQUEST_ID;
use crate::limits::REQUEST_ID_CHARS_MAX;
use crate::problem::Told;
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

/// Notes what becomes of requests.
#[derive(Clone)]
pub(crate) struct Observe(pub(crate) App);

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed { app: self.0.clone(), inner }
    }
}

/// A service whose requests are noted.
#[derive(Clone)]
pub(crate) struct Observed<S> {
    app: App,
    inner: S,
}

impl<S> Service<Request> for Observed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Observing<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Observing<S::Future> {
        let noted = Noted {
            started: Instant::now(),
            id: request_id(request.headers().get(REQUEST_ID)),
            method: request.method().clone(),
            path: request.extensions().get::<MatchedPath>().cloned(),
            app: self.app.clone(),
        };
        Observing { noted: Some(noted), inner: self.inner.call(request) }
    }
}

pin_project! {
    /// A request under way.
    pub(crate) struct Observing<F> {
        noted: Option<Noted>,
        #[pin]
        inner: F,
    }

    impl<F> PinnedDrop for Observing<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(noted) = this.project().noted.take() {
                noted.hung_up();
            }
        }
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Observing<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match ready!(this.inner.poll(context)) {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if let Some(noted) = this.noted.take() {
            noted.end(&mut response);
        }
        Poll::Ready(Ok(response))
    }
}

/// What is known of a request from its beginning.
struct Noted {
    started: Instant,
    id: HeaderValue,
    method: Method,
    path: Option<MatchedPath>,
    app: App,
}

impl Noted {
    /// Counts it, tells of it, and gives the answer its id.
    fn end(self, response: &mut Response) {
        let told = response.extensions().get::<Told>();
        let error = told.map(|told| told.error);
        self.app.metrics.count(&self.method, self.path(), self.started.elapsed(), error);
        self.tell(response, told);
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id);
        // What is answered is of this moment, and may be for its caller only, such as a master key.
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }

    /// A line in the log. What the server is at fault for is said in any case, with what it was.
    fn tell(&self, response: &Response, told: Option<&Told>) {
        let caller = response.extensions().get::<Caller>().map(|caller| &*caller.name);
        let (request_id, method, path) = (self.shown_id(), &self.method, self.path());
        let (status, us) = (response.status().as_u16(), self.started.elapsed().as_micros() as u64);
        let error = told.map(|told| told.error);
        if response.status().is_server_error() {
            let reason = told.and_then(|told| told.reason.as_deref());
            tracing::error!(request_id, caller, %method, path, status, us, error, reason, "request failed");
        } else {
            tracing::debug!(request_id, caller, %method, path, status, us, error, "request");
        }
    }

    /// The caller went away before the answer.
    fn hung_up(self) {
        self.app.metrics.count(&self.method, self.path(), self.started.elapsed(), Some("hung_up"));
        let (request_id, method, path) = (self.shown_id(), &self.method, self.path());
        tracing::debug!(request_id, %method, path, "the caller hung up");
    }

    fn path(&self) -> &str {
        self.path.as_ref().map_or("(none)", MatchedPath::as_str)
    }

    fn shown_id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }
}

/// The caller's id if it is one that can stand in a log, otherwise a new one.
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

/// A keyed hash of a count: no two requests of all servers have the same, it says nothing about how many there were, and it takes no
/// system call.
fn new_id() -> HeaderValue {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = Uuid::from_u64_pair(KEY.hash_one((count, 0_u8)), KEY.hash_one((count, 1_u8)));
    let mut text = Uuid::encode_buffer();
    HeaderValue::from_str(id.as_simple().encode_lower(&mut text)).expect("hex digits are a header's value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Doors;
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
        let app = App::new(store, Doors::open(), Default::default());
        let never = tower::service_fn(|_: Request| std::future::pending::<Result<Response, Infallible>>());
        drop(Observe(app.clone()).layer(never).call(Request::default()));
        let page = app.metrics.page(&app.store.stats());
        let line = "emberkeep_request_errors_total{method=\"GET\",path=\"(none)\",error=\"hung_up\"} 1";
        assert!(page.lines().any(|found| found == line), "{page}");
    }
}
