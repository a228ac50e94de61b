use std::fmt;

use http::HeaderName;

use crate::rng::{Seed, Streams, secret};

/// The header that makes a repeat harmless at servers that deduplicate by it
/// (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A random UUID (version 4, RFC 9562 section 5.4) as text: 122 bits that name one operation.
///
/// # Examples
///
/// ```
/// use abate_core::safety::Key;
///
/// let key = Key::new(0x8e03978e_40d5_43dd_bc93_6894a57f9324);
/// assert_eq!(key.bare(), b"8e03978e-40d5-43dd-bc93-6894a57f9324");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 38]);

impl Key {
    /// The key of these bits, but for the six that a UUID has for itself.
    #[must_use]
    pub fn new(random: u128) -> Self {
        const RESERVED: u128 = 0xf << 76 | 0b11 << 62;
        const VERSION_4_OF_RFC_9562: u128 = 0x4 << 76 | 0b10 << 62;
        let mut bits = random & !RESERVED | VERSION_4_OF_RFC_9562;
        let mut text = *b"\"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx\"";
        for digit in text.iter_mut().filter(|place| **place == b'x') {
            bits = bits.rotate_left(4);
            *digit = b"0123456789abcdef"[(bits & 0xf) as usize];
        }
        Self(text)
    }

    /// Its 36 characters.
    #[must_use]
    pub fn bare(&self) -> &[u8] {
        &self.0[1..37]
    }

    /// The same in quotes: a string of a structured field (RFC 9651 section 3.3.3).
    #[must_use]
    pub const fn quoted(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who knows it may ask for what was answered to it.
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// Where keys come from.
#[derive(Debug)]
pub struct Keys {
    /// `None` for the system's generator.
    seeded: Option<Streams>,
}

impl Keys {
    /// Keys that nobody can guess and no two calls share, in this process or in another: each is
    /// drawn from the system's generator, so that no fork and no restored snapshot repeats one.
    #[must_use]
    pub const fn random() -> Self {
        Self { seeded: None }
    }

    /// The same keys in every run: for tests alone.
    #[must_use]
    pub const fn seeded(seed: Seed) -> Self {
        Self { seeded: Some(Streams::new(seed)) }
    }

    /// The same source from its beginning.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self { seeded: self.seeded.as_ref().map(|streams| Streams::new(streams.seed())) }
    }

    /// Another key. `None` if the system's generator fails: there is no other that is good enough.
    #[must_use]
    pub fn next(&self) -> Option<Key> {
        match &self.seeded {
            None => secret().map(Key::new),
            Some(streams) => Some(Key::new(streams.next().bits())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(key: Key) -> String {
        String::from_utf8(key.bare().to_vec()).unwrap()
    }

    #[test]
    fn a_key_is_a_uuid_of_version_4_whatever_the_bits() {
        assert_eq!(text(Key::new(0)), "00000000-0000-4000-8000-000000000000");
        assert_eq!(text(Key::new(u128::MAX)), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let bits = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        assert_eq!(text(Key::new(bits)), "01234567-89ab-4def-8123-456789abcdef");
    }

    #[test]
    fn every_bit_but_six_tells_keys_apart() {
        let bit = |nth: u32| text(Key::new(1 << nth));
        let distinct: HashSet<_> = (0..128).map(bit).collect();
        // None of the six shows, so they all look as no bit at all.
        assert_eq!(distinct.len(), 122 + 1);
    }

    #[test]
    fn quotes_make_it_a_string_of_a_structured_field() {
        let key = Key::new(7);
        assert_eq!(key.quoted(), format!("\"{}\"", text(key)).as_bytes());
    }

    #[test]
    fn the_systems_keys_differ_and_use_every_free_bit() {
        let keys = Keys::random();
        let (mut seen, mut ones, mut zeros) = (HashSet::new(), 0_u128, 0_u128);
        for _ in 0..1_000 {
            let key = text(keys.next().unwrap());
            let bits = u128::from_str_radix(&key.replace('-', ""), 16).unwrap();
            (ones, zeros) = (ones | bits, zeros | !bits);
            assert!(seen.insert(key));
        }
        // Of fair bits, one in 10^298 runs would show the same one a thousand times.
        let fixed = !(ones & zeros);
        assert_eq!(fixed, 0xf << 76 | 0b11 << 62);
    }

    #[test]
    fn a_seed_gives_the_same_keys_in_every_run_and_no_two_alike() {
        let of = |seed| Keys::seeded(Seed::new(seed));
        let some = |keys: &Keys| [(); 100].map(|()| text(keys.next().unwrap()));
        let (first, again, other) = (some(&of(1)), some(&of(1)), some(&of(2)));
        assert_eq!(first, again);
        assert_eq!(first.iter().chain(&other).collect::<HashSet<_>>().len(), 200);
        let used = of(1);
        let _ = used.next();
        assert_eq!(some(&used.anew()), first);
    }

    #[test]
    fn a_key_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", Key::new(1)), "Key { .. }");
    }
}
