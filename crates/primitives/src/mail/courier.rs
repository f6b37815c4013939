//! The courier: hands letters over and removes them from their outbox.
//!
//! Budget of a call: about [`LETTERS_PER_TURN`] letters of one sender, and [`SENDERS_PER_TURN`] keys of one
//! page of a scan. A courier holds nothing between calls, so it can be dropped at any time; letters that it
//! handed over and did not remove are removed by the next one.

use super::{DeadLetter, Envelope, Mail, SealedLetter, partition_text};
use crate::encode::encoded;
use crate::limits::{
    DEAD_LETTERS_MAX, LETTERS_PER_PAGE, LETTERS_PER_TURN, REASON_BYTES_MAX, SENDERS_PER_TURN,
};
use bytes::Bytes;
use emberkeep_hot::command::{Read, Reply, Score, ScoreBound, Write, ZSlice};
use emberkeep_hot::engine::Cursor;
use emberkeep_hot::store::Member;
use emberkeep_hot::{Error, Result, Scope, Store, Tx};
use emberkeep_schema::{Codec, Family, Partition};
use std::collections::HashSet;
use std::sync::Arc;

/// A letter on its way to the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter<P, B> {
    /// The partition that sent it.
    pub from: P,
    /// The number of the letter among those of its sender.
    pub sequence: i64,
    /// What was sent, decoded.
    pub body: B,
}

/// The letter of a kind of mail.
pub type LetterOf<M> = Letter<<M as Mail>::From, <<M as Mail>::Codec as Codec>::Value>;

/// Why a receiver did not take a letter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeliveryError {
    /// The receiver will never take it: it becomes a dead letter. Its transaction wrote nothing.
    #[error("refused: {0}")]
    Refused(String),
    /// The store failed, or a value is corrupt. The letter waits.
    #[error(transparent)]
    Store(#[from] Error),
}

/// What a courier did.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery<P> {
    /// Letters that had their effect.
    pub delivered: usize,
    /// Letters that had their effect, or died, by an earlier or another courier, and were only removed.
    pub repeated: usize,
    /// Letters that became dead letters.
    pub refused: usize,
    /// Receivers whose letters wait, and why. Their later letters wait, too.
    pub waiting: Vec<WaitingReceiver<P>>,
    /// Entries of outboxes that are not letters, and outboxes that cannot be read: an external client wrote them.
    /// They stay.
    pub corrupt: Vec<Error>,
}

/// A receiver whose letters wait.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingReceiver<P> {
    /// The partition to which they are addressed.
    pub to: P,
    /// Its first letter that waits.
    pub sequence: i64,
    /// Why they wait: the error of the receiver's partition.
    pub error: Error,
}

/// A part of the work of [`deliver_all`].
#[derive(Debug, Clone, PartialEq)]
pub struct Round<P> {
    /// What the courier did.
    pub delivery: Delivery<P>,
    /// Where the next call continues; `None` after all senders.
    pub next: Option<Cursor>,
}

/// What became of one letter.
enum Outcome {
    Delivered,
    Repeated,
    Refused,
}

impl<P> Default for Delivery<P> {
    fn default() -> Self {
        Delivery { delivered: 0, repeated: 0, refused: 0, waiting: Vec::new(), corrupt: Vec::new() }
    }
}

impl<P> Delivery<P> {
    fn add(&mut self, other: Delivery<P>) {
        self.delivered += other.delivered;
        self.repeated += other.repeated;
        self.refused += other.refused;
        self.waiting.extend(other.waiting);
        self.corrupt.extend(other.corrupt);
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Delivered => self.delivered += 1,
            Outcome::Repeated => self.repeated += 1,
            Outcome::Refused => self.refused += 1,
        }
    }
}

