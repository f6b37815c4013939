//! Mail between partitions: a letter that is sent in one transaction has its effect in another partition
//! once.
//!
//! A transaction lives in one partition. [`send`] puts a letter into the outbox of the sender's partition, in
//! the transaction that has the reason for it. A courier ([`deliver_from`], [`deliver_all`]) hands it to the
//! receiver's partition in a second transaction and removes it from the outbox in a third one.
//!
//! Promises:
//! 1. A letter exists if and only if its sender's transaction committed.
//! 2. It has its effect exactly once. The receiver's transaction also stores the highest sequence that came
//!    from this sender, so a letter that is handed over again is only removed. Any number of couriers may
//!    work at the same time, and die between any two transactions.
//! 3. Letters of one sender to one receiver arrive in the order in which they were sent. There is no order
//!    between receivers, nor between senders.
//! 4. A letter that the receiver refuses ([`DeliveryError::Refused`]) becomes a dead letter of the receiver,
//!    with the reason: it is handed over or dead, never both. A receiver that cannot be reached or fails
//!    keeps only its own letters waiting.
//! 5. Nothing is dropped: a full outbox refuses [`send`], and full dead letters keep later letters in the
//!    outbox.
//! 6. A sequence is greater than the last one and at least the engine's microseconds since 1970. So letters
//!    that are sent after a loss of the counter, such as by a failover, are not taken for old ones, as long as
//!    the clock of the new server is not behind the last sequence that the receiver has. If it is behind,
//!    letters that are sent before it has caught up are taken for repeated ones and removed. Without such a
//!    loss no clock matters: the counter is stored, and a clock that is set back only slows its growth.
//! 7. A failover of Redis that loses the receiver's transaction and not the removal loses the letter, as it
//!    loses any acknowledged transaction.
//!
//! Keys, all the caller's, linked by [`Mail`]. In the sender's partition: the outbox (a sorted set of letters
//! by sequence) and its state, the last sequence and how many letters wait (a string). In the receiver's: the
//! highest sequence from each sender (a string each), and the dead letters (a list). The highest sequence
//! must live longer than a letter can wait.
//!
//! ```
//! use emberkeep_hot::{Store, embedded::Embedded};
//! use emberkeep_primitives::mail::{self, DeadLetter, Envelope, Mail, OutboxState};
//! use emberkeep_schema::{Json, Key, List, Name, Number, SortedSet, Text, family, partition};
//!
//! partition! {
//!     /// One town.
//!     pub struct Town(Name) as "town";
//! }
//! family! {
//!     /// Gold of a town.
//!     pub GOLD = "gold:{town}" {
//!         kind: Text<Number<i64>>, partition: Town, parts: (), ttl: persistent, owner: "towns"
//!     }
//! }
//! family! {
//!     /// Gold that is on its way.
//!     pub OUTBOX = "ember:mail:{town}:out" {
//!         kind: SortedSet<Envelope<Town>>, partition: Town, parts: (), ttl: persistent, owner: "towns"
//!     }
//! }
//! family! {
//!     /// The last sequence that a town used, and how many letters wait.
//!     pub STATE = "ember:mail:{town}:state" {
//!         kind: Text<Json<OutboxState>>, partition: Town, parts: (), ttl: persistent, owner: "towns"
//!     }
//! }
//! family! {
//!     /// The highest sequence that came from a town.
//!     pub RECEIVED = "ember:mail:{town}:from:{sender}" {
//!         kind: Text<Number<i64>>, partition: Town, parts: (sender: Name), ttl: persistent, owner: "towns"
//!     }
//! }
//! family! {
//!     /// Gold that a town refused.
//!     pub DEAD = "ember:mail:{town}:dead" {
//!         kind: List<Json<DeadLetter>>, partition: Town, parts: (), ttl: persistent, owner: "towns"
//!     }
//! }
//!
//! struct Gold;
//!
//! impl Mail for Gold {
//!     type From = Town;
//!     type To = Town;
//!     type Codec = Number<i64>;
//!     type Outbox = OUTBOX;
//!     type State = STATE;
//!     type Received = RECEIVED;
//!     type Dead = DEAD;
//!
//!     fn outbox() -> Key<OUTBOX> {
//!         OUTBOX.key()
//!     }
//!     fn state() -> Key<STATE> {
//!         STATE.key()
//!     }
//!     fn received(from: &Town) -> Key<RECEIVED> {
//!         RECEIVED.key(&from.0)
//!     }
//!     fn dead() -> Key<DEAD> {
//!         DEAD.key()
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::new(std::sync::Arc::new(Embedded::in_memory()));
//! let [north, south] = ["north", "south"].map(|name| Town(Name::new(name).expect("a word")));
//! let from = store.scope(north);
//! from.put(&GOLD.key(), 100).await?;
//! let to = south.clone();
//! from.transact(move |tx| {
//!     let gold = tx.get(&GOLD.key())?.unwrap_or(0);
//!     tx.put(&GOLD.key(), &(gold - 30))?;
//!     mail::send::<Gold>(tx, &to, &30)
//! }).await?;
//! // In any process, again and again.
//! let round = mail::deliver_all::<Gold, _>(&store, None, |tx, letter| {
//!     let gold = tx.get(&GOLD.key())?.unwrap_or(0);
//!     Ok(tx.put(&GOLD.key(), &(gold + letter.body))?)
//! }).await?;
//! assert_eq!((round.delivery.delivered, round.next), (1, None));
//! assert_eq!(store.scope(south).get(&GOLD.key()).await?, Some(30));
//! # Ok(())
//! # }
//! ```

