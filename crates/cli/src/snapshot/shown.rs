//! Snapshots and changes as text for people.

use comfy_table::{Table, presets};
use emberkeep::snapshot::{Changes, SnapshotInfo};
use std::fmt::Write;

/// A number of bytes.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (count as f64 / 1024.0, 0);
    if count < 1024 {
        return format!("{count} B");
    }
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A time in UTC.
pub(super) fn time(ms: i64) -> String {
    let (days, seconds) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1_000);
    let (year, month, day) = civil(days);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// Year, month and day of a number of days since 1970, by eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + next, month, day)
}

/// One line for each snapshot.
pub(super) fn table(snapshots: &[SnapshotInfo]) -> String {
    let mut table = Table::new();
    let header = ["id", "name", "partition", "created (UTC)", "generation", "tick", "keys", "size"];
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for info in snapshots {
        table.add_row([
            info.id.to_string(),
            info.name.clone(),
            info.partition.clone(),
            time(info.created_at),
            info.generation.to_string(),
            info.tick.map(|tick| tick.to_string()).unwrap_or_default(),
            info.keys.to_string(),
            bytes(info.bytes),
        ]);
    }
    format!("{table}\n")
}

/// All that is known of a snapshot.
pub(super) fn details(info: &SnapshotInfo) -> String {
    let mut text = String::new();
    let moment = if info.one_moment { "one moment" } else { "key by key" };
    let _ = writeln!(text, "id          {}\nname        {}", info.id, info.name);
    let _ = writeln!(
        text,
        "partition   {}\ncreated     {} UTC ({moment})",
        info.partition,
        time(info.created_at)
    );
    let _ = writeln!(text, "generation  {}", info.generation);
    if let Some(tick) = info.tick {
        let _ = writeln!(text, "tick        {tick}");
    }
    let _ = writeln!(
        text,
        "keys        {}\nsize        {}\nchecksum    {}",
        info.keys,
        bytes(info.bytes),
        info.checksum
    );
    for (family, keys) in &info.families {
        let _ = writeln!(text, "  {family}: {keys}");
    }
    text
}

/// What differs, with some of the keys.
pub(super) fn changes(changes: &Changes) -> String {
    let Changes { added, changed, removed, unchanged, expired, examples } = changes;
    let mut text = format!(
        "{added} added, {changed} changed, {removed} removed, {unchanged} unchanged, {expired} expired\n"
    );
    for (change, name) in examples {
        let _ = writeln!(text, "  {} {name}", format!("{change:?}").to_lowercase());
    }
    let more = added + changed + removed - examples.len() as u64;
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_read_well() {
        assert_eq!(time(0), "1970-01-01 00:00:00");
        assert_eq!(time(951_827_696_000), "2000-02-29 12:34:56");
        assert_eq!(time(1_798_761_599_999), "2026-12-31 23:59:59");
        assert_eq!([1_023, 1_024, 5 << 20].map(bytes), ["1023 B", "1.0 KiB", "5.0 MiB"]);
    }
}
