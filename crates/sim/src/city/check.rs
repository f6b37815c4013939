//! What history says, beside what calls reported.

use super::history::{CityHistory, LOGS};
use super::ledger::{CityLedger, PlayerBook};
use crate::city_plan::City;
use crate::view::group_digits;
use anyhow::{Context, bail};
use emberkeep::games::darkages::archive::{Archive, PageRequest, TimeRange};
use emberkeep::games::darkages::boards::{
    BOARD_APPLIED, BOARD_BEGUN, BOARD_CHANGED, BOARD_FED, BOARD_NAMES, BOARD_POSITION, BOARDS_DRAINER,
    BOARDS_LOG, Boards, CATEGORIES, DAY_ORDER, DAY_PLAYERS, DAY_SOURCES, DAY_STORED, EVER_ORDER,
    EVER_PLAYERS, EVER_SOURCES, Leaderboards, Period,
};
use emberkeep::games::darkages::history::{BoardCategory, CombatEvent, PlayerSession};
use emberkeep::games::darkages::{
    ADMITTED, AUDIT_LOG, COMBAT_LOG, DEPARTED, DIRECTORY, DRAINER, Entity, EntityId, HANDOFFS_RECEIVED,
    HANDOFFS_STATE, LAST_LOGIN, PLAYS_LOG, Shard,
};
use emberkeep::history::limits::PAGE_ROWS_MAX;
use emberkeep::history::outbox::Consumers;
use emberkeep::history::{Cursor, Page, Pending};
use emberkeep::hot::Tx;
use emberkeep::schema::{Day, Name, Timestamp};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long history may take to catch up.
const DRAINED_WITHIN: Duration = Duration::from_secs(60);
const HOUR_MS: i64 = 3_600_000;

/// What was checked, and what did not hold.
pub(crate) struct CityVerdict {
    pub(crate) checked: Vec<String>,
    pub(crate) wrong: Vec<String>,
}

/// What history has of a player.
struct PlayerRecord {
    book: PlayerBook,
    /// The same by its play sessions.
    played: PlayerBook,
}

/// Compares history with the ledger, once all players have logged out and all logs are drained.
pub(crate) async fn judge(
    city: &City,
    CityHistory { history, consumers, .. }: &CityHistory,
    ledger: &CityLedger,
) -> anyhow::Result<CityVerdict> {
    drain(consumers).await?;
    let (archive, mut wrong) = (Archive::new(history.clone()), Vec::new());
    for player in city.plan.all_players() {
        let recorded = read(&archive, player).await.context("cannot read history")?;
        wrong.extend(differences(player, &ledger.of(player), &recorded));
        wrong.extend(board_difference(city, player, &ledger.of(player)).await?);
        if city.game.session(EntityId(player)).await?.is_some() {
            wrong.push(format!("player {player} of the city has logged out and has a session"));
        }
    }
    for zone in city.plan.all_zones() {
        let members = city.game.members(zone).await?.living.len();
        if members > 0 {
            wrong.push(format!("zone {zone} of the city has {members} players, and all have logged out"));
        }
        let arrivals = city.game.arrivals(zone).await?.len();
        if arrivals > 0 {
            wrong.push(format!(
                "{arrivals} hand-offs wait in zone {zone} of the city, and all players have arrived"
            ));
        }
    }
    let dead_letters: u64 = consumers.stats().iter().map(|stats| stats.dead_letters).sum();
    if dead_letters > 0 {
        wrong.push(format!("{dead_letters} events of the city became dead letters"));
    }
    let sums = ledger.sums();
    let (hits, kills) = (group_digits(sums.hits), group_digits(sums.kills as u64));
    let checked = vec![
        format!(
            "the city's events = hits: {hits} hits, {kills} kills, totals = sum of events, boards = totals: {} damage",
            group_digits(sums.damage_dealt as u64)
        ),
        format!(
            "each play session once: {}; no player in two zones: {} moves, {} hand-offs, {} inspections",
            group_digits(sums.sessions),
            group_digits(ledger.moves),
            group_digits(ledger.hand_offs),
            group_digits(ledger.inspections)
        ),
    ];
    Ok(CityVerdict { checked, wrong })
}

