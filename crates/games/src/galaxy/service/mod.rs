//! The operations.

mod notice;

pub use notice::{GatewayNotice, Socket};
