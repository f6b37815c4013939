//! The log: lines for people, or one JSON object per line for machines. Both go to standard error.

use crate::settings::LogForm;
use tracing::Level;

/// Logs from here on.
pub(super) fn begin(form: LogForm, level: Level) {
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match form {
        LogForm::Text => lines.with_target(false).init(),
        LogForm::Json => lines.json().flatten_event(true).init(),
    }
}
