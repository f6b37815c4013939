//! Automation rules of ships.

use super::entities::{Kind as _, ShipKind};
use super::ships::owned;
use super::{ApiGateway, GalaxyState, TickEngine, set_fields};
use crate::galaxy::error::{Error, Result};
use crate::galaxy::limits::{PRIORITY_MAX, RULES_PER_SHIP_MAX};
use crate::galaxy::model::{Fields, Pairs, PlayerId, RuleId, RuleMode, ShipId, check_name};
use crate::galaxy::rules::{Trigger, check_actions};
use crate::galaxy::schema::{Galaxy, RULE, RULES, SHIP};
use crate::galaxy::services::DISABLE_RULE;
use crate::galaxy::tick::running;
use emberkeep_hot::engine::Pending;
use emberkeep_hot::store::Member;
use emberkeep_hot::{self as hot, ReadTx, Tx};
use serde::Serialize;

const RULE_ID: &str = "rule_id";
const SHIP_ID: &str = "ship_id";
const NAME: &str = "name";
const ENABLED: &str = "enabled";
const MODE: &str = "mode";
const PRIORITY: &str = "priority";
const TRIGGER: &str = "trigger_json";
const ACTIONS: &str = "actions_json";
const CREATED_AT: &str = "created_at";

/// An automation rule. Trigger and actions are JSON as they were written; [`Trigger::parse`] reads the former.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Its id, unique in the ship.
    pub rule_id: String,
    /// The ship.
    pub ship_id: ShipId,
    /// At most 64 bytes.
    pub name: String,
    /// Whether it is evaluated.
    pub enabled: bool,
    /// How often it acts.
    pub mode: RuleMode,
    /// 0 to 99; lower ones come first.
    pub priority: u8,
    /// When it acts.
    pub trigger_json: String,
    /// What it does.
    pub actions_json: String,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
}

/// A rule that is to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// Its id, unique in the ship, without `:`, `{` and `}`. `rules` is refused.
    pub rule_id: String,
    /// At most 64 bytes.
    pub name: String,
    /// Whether it is evaluated.
    pub enabled: bool,
    /// How often it acts.
    pub mode: RuleMode,
    /// 0 to 99; lower ones come first.
    pub priority: u8,
    /// `{"conditions": [{"field", "op", "value", "args"?}], "logic": "AND"}` with 1 to 5 conditions.
    pub trigger_json: String,
    /// A list of 1 to 5 objects.
    pub actions_json: String,
}

/// New values of a rule. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleChange {
    /// At most 64 bytes.
    pub name: Option<String>,
    /// Whether it is evaluated.
    pub enabled: Option<bool>,
    /// How often it acts.
    pub mode: Option<RuleMode>,
    /// 0 to 99.
    pub priority: Option<u8>,
    /// As in [`NewRule`].
    pub trigger_json: Option<String>,
    /// As in [`NewRule`].
    pub actions_json: Option<String>,
}

impl RuleChange {
    /// Refuses values that no rule can have.
    fn check(&self) -> Result<()> {
        self.name.as_ref().map_or(Ok(()), |name| check_name("rule name", name))?;
        if let Some(priority) = self.priority.filter(|priority| *priority > PRIORITY_MAX) {
            return Err(Error::invalid("priority", format!("{priority}, expected 0 to {PRIORITY_MAX}")));
        }
        self.trigger_json.as_ref().map_or(Ok(()), |json| Trigger::parse(json).map(drop))?;
        self.actions_json.as_ref().map_or(Ok(()), |json| check_actions(json))
    }

    fn pairs(&self) -> Pairs {
        let texts = [
            (NAME, self.name.clone()),
            (ENABLED, self.enabled.map(|enabled| enabled.to_string())),
            (MODE, self.mode.map(|mode| mode.to_string())),
            (PRIORITY, self.priority.map(|priority| priority.to_string())),
            (TRIGGER, self.trigger_json.clone()),
            (ACTIONS, self.actions_json.clone()),
        ];
        texts.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text?))).collect()
    }
}

impl NewRule {
    fn id(&self) -> Result<RuleId> {
        rule_id(&self.rule_id)
    }

    fn values(&self) -> RuleChange {
        RuleChange {
            name: Some(self.name.clone()),
            enabled: Some(self.enabled),
            mode: Some(self.mode),
            priority: Some(self.priority),
            trigger_json: Some(self.trigger_json.clone()),
            actions_json: Some(self.actions_json.clone()),
        }
    }
}

fn rule_id(text: &str) -> Result<RuleId> {
    let expected = "expected 1 to 256 bytes without ':', '{' and '}', and not \"rules\"";
    RuleId::new(text).ok_or_else(|| Error::invalid("rule id", format!("{text:?}, {expected}")))
}

