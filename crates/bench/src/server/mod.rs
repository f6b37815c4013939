//! The server's workloads: it runs in a process of its own, the clients in this one, all on the same cores.

mod claims;
mod damage;
mod http;
mod rooms;
mod server_process;
mod start;
mod votes;
mod watchers;
mod ws_client;

use super::suite::Workload;

/// All of them, in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "http-damage", run: damage::damage },
    Workload { name: "ws-votes", run: votes::votes },
    Workload { name: "ws-claims", run: claims::embedded },
    Workload { name: "ws-claims-redis", run: claims::redis },
    Workload { name: "ws-watchers", run: watchers::watchers },
    Workload { name: "start", run: start::start },
];
