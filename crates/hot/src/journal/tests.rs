//! Incident reports: what was on the disk, what happened, what the next start found.

mod smoke;
