//! Measurements and counts of tests, for the end of a whole run.
//!
//! The test harness captures what a passing test prints. A reported line is therefore also appended to a
//! file, if the environment names one: `./test` does, and shows it at the end.

use std::fs::File;
use std::io::Write;

/// The variable that names the file.
const FILE: &str = "EMBERKEEP_TEST_LINES";

/// Prints a line as `println!` does, and keeps it for the end of the whole run.
#[macro_export]
macro_rules! report {
    ($($words:tt)*) => {{
        let line = format!($($words)*);
        println!("{line}");
        $crate::keep_line(&line);
    }};
}

/// Appends a line to the file that the environment names; without one it does nothing.
pub fn keep_line(line: &str) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = File::options().create(true).append(true).open(path);
    // In one write: other test binaries append to the same file. A line that cannot be kept fails no test.
    let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}
