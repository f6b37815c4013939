//! Idempotency: a request with an id has its effect once, however often it is sent.
//!
//! Promises:
//! 1. The first call with an id runs the body and stores its result in the same commit. Every later call
//!    returns the stored result and does not run the body, in any process, as long as the key exists. So a
//!    call can be repeated after [`OutcomeUnknown`](emberkeep_hot::Error::OutcomeUnknown), or when a client
//!    got no answer.
//! 2. Of many calls with one id at the same time one runs the body; all return its result.
//! 3. A body that fails stores nothing: nothing happened, and the next call runs it again. A refusal that
//!    must be the answer to every later call is stored by returning it as a value: `Ok(Err(refusal))`, with
//!    a family of `Receipt<Json<Result<T, Refusal>>>`. What the body wrote before is then committed, too.
//! 4. [`once_matching`] refuses the id of an earlier request with different parameters
//!    ([`RequestMismatch`]). [`once`] does not compare them.
//!
//! One key, the caller's: a string with the result, one for each id. Its TTL says how long a request can be
//! repeated; choose it longer than any client retries. The id comes from the client and is the same in all
//! its attempts. The value is `<fingerprint> <result>`, the first in 16 hexadecimal digits.
//!
//! ```
//! use emberkeep_hot::{Error, Store, embedded::Embedded};
//! use emberkeep_primitives::once::{Receipt, once};
//! use emberkeep_schema::{Name, Number, Text, family, partition};
//!
//! partition! {
//!     /// One bank.
//!     pub struct Bank = "bank";
//! }
//! family! {
//!     /// Gold of an account.
//!     pub GOLD = "gold:{account}" {
//!         kind: Text<Number<i64>>, partition: Bank, parts: (account: Name), ttl: persistent, owner: "bank"
//!     }
//! }
//! family! {
//!     /// Answered deposits. Clients give up after an hour.
//!     pub DEPOSIT = "ember:deposit:{request}" {
//!         kind: Text<Receipt<Number<i64>>>, partition: Bank, parts: (request: Name),
//!         ttl: refresh(86_400_000), owner: "bank"
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let bank = Store::new(std::sync::Arc::new(Embedded::in_memory())).scope(Bank);
//! let ann = Name::new("ann").expect("a word");
//! let deposit = |id: &str, gold: i64| {
//!     let (ann, id) = (ann.clone(), Name::new(id).expect("a word"));
//!     bank.transact(move |tx| {
//!         once(tx, &DEPOSIT.key(&id), |tx| {
//!             let gold = gold + tx.get(&GOLD.key(&ann))?.unwrap_or(0);
//!             tx.put(&GOLD.key(&ann), &gold)?;
//!             Ok::<_, Error>(gold)
//!         })
//!     })
//! };
//! assert_eq!(deposit("r-1", 50).await?, 50);
//! assert_eq!(deposit("r-2", 20).await?, 70);
//! assert_eq!(deposit("r-1", 50).await?, 50, "the answer of the first call");
//! assert_eq!(bank.get(&GOLD.key(&ann)).await?, Some(70));
//! # Ok(())
//! # }
//! ```

use crate::encode::encoded;
use emberkeep_hot::{Error, Result, Tx};
use emberkeep_schema::{Automatic, Codec, Family, Key, Text, ValueError};
use std::fmt;
use std::marker::PhantomData;

/// The codec of a stored result: the request's fingerprint, then the result as `C` encodes it.
pub struct Receipt<C>(PhantomData<fn() -> C>);

/// The result of the first run of a request, as it is stored under the request's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredResult<T> {
    /// The parameters of the request; [`Fingerprint::NONE`] if [`once`] stored it.
    pub request: Fingerprint,
    /// What the body returned.
    pub result: T,
}

/// A hash of a request's parameters (FNV-1a, 64 bits), the same in every process and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

/// An earlier request with this id had other parameters. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a request with this id was answered before and had other parameters ({key}); nothing was written; \
     a new request needs a new id"
)]
pub struct RequestMismatch {
    /// The key of the id.
    pub key: String,
}

impl Fingerprint {
    /// The fingerprint of a request whose parameters are not compared.
    pub const NONE: Fingerprint = Fingerprint(0);

    /// The fingerprint of a value as a codec encodes it. Equal values must have equal bytes: beware of maps
    /// without an order.
    pub fn of<C: Codec>(value: &C::Value) -> Result<Fingerprint> {
        Ok(Fingerprint::of_bytes(&encoded::<C>("request", value)?))
    }

