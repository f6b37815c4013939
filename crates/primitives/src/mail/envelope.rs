//! How letters are stored.

use emberkeep_schema::{Codec, Part, Partition, ValueError, record};
use std::marker::PhantomData;

/// The codec of a letter in an outbox: `<sequence>:<receiver>:<body>`. No two letters have the same bytes,
/// because a sorted set has each member once.
pub struct Envelope<P>(PhantomData<fn() -> P>);

/// A letter in an outbox. Its body stays encoded, so that a courier can handle a letter that it cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedLetter<P> {
    /// The number of the letter among those of its sender.
    pub sequence: i64,
    /// The partition to which it is addressed.
    pub to: P,
    /// The body as the codec of the mail encoded it.
    pub body: Vec<u8>,
}

record! {
    /// The state of an outbox.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct OutboxState {
        /// The last sequence that was used.
        pub sequence: i64 => "sequence",
        /// How many letters wait, counted anew with each removal.
        pub waiting: u64 => "waiting" default,
    }
}
record! {
    /// A letter that its receiver refused.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DeadLetter {
        /// The text of the partition that sent it.
        pub from: String => "from",
        /// The number of the letter among those of its sender.
        pub sequence: i64 => "sequence",
        /// When it died, in milliseconds since 1970.
        pub at_ms: i64 => "at",
        /// Why it was refused.
        pub reason: String => "reason",
        /// The body, if it is text.
        pub text: Option<String> => "text" optional,
        /// The body in hexadecimal digits, if it is not.
        pub hex: Option<String> => "hex" optional,
    }
}

impl DeadLetter {
    /// The same letter with its body.
    pub(super) fn with_body(self, body: &[u8]) -> DeadLetter {
        let text = std::str::from_utf8(body).ok().map(str::to_owned);
        let hex = text.is_none().then(|| body.iter().map(|byte| format!("{byte:02x}")).collect());
        DeadLetter { text, hex, ..self }
    }

    /// The body, decoded by the codec of its mail.
    pub fn body<C: Codec>(&self) -> Result<C::Value, ValueError> {
        let Some(hex) = &self.hex else { return C::decode(self.text.as_deref().unwrap_or("").as_bytes()) };
        let (pairs, _) = hex.as_bytes().as_chunks::<2>();
        let digit = |byte: u8| (byte as char).to_digit(16);
        let byte = |[high, low]: &[u8; 2]| Some((digit(*high)? * 16 + digit(*low)?) as u8);
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        C::decode(
            &bytes.ok_or(ValueError::NotCanonical { expected: "hexadecimal digits", bytes: hex.len() })?,
        )
    }
}

impl<P: Partition> Codec for Envelope<P> {
    type Value = SealedLetter<P>;
    const TYPE: &'static str = "letter";

    fn encode(value: &SealedLetter<P>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.extend_from_slice(format!("{}:", value.sequence).as_bytes());
        // The text of a partition holds no colon.
        value.to.write(out);
        out.push(b':');
        out.extend_from_slice(&value.body);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<SealedLetter<P>, ValueError> {
        let mut parts = bytes.splitn(3, |byte| *byte == b':');
        let mut text = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
        let sequence = text().and_then(<i64 as Part>::parse);
        let to = text().and_then(P::parse);
        match (sequence, to, parts.next()) {
            (Some(sequence), Some(to), Some(body)) => Ok(SealedLetter { sequence, to, body: body.to_vec() }),
            _ => Err(ValueError::NotCanonical { expected: "letter", bytes: bytes.len() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emberkeep_schema::{Name, Raw, partition};

    partition! {
        /// One town.
        pub(crate) struct Town(Name) as "town";
    }

    #[test]
    fn a_letter_is_read_back_whatever_is_in_it() {
        let to = Town(Name::new("north").expect("a word"));
        for body in [&b""[..], b"a:b:{}", b"\xff\x00"] {
            let sealed = SealedLetter { sequence: 17, to: to.clone(), body: body.to_vec() };
            let mut out = Vec::new();
            Envelope::<Town>::encode(&sealed, &mut out).expect("bytes are bytes");
            assert!(out.starts_with(b"17:north:"));
            assert_eq!(Envelope::<Town>::decode(&out), Ok(sealed));
        }
    }

    #[test]
    fn a_dead_letter_keeps_its_body_to_the_byte() {
        for body in [&b""[..], b"{\"gold\":5}", b"\xff\x00\x7f"] {
            let dead = DeadLetter::new("north".into(), 1, 2, "closed".into()).with_body(body);
            assert_eq!((dead.body::<Raw>(), dead.text.is_none()), (Ok(body.to_vec()), body.contains(&0xff)));
        }
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        for bytes in [&b""[..], b"1", b"1:north", b"x:north:", b"01:north:", b"1::", b"1:\xff:"] {
            assert!(Envelope::<Town>::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
