//! The server as a caller meets it: over real connections to a free loopback port.

mod auth;
mod document;
mod ending;
mod input;
mod monsters;
mod observe;
mod reactors;
mod support;
