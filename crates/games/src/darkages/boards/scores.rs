//! What events add to boards: pure functions.

use super::super::archive::recorder::{HitRecord, Record, StatsDelta};
use super::super::events::PlayEnd;
use super::super::history::BoardCategory;
use super::model::Score;

/// What a hit adds: its damage, and the kill. Creatures have no scores.
pub(crate) fn of_hit(hit: &HitRecord, out: &mut Vec<Score>) {
    if !hit.attacker_is_player {
        return;
    }
    let amounts = [(BoardCategory::Kills, hit.is_kill.into()), (BoardCategory::Damage, hit.damage.into())];
    push(hit.attacker_id, hit.attacker_name.as_deref(), hit.timestamp, amounts, out);
}

/// What a play session adds when it has ended.
pub(crate) fn of_play(end: &PlayEnd, out: &mut Vec<Score>) {
    let name = Some(end.play.player_name.as_str()).filter(|name| !name.is_empty());
    let played_ms = end.ended_at.saturating_sub(end.play.login_time).max(0);
    push(end.play.player_id, name, end.ended_at.max(0), [(BoardCategory::Playtime, played_ms)], out);
}

/// What a recorded event adds.
pub(crate) fn of_record(record: &Record, out: &mut Vec<Score>) {
    let (player_id, at, delta) = match record {
        Record::Hit(hit) => return of_hit(hit, out),
        Record::Stats(player_id, at, delta) => (*player_id, *at, *delta),
    };
    let StatsDelta { kills, damage_dealt, wins, playtime_ms, .. } = delta;
    let amounts = [
        (BoardCategory::Kills, kills),
        (BoardCategory::Damage, damage_dealt),
        (BoardCategory::Wins, wins),
        (BoardCategory::Playtime, playtime_ms),
    ];
    push(player_id, None, at, amounts, out);
}

fn push(
    player_id: i64,
    player_name: Option<&str>,
    at: i64,
    amounts: impl IntoIterator<Item = (BoardCategory, i64)>,
    out: &mut Vec<Score>,
) {
    for (category, amount) in amounts.into_iter().filter(|(_, amount)| *amount != 0) {
        out.push(Score { player_id, player_name: player_name.map(str::to_owned), category, amount, at });
    }
}
