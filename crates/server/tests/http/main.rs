//! The server as a caller meets it: over real connections to a free loopback port.

mod auth;
mod darkages;
mod darkages_history;
mod darkages_stream;
mod docs_page;
mod document;
mod fuzz;
mod galaxy;
mod home;
mod input;
mod limits;
mod monsters;
mod origins;
mod proxies;
mod reactors;
mod request_log;
mod room_codes;
mod rooms;
mod shutdown;
mod support;
mod timeouts;
