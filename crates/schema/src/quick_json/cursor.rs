//! Walking over bytes: strings and numbers, found and checked.

/// Not in our own form. Says nothing about whether the text is valid.
#[derive(Debug)]
pub(super) struct Unusual;

/// A number, as serde_json would tell it apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Natural(u64),
    Negative(i64),
    Float(f64),
}

/// Digits that fit 64 bits whatever they are.
const DIGITS_MAX: usize = 18;

/// A place in a text.
pub(super) struct Cursor<'de> {
    bytes: &'de [u8],
    at: usize,
}

impl<'de> Cursor<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Cursor<'de> {
        Cursor { bytes, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The byte here; 0, which no JSON holds, at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Transactions over this byte, or refuses.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> Result<(), Unusual> {
        if self.peek() != byte {
            return Err(Unusual);
        }
        self.at += 1;
        Ok(())
    }

    /// Transactions over these bytes, or refuses.
    pub(super) fn eat_all(&mut self, word: &[u8]) -> Result<(), Unusual> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Unusual);
        }
        self.at += word.len();
        Ok(())
    }

    /// Transactions over this word in quotes, if it stands here. The word needs no escapes.
    #[inline]
    pub(super) fn eat_quoted(&mut self, word: &[u8]) -> bool {
        let end = self.at + word.len() + 1;
        let found = self.bytes.get(self.at..=end);
        let same = found.is_some_and(|found| matches!(found, [b'"', inside @ .., b'"'] if inside == word));
        self.at = if same { end + 1 } else { self.at };
        same
    }

    /// The bytes between two quotes: no escapes, no control characters, not necessarily UTF-8.
    #[inline]
    pub(super) fn quoted(&mut self) -> Result<&'de [u8], Unusual> {
        self.eat(b'"')?;
        let start = self.at;
        loop {
            self.at += plain_bytes(&self.bytes[self.at..]);
            match self.peek() {
                b'"' => break,
                0x80.. => self.at += 1,
                _ => return Err(Unusual),
            }
        }
        let text = &self.bytes[start..self.at];
        self.at += 1;
        Ok(text)
    }

    /// Where the cursor stands.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// The text from a place up to here.
    pub(super) fn since(&self, place: usize) -> Result<&'de str, Unusual> {
        std::str::from_utf8(&self.bytes[place..self.at]).map_err(|_| Unusual)
    }

    /// The characters of a string without escapes; one with escapes is unusual.
    #[inline]
    pub(super) fn text(&mut self) -> Result<&'de str, Unusual> {
        std::str::from_utf8(self.quoted()?).map_err(|_| Unusual)
    }

    /// A number. An integer of more than 18 digits is unusual, and serde_json reads it.
    #[inline]
    pub(super) fn number(&mut self) -> Result<Number, Unusual> {
        let start = self.at;
        let negative = self.peek() == b'-';
        self.at += usize::from(negative);
        let magnitude = self.natural()?;
        if matches!(self.peek(), b'.' | b'e' | b'E') {
            return self.float(start).map(Number::Float);
        }
        match (negative, magnitude) {
            (false, magnitude) => Ok(Number::Natural(magnitude)),
            // serde_json reads it as a float.
            (true, 0) => Err(Unusual),
            // 18 digits fit.
            (true, magnitude) => Ok(Number::Negative(-(magnitude as i64))),
        }
    }

    /// Digits without a leading zero.
    #[inline]
    fn natural(&mut self) -> Result<u64, Unusual> {
        let (start, mut value) = (self.at, 0u64);
        loop {
            let digit = self.peek().wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        let digits = self.at - start;
        let leading_zero = digits > 1 && self.bytes[start] == b'0';
        if digits == 0 || digits > DIGITS_MAX || leading_zero { Err(Unusual) } else { Ok(value) }
    }

    fn digits(&mut self) -> Result<(), Unusual> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(Unusual) } else { Ok(()) }
    }

    /// The rest of a number with a point or an exponent. Rounded to nearest, as serde_json does here.
    fn float(&mut self, start: usize) -> Result<f64, Unusual> {
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            self.digits()?;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| Unusual)?;
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or(Unusual)
    }
}

/// Whether a text can stand between quotes as it is.
#[inline]
pub(super) fn needs_no_escape(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = &rest[plain_bytes(rest)..];
        match rest.first() {
            None => return true,
            Some(0x80..) => rest = &rest[1..],
            Some(_) => return false,
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start are ASCII and neither a quote, a backslash nor a control character.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    let mut done = 0;
    while let Some(eight) = bytes.get(done..done + 8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        let special = special_bytes(word);
        if special != 0 {
            return done + special.trailing_zeros() as usize / 8;
        }
        done += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20 | 0x80..);
    done + bytes[done..].iter().position(is_special).unwrap_or(bytes.len() - done)
}

/// The high bit of each byte that is special; those above the lowest one may be wrong.
#[inline]
fn special_bytes(word: u64) -> u64 {
    let is_zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = is_zero(word ^ (ONES * b'"' as u64));
    let backslash = is_zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control | word) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        for special in 0..=255u8 {
            let is_special = matches!(special, b'"' | b'\\' | ..0x20 | 0x80..);
            for at in 0..20 {
                let mut text = *b"abcdefghijklmnopqrst";
                text[at] = special;
                assert_eq!(plain_bytes(&text), if is_special { at } else { 20 }, "{special} at {at}");
                assert_eq!(needs_no_escape(&text), !is_special || special >= 0x80);
            }
        }
    }
}