/// The boards of all time have what the totals have.
async fn board_difference(city: &City, player: i64, book: &PlayerBook) -> anyhow::Result<Option<String>> {
    let boards = Boards::new(city.game.scope().store());
    for (category, expected) in
        [(BoardCategory::Kills, book.kills), (BoardCategory::Damage, book.damage_dealt)]
    {
        let row = boards.standing(category, Period::AllTime, player).await?;
        let score = row.map_or(0, |row| row.score);
        if score != expected {
            let board = category.text();
            return Ok(Some(format!(
                "player {player} of the city: the board of {board} has {score}, totals {expected}"
            )));
        }
    }
    Ok(None)
}

/// Delivers all that waits. Another process may have the lease of a log for a moment.
async fn drain(consumers: &Consumers) -> anyhow::Result<()> {
    let (begun, mut passes) = (Instant::now(), 0);
    loop {
        let drained = consumers.drain_once().await;
        let is_done = drained.iter().all(|drained| matches!(drained, Ok(Some(_))));
        let is_empty = is_done && consumers.stats().iter().all(|stats| stats.lag_entries == 0);
        // The boards are fed at the begin of a pass, and begun by the first one if the game was short.
        passes = if is_empty { passes + 1 } else { 0 };
        if passes == 2 {
            return Ok(());
        }
        if begun.elapsed() > DRAINED_WITHIN {
            let errors: Vec<String> =
                drained.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
            bail!("the city's events are not in history after {DRAINED_WITHIN:?}: {}", errors.join(", "));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn read(archive: &Archive, player: i64) -> anyhow::Result<PlayerRecord> {
    let now = archive.history().store().now();
    let range = TimeRange::new(Timestamp(now - 24 * HOUR_MS), Timestamp(now + HOUR_MS))?;
    let events: Vec<CombatEvent> = all(|page| {
        Box::pin(async move { Ok(archive.combat_events_by_attacker(player, range, page).await?) })
    })
    .await?;
    let stats = archive.player_stats(player).await?.map(|totals| totals.sums).unwrap_or_default();
    let sessions: Vec<PlayerSession> =
        all(|page| Box::pin(async move { Ok(archive.play_sessions(player, None, page).await?) })).await?;
    let ids: BTreeSet<_> = sessions.iter().map(|session| session.session_id).collect();
    let damage: i64 = events.iter().map(|event| i64::from(event.damage)).sum();
    if damage != stats.total_damage_dealt {
        bail!("player {player}: events have {damage} damage, totals {}", stats.total_damage_dealt);
    }
    let book = PlayerBook {
        hits: events.len() as u64,
        damage_dealt: stats.total_damage_dealt,
        damage_taken: stats.total_damage_taken,
        kills: stats.total_kills,
        deaths: stats.total_deaths,
        sessions: ids.len() as u64,
    };
    let sum = |number: fn(&PlayerSession) -> i64| sessions.iter().map(number).sum();
    let played = PlayerBook {
        damage_dealt: sum(|session| session.damage_dealt),
        damage_taken: sum(|session| session.damage_taken),
        kills: sum(|session| i64::from(session.kills)),
        deaths: sum(|session| i64::from(session.deaths)),
        sessions: sessions.len() as u64,
        ..book
    };
    Ok(PlayerRecord { book, played })
}

/// All rows of a list.
async fn all<'a, T>(
    list: impl Fn(PageRequest) -> Pending<'a, anyhow::Result<Page<T>>>,
) -> anyhow::Result<Vec<T>> {
    let (mut rows, mut after): (Vec<T>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let page = list(PageRequest { rows_max: PAGE_ROWS_MAX, after, ..PageRequest::default() }).await?;
        after = page.next.clone();
        rows.extend(page.into_rows()?);
        if after.is_none() {
            return Ok(rows);
        }
    }
}

fn differences(player: i64, reported: &PlayerBook, recorded: &PlayerRecord) -> Vec<String> {
    let compare = |source: &str, found: &PlayerBook| {
        (found != reported).then(|| {
            format!("player {player} of the city: calls reported {reported:?}, {source} has {found:?}")
        })
    };
    let played = compare("the sum of its play sessions", &recorded.played);
    compare("history", &recorded.book).into_iter().chain(played).collect()
}

/// Removes what outlives the players: when they logged in last, where they were, and the logs with their leases if the city
/// was alone.
pub(crate) async fn clean_up(city: &City, history: &CityHistory) -> anyhow::Result<()> {
    let (is_alone, store) = (history.is_alone, city.game.scope().store().clone());
    for scope in city.game.scopes() {
        let (players, shards) = (city.plan.all_players(), city.plan.shards().all());
        let remove = move |tx: &mut Tx<'_, Shard>| {
            remove_traces(tx, &players)?;
            if is_alone { remove_logs(tx, &shards) } else { Ok(()) }
        };
        scope.transact(remove).await?;
    }
    for player in city.plan.all_players() {
        store.scope(Entity(EntityId(player))).del(&DIRECTORY.key()).await?;
    }
    if is_alone { remove_boards(&Boards::new(&store)).await } else { Ok(()) }
}

fn remove_traces(tx: &mut Tx<'_, Shard>, players: &[i64]) -> emberkeep::hot::Result<()> {
    for player in players {
        tx.del(&LAST_LOGIN.key(EntityId(*player)))?;
        tx.del(&ADMITTED.key(EntityId(*player)))?;
        tx.del(&DEPARTED.key(EntityId(*player)))?;
    }
    Ok(())
}

fn remove_logs(tx: &mut Tx<'_, Shard>, shards: &[Shard]) -> emberkeep::hot::Result<()> {
    tx.del(&HANDOFFS_STATE.key())?;
    for shard in shards {
        tx.del(&HANDOFFS_RECEIVED.key(shard.0))?;
    }
    tx.del(&COMBAT_LOG.key())?;
    tx.del(&PLAYS_LOG.key())?;
    tx.del(&AUDIT_LOG.key())?;
    for log in LOGS {
        tx.del(&DRAINER.key(Name::new(log).expect("a word of letters")))?;
    }
    Ok(())
}

/// Removes the leaderboards of today, yesterday and all time, with everything that belongs to them.
async fn remove_boards(boards: &Boards) -> anyhow::Result<()> {
    let Period::Day(today) = boards.today().await? else { return Ok(()) };
    let yesterday = Day::from_number(today.number() - 1).unwrap_or(today);
    let remove = move |tx: &mut Tx<'_, Leaderboards>| {
        for category in CATEGORIES.map(|category| Name::new(category.text()).expect("a word of letters")) {
            for day in [today, yesterday].map(|day| Name::new(day.to_string()).expect("digits and dashes")) {
                tx.del(&DAY_ORDER.key(&category, &day))?;
                tx.del(&DAY_PLAYERS.key(&category, &day))?;
                tx.del(&DAY_SOURCES.key(&category, &day))?;
                tx.del(&DAY_STORED.key(&category, &day))?;
            }
            tx.del(&EVER_ORDER.key(&category))?;
            tx.del(&EVER_PLAYERS.key(&category))?;
            tx.del(&EVER_SOURCES.key(&category))?;
        }
        tx.del(&BOARD_NAMES.key())?;
        tx.del(&BOARD_CHANGED.key())?;
        tx.del(&BOARD_BEGUN.key())?;
        tx.del(&BOARD_POSITION.key())?;
        tx.del(&BOARD_FED.key())?;
        tx.del(&BOARD_APPLIED.key())?;
        tx.del(&BOARDS_LOG.key())?;
        tx.del(&BOARDS_DRAINER.key())
    };
    Ok(boards.scope().transact(remove).await?)
}