impl ApiGateway {
    /// Creates a rule for a ship of the player.
    pub fn create_rule(&self, player: PlayerId, ship: ShipId, rule: NewRule) -> Pending<'_, Result<RuleId>> {
        Box::pin(async move {
            let (id, values) = (rule.id()?, rule.values());
            values.check()?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                running(tx)?;
                owned(tx, ship, player)?;
                create(tx, ship, &id, &values)?;
                Ok(id.clone())
            };
            self.scope().named("galaxy.create_rule").transact::<_, Error, _>(transaction).await
        })
    }

    /// Changes a rule of a ship of the player.
    pub fn update_rule<'a>(
        &'a self,
        player: PlayerId,
        ship: ShipId,
        rule: &'a str,
        change: RuleChange,
    ) -> Pending<'a, Result<()>> {
        Box::pin(async move {
            let (id, pairs) = (rule_id(rule)?, change.pairs());
            change.check()?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                owned(tx, ship, player)?;
                let key = RULE.key(ship, &id);
                if !tx.exists(&key)? {
                    return Err(Error::not_found("rule", &id));
                }
                Ok(set_fields(tx, &key, &pairs)?)
            };
            self.scope().named("galaxy.update_rule").transact::<_, Error, _>(transaction).await
        })
    }

    /// Deletes a rule of a ship of the player. `false` = there is none.
    pub fn delete_rule<'a>(
        &'a self,
        player: PlayerId,
        ship: ShipId,
        rule: &'a str,
    ) -> Pending<'a, Result<bool>> {
        Box::pin(async move {
            let id = rule_id(rule)?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                owned(tx, ship, player)?;
                let key = RULE.key(ship, &id);
                let exists = tx.exists(&key)?;
                tx.del(&key)?;
                tx.srem(&RULES.key(ship), &id)?;
                Ok(exists)
            };
            self.scope().named("galaxy.delete_rule").transact::<_, Error, _>(transaction).await
        })
    }
}

impl TickEngine {
    /// Enables or disables a rule, such as one that acted once. `false` = there is no such rule.
    pub fn enable_rule<'a>(
        &'a self,
        ship: ShipId,
        rule: &'a str,
        enabled: bool,
    ) -> Pending<'a, Result<bool>> {
        Box::pin(async move {
            let id = rule_id(rule)?;
            let transaction = move |tx: &mut Tx<'_, Galaxy>| {
                let key = RULE.key(ship, &id);
                if !tx.exists(&key)? {
                    return Ok(false);
                }
                tx.hset(&key, &ENABLED.to_owned(), &enabled.to_string())?;
                Ok(true)
            };
            let scope = self.scope().for_operation(&DISABLE_RULE).named("galaxy.enable_rule");
            Ok(scope.transact::<_, hot::Error, _>(transaction).await?)
        })
    }
}

impl GalaxyState {
    /// The rules of a ship, by priority and id. Stale entries of their index are left out, and so are rules that cannot be
    /// read.
    pub fn rules(&self, ship: ShipId) -> Pending<'_, Result<Vec<Rule>>> {
        Box::pin(async move {
            let transaction = move |tx: &mut Tx<'_, Galaxy>| list(tx, ship);
            Ok(self.scope().named("galaxy.rules").transact::<_, hot::Error, _>(transaction).await?)
        })
    }
}

fn create(tx: &mut Tx<'_, Galaxy>, ship: ShipId, id: &RuleId, values: &RuleChange) -> Result<()> {
    let (key, index) = (RULE.key(ship, id), RULES.key(ship));
    let (exists, count) = tx.together(|tx| (tx.exists(&key), tx.scard(&index)))?;
    if exists {
        return Err(Error::RuleExists { ship, rule: id.clone() });
    }
    if count >= RULES_PER_SHIP_MAX {
        return Err(Error::TooMany { what: "rules of the ship", max: RULES_PER_SHIP_MAX });
    }
    let created_at = tx.now();
    let mut pairs = values.pairs();
    for (field, text) in
        [(RULE_ID, id.to_string()), (SHIP_ID, ship.to_string()), (CREATED_AT, created_at.to_string())]
    {
        pairs.push((field.to_owned(), text));
    }
    set_fields(tx, &key, &pairs)?;
    Ok(tx.sadd(&index, id)?)
}

fn list(tx: &mut Tx<'_, Galaxy>, ship: ShipId) -> hot::Result<Vec<Rule>> {
    let index = RULES.key(ship);
    let prunes = tx.may_write(&index);
    let mut rules = Vec::new();
    for entry in tx.smembers_lossy(&index)? {
        match entry {
            Member::Known(id) => match read(tx, ship, &id) {
                Ok(Some(rule)) => rules.push(rule),
                Ok(None) if prunes => tx.srem(&index, &id)?,
                Ok(None) => {}
                Err(error) if error.is_corrupt() => {}
                Err(error) => return Err(error),
            },
            Member::External(bytes) if prunes => tx.srem_raw(&index, bytes)?,
            Member::External(_) => {}
        }
    }
    rules.sort_by(|one, other| (one.priority, &one.rule_id).cmp(&(other.priority, &other.rule_id)));
    Ok(rules)
}

fn read(tx: &mut ReadTx<'_, Galaxy>, ship: ShipId, id: &RuleId) -> hot::Result<Option<Rule>> {
    let key = RULE.key(ship, id);
    let pairs = tx.hgetall(&key)?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let fields = Fields::new(hot::show(&tx.raw_name(&key)), &pairs);
    Ok(Some(Rule {
        rule_id: id.to_string(),
        ship_id: ship,
        name: fields.text_or(NAME, ""),
        enabled: fields.flag(ENABLED, true)?,
        mode: fields.parsed(MODE, "a rule mode", RuleMode::parse)?.unwrap_or_default(),
        priority: fields.parsed(PRIORITY, "0 to 99", |text| text.parse().ok())?.unwrap_or(0),
        trigger_json: fields.text_or(TRIGGER, ""),
        actions_json: fields.text_or(ACTIONS, ""),
        created_at: fields.integer(CREATED_AT, 0)?,
    }))
}

/// Refuses a ship that does not exist.
pub(super) fn existing_ship(tx: &mut ReadTx<'_, Galaxy>, ship: ShipId) -> Result<()> {
    match tx.exists(&SHIP.key(ship))? {
        true => Ok(()),
        false => Err(Error::not_found(ShipKind::WHAT, ship)),
    }
}
