//! Totals by the driver alone: the source is read, written with the new sum, and the sum over all sources is shown.

use super::IN_FLIGHT_MAX;
use super::raw::{Raw, prepare};
use anyhow::{Result, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use scylla::client::session::Session;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimestamp;
use std::collections::BTreeMap;

const SUMS: &str = "total_kills, total_deaths, total_assists, total_damage_dealt, total_damage_taken, total_damage_blocked, total_healing_done, total_playtime_minutes, total_matches, total_wins";

/// Source, position, time, sums.
type SourceRow = (String, i64, Option<CqlTimestamp>, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);

/// The prepared statements of a program without emberkeep.
pub(super) struct TotalsStatements {
    is_closed: PreparedStatement,
    source: PreparedStatement,
    insert_source: PreparedStatement,
    sources: PreparedStatement,
    insert: PreparedStatement,
}

impl TotalsStatements {
    pub(super) async fn prepare(session: &Session, keyspace: &str) -> Result<TotalsStatements> {
        let by_source = format!("{keyspace}.ember_stats_by_source");
        let select =
            format!("SELECT source, position, last_updated, {SUMS} FROM {by_source} WHERE player_id = ?");
        let marks = ["?"; 10].join(", ");
        let closed = format!(
            "SELECT totals, source, closed_at FROM {keyspace}.ember_closed_sources WHERE totals = ? AND source = ?"
        );
        let insert_source = format!(
            "INSERT INTO {by_source} (player_id, source, position, {SUMS}, last_updated) VALUES (?, ?, ?, {marks}, ?) USING TIMESTAMP ?"
        );
        let insert = format!(
            "INSERT INTO {keyspace}.player_stats (player_id, {SUMS}, last_updated) VALUES (?, {marks}, ?) USING TIMESTAMP ?"
        );
        Ok(TotalsStatements {
            is_closed: prepare(session, &closed).await?,
            source: prepare(session, &format!("{select} AND source = ?")).await?,
            insert_source: prepare(session, &insert_source).await?,
            sources: prepare(session, &select).await?,
            insert: prepare(session, &insert).await?,
        })
    }
}

impl Raw {
    /// Adds a kill for each player; the position of each is its place.
    pub(super) async fn fold(&self, source: &str, players: &[i64]) -> Result<()> {
        let closed = self.session.execute_unpaged(&self.totals.is_closed, ("player_stats", source)).await?;
        ensure!(closed.into_rows_result()?.rows_num() == 0, "the source is closed");
        let mut by_player: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (position, player) in (1..).zip(players) {
            by_player.entry(*player).or_default().push(position);
        }
        let read = |(player, positions): (i64, Vec<i64>)| async move {
            let row = self.source_rows(&self.totals.source, (player, source)).await?.pop();
            anyhow::Ok((player, positions, row))
        };
        let rows: Vec<_> =
            stream::iter(by_player).map(read).buffer_unordered(IN_FLIGHT_MAX).try_collect().await?;
        let write = |(player, positions, row): (i64, Vec<i64>, Option<SourceRow>)| async move {
            let (before, mut kills) = row.as_ref().map_or((0, 0), |row| (row.1, row.3));
            kills += positions.iter().filter(|position| **position > before).count() as i64;
            let position = positions.last().copied().unwrap_or(0).max(before);
            let time = CqlTimestamp(0);
            let values = (
                player, source, position, kills, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64,
                0_i64, time, position,
            );
            self.write(&self.totals.insert_source, values).await?;
            let sources = self.source_rows(&self.totals.sources, (player,)).await?;
            let (kills, position) =
                sources.iter().fold((0, 0), |(kills, position), row| (kills + row.3, position + row.1));
            let values = (
                player, kills, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, 0_i64, time, position,
            );
            self.write(&self.totals.insert, values).await
        };
        stream::iter(rows).map(write).buffer_unordered(IN_FLIGHT_MAX).try_collect::<()>().await
    }

    async fn source_rows(
        &self,
        statement: &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<Vec<SourceRow>> {
        let _place = self.in_flight.acquire().await?;
        let found = self.session.execute_unpaged(statement, values).await?.into_rows_result()?;
        Ok(found.rows::<SourceRow>()?.collect::<Result<_, _>>()?)
    }

    async fn write(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Result<()> {
        let _place = self.in_flight.acquire().await?;
        self.session.execute_unpaged(statement, values).await?;
        Ok(())
    }
}
