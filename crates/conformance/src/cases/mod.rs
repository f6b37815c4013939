//! The cases, one file for each promise. Every public function here is listed in [`CASES`](crate::CASES).

pub mod batch_reads;
pub mod bounds;
pub mod concurrent_failures;
pub mod conservation;
pub mod corrupt;
pub mod deadline_before_commit;
pub mod expiry;
pub mod external_writers;
pub mod hash;
pub mod isolation;
pub mod linearizable_histories;
pub mod list;
pub mod log;
pub mod many_at_once;
pub mod messages;
pub mod model_comparison;
pub mod plain_reads;
pub mod races;
pub mod scans;
pub mod set;
pub mod set_pages;
pub mod sorted_set;
pub mod text;
pub mod transaction_contract;
pub mod types;
