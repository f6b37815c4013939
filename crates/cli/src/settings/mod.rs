//! The server's settings: from flags, `EMBERKEEP_*` variables and a file, in that order.

mod declared;
mod show;
mod source;
mod typed;
mod value;
mod variables;

pub(crate) use declared::{Flags, with_variables};
pub(crate) use source::meant;
pub(crate) use typed::{LogForm, Settings};

use source::InForce;
use std::path::PathBuf;

/// Where settings are given.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Sources {
    /// File of settings in TOML; its keys are the names of the flags without --
    #[arg(long, value_name = "FILE", env = "EMBERKEEP_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

impl Sources {
    /// The settings in force, as texts.
    fn in_force(&self) -> anyhow::Result<InForce> {
        let variables = variables::from_variables(std::env::vars_os())?;
        let file = match &self.config {
            Some(path) => Some((path.clone(), source::from_file(path)?)),
            None => None,
        };
        let found = source::in_force(self.flags.given(), variables, file);
        source::refuse_empty(&found)?;
        Ok(found)
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        Settings::read(&self.in_force()?)
    }

    /// The settings in force as a file that could be given back, and whether a server could run with them.
    pub(crate) fn show(&self) -> anyhow::Result<(String, anyhow::Result<()>)> {
        let found = self.in_force()?;
        let checked = Settings::read(&found).and_then(|settings| settings.check());
        Ok((show::show(&found), checked))
    }
}
