//! A file system that is full after some hundred kilobytes, in memory. Mounting it needs root.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::unavailable::Unavailable;

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of this size at a path where nothing is yet.
    pub fn mount(path: PathBuf, kilobytes: u32) -> Result<SmallDisk, Unavailable> {
        let missing = |why: String| Unavailable::NotFound(format!("no file system can be mounted: {why}"));
        std::fs::create_dir(&path).map_err(|error| Unavailable::Failed(error.to_string()))?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size(kilobytes), "tmpfs"]).arg(&path);
        match command.output() {
            Ok(output) if output.status.success() => Ok(SmallDisk(path)),
            Ok(output) => Err(missing(String::from_utf8_lossy(&output.stderr).into_owned())),
            Err(error) => Err(missing(error.to_string())),
        }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it another size; what is on it stays.
    pub fn resize(&self, kilobytes: u32) {
        let options = format!("remount,{}", size(kilobytes));
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(status.is_ok_and(|status| status.success()), "{} is mounted", self.0.display());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that a failed test left behind may still be there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn size(kilobytes: u32) -> String {
    format!("size={kilobytes}k")
}
