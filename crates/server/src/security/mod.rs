//! Checks of where a request comes from: host, origin, proxies. They return plain values; `middleware`
//! answers.

pub(crate) mod client_ip;
pub(crate) mod cors;
pub(crate) mod host_check;
