//! The workloads of history, on the embedded store beside SQLite doing the same work.

mod cql;
mod document;
mod events;
mod load;
mod outbox;
mod reads;
mod sqlite;
mod totals;

use crate::suite::Workload;

/// All of them, in the order in which they run.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "history-events", run: events::sustained },
    Workload { name: "history-events-latency", run: events::latency },
    Workload { name: "history-totals", run: totals::totals },
    Workload { name: "history-reads-range", run: reads::range },
    Workload { name: "history-reads-attacker", run: reads::by_attacker },
    Workload { name: "outbox-damage", run: outbox::embedded },
    Workload { name: "outbox-damage-redis", run: outbox::redis },
    Workload { name: "outbox-drain", run: outbox::drain },
    Workload { name: "cql", run: cql::cql },
    Workload { name: "document-hot", run: document::hot },
    Workload { name: "document-redis", run: document::redis },
    Workload { name: "document-history", run: document::history },
];
