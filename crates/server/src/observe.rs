//! Every request: an id, a place in the counters, a line in the log.

use crate::app::App;
use crate::limits::REQUEST_ID_CHARS_MAX;
use crate::problem::Told;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs a request and notes what became of it.
pub(crate) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers().get(REQUEST_ID));
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let path = path.as_ref().map_or("(none)", MatchedPath::as_str);
    let told = response.extensions().get::<Told>().map(|told| told.0);
    let took = started.elapsed();
    app.metrics.count(&method, path, took, told);
    let (status, us) = (response.status().as_u16(), took.as_micros() as u64);
    let shown = id.to_str().unwrap_or_default();
    if response.status().is_server_error() {
        tracing::error!(request_id = shown, %method, path, status, us, error = told, "request failed");
    } else {
        tracing::debug!(request_id = shown, %method, path, status, us, error = told, "request");
    }
    response.headers_mut().insert(REQUEST_ID, id);
    response
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

/// A process' own random start, and a count: no two requests of all servers have the same, and no system call.
fn new_id() -> HeaderValue {
    static START: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = Uuid::from_u64_pair(*START, COUNT.fetch_add(1, Ordering::Relaxed));
    let mut text = Uuid::encode_buffer();
    HeaderValue::from_str(id.as_simple().encode_lower(&mut text)).expect("hex digits are a header's value")
}
