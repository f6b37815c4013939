//! A fault proxy in its own process: `fault-proxy HOST:PORT`, then orders on standard input.
//!
//! It prints its own address first and ends when standard input does. See `serve_proxy`.

use std::io::{stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(target) = std::env::args().nth(1) else {
        eprintln!("usage: fault-proxy HOST:PORT");
        return ExitCode::from(2);
    };
    match emberkeep_testkit::serve_proxy(&target, stdin().lock(), stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fault-proxy: {e}");
            ExitCode::FAILURE
        }
    }
}
