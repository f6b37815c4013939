//! The server as a caller meets it: over real connections to a free loopback port.

mod auth;
mod bounds;
mod docs_page;
mod document;
mod ending;
mod fuzz;
mod guesses;
mod input;
mod monsters;
mod observe;
mod pages;
mod reactors;
mod rooms;
mod support;
mod waits;
