//! Sizes on the command line: `512MiB`, `2GB`, `50%` of the memory that the process may use, `none`.

use std::fs;
use std::str::FromStr;

/// What a size looks like, for errors.
pub(crate) const EXPECTED: &str = "a size such as 512MiB, 2GiB or 50%, or none";

/// Units, and how many bytes they are.
const UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// How much memory keys and values may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    None,
    Bytes(usize),
    /// Of the memory that the process may use.
    Percent(u8),
}

impl Size {
    /// The size in bytes; `None` = there is no bound, or the memory is not known.
    pub(crate) fn bytes(self) -> Option<usize> {
        match self {
            Size::None => None,
            Size::Bytes(bytes) => Some(bytes),
            Size::Percent(percent) => {
                let memory = memory_bytes(|path| fs::read_to_string(path).ok())?;
                usize::try_from(memory / 100 * u64::from(percent)).ok()
            }
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("expected {EXPECTED}");
        if text == "none" {
            return Ok(Size::None);
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        if unit == "%" {
            let percent = u8::try_from(number).ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Size::Percent).ok_or_else(wrong);
        }
        let (_, bytes) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
        let bytes = number.checked_mul(*bytes).and_then(|bytes| usize::try_from(bytes).ok());
        bytes.filter(|bytes| *bytes > 0).map(Size::Bytes).ok_or_else(wrong)
    }
}

/// The machine's memory, or that of the control group if it is less. `None` where the system does not tell.
fn memory_bytes(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = groups.iter().find_map(|path| read(path)?.trim().parse::<u64>().ok());
    machine.into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_a_share() {
        for (text, size) in [
            ("none", Size::None),
            ("512MiB", Size::Bytes(512 << 20)),
            ("512mib", Size::Bytes(512 << 20)),
            ("2GB", Size::Bytes(2_000_000_000)),
            ("1024B", Size::Bytes(1024)),
            ("50%", Size::Percent(50)),
        ] {
            assert_eq!(text.parse(), Ok(size), "{text}");
        }
        for text in ["", "512", "MiB", "0B", "-1B", "1.5GiB", "0%", "101%", "999999999TiB", "12 MiB", "lots"]
        {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_memory_is_that_of_the_control_group_if_it_is_less() {
        let memory = |group: Option<&'static str>| {
            memory_bytes(move |path| match path {
                "/proc/meminfo" => Some("MemTotal:        2048 kB\nMemFree: 1 kB\n".to_owned()),
                "/sys/fs/cgroup/memory.max" => group.map(str::to_owned),
                _ => None,
            })
        };
        assert_eq!(memory(None), Some(2 << 20));
        assert_eq!(memory(Some("max\n")), Some(2 << 20));
        assert_eq!(memory(Some("1048576\n")), Some(1 << 20));
        assert_eq!(memory_bytes(|_| None), None);
    }
}