/// Delivers the mail of every sender, one page of a scan of the outboxes in each call. Begin with `None` and
/// continue with [`Round::next`]. After a server restarts the cursor is refused: begin anew.
pub async fn deliver_all<M: Mail, H>(store: &Store, from: Option<Cursor>, receive: H) -> Result<Round<M::To>>
where
    H: Fn(&mut Tx<'_, M::To>, &LetterOf<M>) -> Result<(), DeliveryError> + Send + Sync + 'static,
{
    let (receive, mut delivery) = (Arc::new(receive), Delivery::default());
    let page = store.scan::<M::Outbox>(from, SENDERS_PER_TURN).await?;
    for (sender, _) in page.keys {
        let sender = sender.ok_or_else(nameless::<M>)?;
        match deliver::<M, H>(&store.scope(sender), &receive).await {
            Ok(of_sender) => delivery.add(of_sender),
            // One sender that cannot be read must not stop the mail of the others.
            Err(error) if error.is_corrupt() => delivery.corrupt.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok(Round { delivery, next: page.next })
}

fn nameless<M: Mail>() -> Error {
    let pattern = M::Outbox::DECLARATION.pattern;
    let problem =
        format!("{pattern} does not say whose it is; put the partition into it, or name the senders");
    Error::Invalid { what: "outbox", problem }
}

/// Delivers the oldest letters of one sender, about [`LETTERS_PER_TURN`].
///
/// `receive` is part of the body of the receiver's transaction, so it may run several times.
pub async fn deliver_from<M: Mail, H>(from: &Scope<M::From>, receive: H) -> Result<Delivery<M::To>>
where
    H: Fn(&mut Tx<'_, M::To>, &LetterOf<M>) -> Result<(), DeliveryError> + Send + Sync + 'static,
{
    deliver::<M, H>(from, &Arc::new(receive)).await
}

async fn deliver<M: Mail, H>(from: &Scope<M::From>, receive: &Arc<H>) -> Result<Delivery<M::To>>
where
    H: Fn(&mut Tx<'_, M::To>, &LetterOf<M>) -> Result<(), DeliveryError> + Send + Sync + 'static,
{
    let mut delivery = Delivery::default();
    let (mut blocked, mut after, mut left) = (HashSet::new(), ScoreBound::MIN, LETTERS_PER_TURN);
    // Letters of blocked receivers cost no budget: however many there are, those behind them are reached.
    while left > 0 {
        let page = page::<M>(from, after).await?;
        let (is_last, mut done) = (page.len() < LETTERS_PER_PAGE, Vec::new());
        for (letter, score) in page {
            after = ScoreBound::Excluded(Score::new(score)?);
            let sealed = match letter {
                Member::Known(sealed) if !blocked.contains(&sealed.to) => sealed,
                // The letters of one receiver stay in order: nothing overtakes one that waits.
                Member::Known(_) => continue,
                Member::External(bytes) => {
                    delivery.corrupt.push(not_a_letter(from, &bytes));
                    continue;
                }
            };
            left = left.saturating_sub(1);
            match hand_over::<M, H>(from, receive, &sealed).await {
                Ok(outcome) => {
                    delivery.count(outcome);
                    done.push(sealed);
                }
                Err(error) => {
                    blocked.insert(sealed.to.clone());
                    delivery.waiting.push(WaitingReceiver {
                        to: sealed.to,
                        sequence: sealed.sequence,
                        error,
                    });
                }
            }
        }
        remove::<M>(from, done).await?;
        if is_last {
            break;
        }
    }
    Ok(delivery)
}

/// Letters in the order of their sequence.
async fn page<M: Mail>(
    from: &Scope<M::From>,
    after: ScoreBound,
) -> Result<Vec<(Member<SealedLetter<M::To>>, f64)>> {
    let slice = ZSlice::Score(after, ScoreBound::MAX, LETTERS_PER_PAGE);
    from.read(move |tx| tx.zrange_lossy(&M::outbox(), slice.clone(), false)).await
}

fn not_a_letter<P: Partition>(from: &Scope<P>, bytes: &[u8]) -> Error {
    let key = format!("outbox of {:?}", from.partition());
    Error::Corrupt { key, reason: format!("an entry of {} bytes is not a letter", bytes.len()) }
}

/// Removes letters from their outbox and counts the others. Another courier may have removed them.
async fn remove<M: Mail>(from: &Scope<M::From>, done: Vec<SealedLetter<M::To>>) -> Result<()> {
    if done.is_empty() {
        return Ok(());
    }
    let members = done.iter().map(|sealed| Ok(encoded::<Envelope<M::To>>("letter", sealed)?.into()));
    let members: Vec<Bytes> = members.collect::<Result<_>>()?;
    from.transact(move |tx| remove_members::<M>(tx, &members)).await
}

fn remove_members<M: Mail>(tx: &mut Tx<'_, M::From>, members: &[Bytes]) -> Result<()> {
    let outbox = tx.raw_name(&M::outbox());
    let scores = members.iter().map(|member| (outbox.clone(), Read::ZScore(member.clone())));
    let reads: Vec<_> = scores.chain([(outbox.clone(), Read::ZCard)]).collect();
    let mut replies = tx.raw_read_many(&reads)?;
    let Some(Reply::Int(letters)) = replies.pop().transpose()? else { return Ok(()) };
    let mut present = Vec::new();
    for (member, reply) in members.iter().zip(replies) {
        if matches!(reply?, Reply::Score(_)) {
            present.push(member.clone());
        }
    }
    if present.is_empty() {
        return Ok(());
    }
    let mut state = tx.get(&M::state())?.unwrap_or_default();
    state.waiting = (letters as u64).saturating_sub(present.len() as u64);
    tx.put(&M::state(), &state)?;
    tx.raw_write_of(M::Outbox::DECLARATION, outbox, Write::ZRem(present))
}

/// Hands one letter over. An error says that it must wait.
async fn hand_over<M: Mail, H>(
    from: &Scope<M::From>,
    receive: &Arc<H>,
    sealed: &SealedLetter<M::To>,
) -> Result<Outcome>
where
    H: Fn(&mut Tx<'_, M::To>, &LetterOf<M>) -> Result<(), DeliveryError> + Send + Sync + 'static,
{
    let (sender, sequence) = (from.partition().clone(), sealed.sequence);
    let body = <M::Codec as Codec>::decode(&sealed.body).map_err(|error| Error::Corrupt {
        key: format!("letter {sequence} of {sender:?}"),
        reason: format!("{error}; a version that can read it delivers it"),
    })?;
    let scope = from.store().scope(sealed.to.clone()).prefetch_get(&M::received(&sender));
    let (receive, letter) = (receive.clone(), Letter { from: sender.clone(), sequence, body });
    let outcome = scope.transact(move |tx| {
        if !is_new::<M>(tx, &letter.from, sequence)? {
            return Ok(Outcome::Repeated);
        }
        receive(tx, &letter)?;
        Ok::<_, DeliveryError>(Outcome::Delivered)
    });
    match outcome.await {
        Ok(outcome) => Ok(outcome),
        Err(DeliveryError::Store(error)) => Err(error),
        // What the receiver wrote is discarded. A second transaction decides anew: another courier may have
        // handed the letter over in between.
        Err(DeliveryError::Refused(reason)) => {
            let sealed = sealed.clone();
            scope.transact(move |tx| bury::<M>(tx, &sender, &sealed, &reason)).await
        }
    }
}

/// Whether a letter did not come before; then its sequence is stored as the highest one.
fn is_new<M: Mail>(tx: &mut Tx<'_, M::To>, from: &M::From, sequence: i64) -> Result<bool> {
    let key = M::received(from);
    let is_new = tx.get(&key)?.is_none_or(|highest| sequence > highest);
    if is_new {
        tx.put(&key, &sequence)?;
    }
    Ok(is_new)
}

/// Stores a dead letter, unless it came before.
fn bury<M: Mail>(
    tx: &mut Tx<'_, M::To>,
    from: &M::From,
    sealed: &SealedLetter<M::To>,
    reason: &str,
) -> Result<Outcome> {
    if !is_new::<M>(tx, from, sealed.sequence)? {
        return Ok(Outcome::Repeated);
    }
    if tx.llen(&M::dead())? >= DEAD_LETTERS_MAX {
        let problem =
            format!("{DEAD_LETTERS_MAX} are stored and none was taken; take them (`mail::take_dead`)");
        return Err(Error::Invalid { what: "dead letters", problem });
    }
    let dead = DeadLetter::new(partition_text(from), sealed.sequence, tx.now(), shortened(reason.to_owned()));
    let dead = dead.with_body(&sealed.body);
    tx.rpush(&M::dead(), &dead)?;
    Ok(Outcome::Refused)
}

fn shortened(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}
