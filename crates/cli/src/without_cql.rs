//! `emberkeep schema cql`, `diff` and `apply` in a binary that was built without the feature `cql`: how to get one that has it.

use std::process::ExitCode;

/// Whatever the command would take.
#[derive(clap::Args, Debug)]
pub(crate) struct CqlArguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _ignored: Vec<String>,
}

pub(crate) type LiveArguments = CqlArguments;
pub(crate) type ApplyArguments = CqlArguments;

/// The error of every command that needs the feature.
pub(crate) fn print_script(_: &CqlArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!(crate::WITHOUT_CQL)
}

pub(crate) use print_script as diff;
pub(crate) use print_script as apply;