    /// The fingerprint of bytes, such as the body of an HTTP request.
    pub fn of_bytes(bytes: &[u8]) -> Fingerprint {
        const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let hash = bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
        // 0 is taken: it means that there are no parameters.
        Fingerprint(hash.max(1))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Bytes before the result: the digits and a space.
const HEAD_BYTES: usize = 17;

impl<C: Codec> Codec for Receipt<C> {
    type Value = StoredResult<C::Value>;
    const TYPE: &'static str = "receipt";

    fn encode(value: &Self::Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let before = out.len();
        out.extend_from_slice(format!("{} ", value.request).as_bytes());
        C::encode(&value.result, out).inspect_err(|_| out.truncate(before))
    }

    fn decode(bytes: &[u8]) -> Result<Self::Value, ValueError> {
        let (head, result) = bytes.split_at_checked(HEAD_BYTES).ok_or(foreign(bytes))?;
        let digits = std::str::from_utf8(head).ok().and_then(|head| head.strip_suffix(' '));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or(foreign(bytes))?;
        let receipt = StoredResult { request: Fingerprint(number), result: C::decode(result)? };
        // "+1" is a number, too: only what we write is read.
        if receipt.request.to_string().as_bytes() != &head[..HEAD_BYTES - 1] {
            return Err(foreign(bytes));
        }
        Ok(receipt)
    }
}

fn foreign(bytes: &[u8]) -> ValueError {
    ValueError::NotCanonical { expected: "receipt", bytes: bytes.len() }
}

/// Runs the body unless a call with this key did so before, and returns its result or the stored one.
pub fn once<F, C, E>(
    tx: &mut Tx<'_, F::Partition>,
    key: &Key<F>,
    body: impl FnOnce(&mut Tx<'_, F::Partition>) -> Result<C::Value, E>,
) -> Result<C::Value, E>
where
    F: Family<Kind = Text<Receipt<C>>, Ttl: Automatic>,
    C: Codec,
    E: From<Error>,
{
    checked_once(tx, key, Fingerprint::NONE, |_, _| Ok(()), body)
}

/// Like [`once`], and refuses a key that was used with other parameters.
pub fn once_matching<F, C, E>(
    tx: &mut Tx<'_, F::Partition>,
    key: &Key<F>,
    request: Fingerprint,
    body: impl FnOnce(&mut Tx<'_, F::Partition>) -> Result<C::Value, E>,
) -> Result<C::Value, E>
where
    F: Family<Kind = Text<Receipt<C>>, Ttl: Automatic>,
    C: Codec,
    E: From<Error> + From<RequestMismatch>,
{
    let check = |tx: &Tx<'_, F::Partition>, stored: Fingerprint| {
        let key = || emberkeep_hot::show(&tx.raw_name(key));
        if stored == request { Ok(()) } else { Err(RequestMismatch { key: key() }.into()) }
    };
    checked_once(tx, key, request, check, body)
}

/// Returns the stored result if its request passes the check, or runs the body and stores its result.
fn checked_once<F, C, E>(
    tx: &mut Tx<'_, F::Partition>,
    key: &Key<F>,
    request: Fingerprint,
    check: impl FnOnce(&Tx<'_, F::Partition>, Fingerprint) -> Result<(), E>,
    body: impl FnOnce(&mut Tx<'_, F::Partition>) -> Result<C::Value, E>,
) -> Result<C::Value, E>
where
    F: Family<Kind = Text<Receipt<C>>, Ttl: Automatic>,
    C: Codec,
    E: From<Error>,
{
    if let Some(stored) = tx.get(key)? {
        check(tx, stored.request)?;
        return Ok(stored.result);
    }
    // An attempt, so that nothing of a body that failed is left if the caller goes on without it.
    let result = tx.attempt(|tx| Ok(body(tx)))??;
    let receipt = StoredResult { request, result };
    tx.put(key, &receipt)?;
    Ok(receipt.result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Json, Number, Utf8};

    #[test]
    fn a_receipt_is_readable_and_read_back() {
        let request = Fingerprint::of::<Utf8>(&"buy 3".to_owned()).expect("text has bytes");
        let receipt = StoredResult { request, result: -7 };
        let mut out = Vec::new();
        Receipt::<Number<i64>>::encode(&receipt, &mut out).expect("a number has bytes");
        assert_eq!(out, format!("{request} -7").as_bytes());
        assert_eq!(Receipt::<Number<i64>>::decode(&out), Ok(receipt));
    }

    #[test]
    fn what_is_no_receipt_is_refused() {
        let bad: [&[u8]; 6] = [
            b"",
            b"7",
            b"0000000000000000",
            b"+000000000000001 7",
            b"00000000000000FF 7",
            b"000000000000000\xff 7",
        ];
        for bytes in bad {
            assert_eq!(Receipt::<Number<i64>>::decode(bytes), Err(foreign(bytes)), "{bytes:?}");
        }
        assert!(Receipt::<Json<u8>>::decode(b"0000000000000000 300").is_err());
    }

    #[test]
    fn a_fingerprint_never_changes() {
        // The published test vector of FNV-1a.
        assert_eq!(Fingerprint::of_bytes(b"foobar").to_string(), "85944171f73967e8");
        assert_ne!(Fingerprint::of_bytes(b""), Fingerprint::NONE);
    }
}
