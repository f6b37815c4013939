//! A JSON body of a response.
//!
//! `axum::Json` prints into `BytesMut`, whose small writes are calls: a monster of 600 bytes took 140 of them, a
//! tenth of the request.

use crate::error::ApiError;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Answers 200 with a value as JSON.
pub(crate) struct Answer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        respond(serde_json::to_vec(&self.0))
    }
}

/// Apart from [`Answer`], so that it is compiled once.
fn respond(body: serde_json::Result<Vec<u8>>) -> Response {
    match body {
        Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response(),
        Err(error) => {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer cannot be printed")
                .with_reason(error.to_string())
                .into_response()
        }
    }
}
