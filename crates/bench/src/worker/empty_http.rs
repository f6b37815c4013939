//! An HTTP server that does nothing: the limit of whatever is server by the same library.

use crate::worker_processes::print_line;
use anyhow::{Context, Result};
use axum::{Router, routing::post};
use std::net::SocketAddr;

/// Says where it listens, and answers until its parent is gone.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        print_line(listener.local_addr()?)?;
        let service = Router::new().route("/", post(async || ()));
        let parent_is_gone = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
        tokio::select! {
            ended = async { axum::serve(listener, service).await } => ended.context("the server ended"),
            _ = parent_is_gone => Ok(()),
        }
    })
}