mod courier;
mod envelope;

pub use courier::{
    Delivery, DeliveryError, Letter, LetterOf, Round, WaitingReceiver, deliver_all, deliver_from,
};
pub use envelope::{DeadLetter, Envelope, OutboxState, SealedLetter};

use crate::encode::encoded;
use crate::limits::{OUTBOX_LETTERS_MAX, SEQUENCE_MAX};
use emberkeep_hot::{Error, ReadTx, Result, Tx};
use emberkeep_schema::{
    Automatic, Codec, Family, Json, Key, List, Number, Partition, Persistent, SortedSet, Text,
};

/// Links the keys of one kind of mail. A game implements it on a marker type.
pub trait Mail: Send + Sync + 'static {
    /// The partition of senders. Its outbox names it, also on one server.
    type From: Partition;
    /// The partition of receivers.
    type To: Partition;
    /// The codec of a letter's body.
    type Codec: Codec;
    /// The family of the outbox: letters by sequence.
    type Outbox: Family<Partition = Self::From, Kind = SortedSet<Envelope<Self::To>>, Ttl = Persistent>;
    /// The state of the outbox.
    type State: Family<Partition = Self::From, Kind = Text<Json<OutboxState>>, Ttl = Persistent>;
    /// The highest sequence that came from a sender.
    type Received: Family<Partition = Self::To, Kind = Text<Number<i64>>, Ttl: Automatic>;
    /// The dead letters of a receiver.
    type Dead: Family<Partition = Self::To, Kind = List<Json<DeadLetter>>, Ttl: Automatic>;

    /// Letters of one sender that wait at most, up to [`OUTBOX_LETTERS_MAX`].
    const LETTERS_MAX: usize = OUTBOX_LETTERS_MAX;

    /// The key of the outbox.
    fn outbox() -> Key<Self::Outbox>;

    /// The key of its state.
    fn state() -> Key<Self::State>;

    /// The key of the highest sequence that came from `from`.
    fn received(from: &Self::From) -> Key<Self::Received>;

    /// The key of the dead letters.
    fn dead() -> Key<Self::Dead>;
}

/// Why a letter cannot be sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MailError {
    /// Too many letters wait.
    #[error("the outbox of {from} is full ({max} letters); nothing was written; deliver its letters first")]
    Full {
        /// The text of the sender's partition.
        from: String,
        /// Letters that an outbox may have.
        max: usize,
    },
    /// An error of the store, unchanged: inside a transaction, pass it on with `?`.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Sends a letter: it leaves if the transaction commits.
pub fn send<M: Mail>(
    tx: &mut Tx<'_, M::From>,
    to: &M::To,
    letter: &<M::Codec as Codec>::Value,
) -> Result<(), MailError> {
    // Only this string is read, so that concurrent senders of a partition share their round trips on Redis: a
    // count of the sorted set would have to be asked anew after each letter.
    let mut state = tx.get(&M::state())?.unwrap_or_default();
    let max = M::LETTERS_MAX.min(OUTBOX_LETTERS_MAX);
    if state.waiting >= max as u64 {
        // Counted anew: the outbox may have been deleted.
        state.waiting = tx.zcard(&M::outbox())? as u64;
    }
    if state.waiting >= max as u64 {
        return Err(MailError::Full { from: partition_text(tx.partition()), max });
    }
    state.sequence = after(state.sequence, tx.now())?;
    state.waiting += 1;
    tx.put(&M::state(), &state)?;
    let body = encoded::<M::Codec>("letter", letter)?;
    let sealed = SealedLetter { sequence: state.sequence, to: to.clone(), body };
    // Exact: a sequence is at most 2^53.
    tx.zadd(&M::outbox(), &sealed, state.sequence as f64)?;
    Ok(())
}

/// A partition as its keys name it.
fn partition_text(partition: &impl Partition) -> String {
    let mut text = Vec::new();
    partition.write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The sequence after `last`: greater than that, and at least the engine's microseconds.
fn after(last: i64, now_ms: i64) -> Result<i64> {
    let next = last.saturating_add(1).max(now_ms.saturating_mul(1_000));
    if !(1..=SEQUENCE_MAX).contains(&next) {
        let problem = format!("{last} has no successor; an external client wrote it, delete the key");
        return Err(Error::Invalid { what: "sequence of mail", problem });
    }
    Ok(next)
}

/// How many letters of a sender wait.
pub fn waiting<M: Mail>(tx: &mut ReadTx<'_, M::From>) -> Result<usize> {
    tx.zcard(&M::outbox())
}

/// Takes the oldest dead letter of a receiver, to be handled in the caller's transaction.
pub fn take_dead<M: Mail>(tx: &mut Tx<'_, M::To>) -> Result<Option<DeadLetter>> {
    tx.lpop(&M::dead())
}
