//! Numbers as servers write them, never read as less than they say.

use std::time::Duration;

/// `1*DIGIT`, and leniently `1*DIGIT "." 1*DIGIT`. What is too large for any clock saturates.
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let (whole, rest) = number(value)?;
    let seconds = Duration::from_secs(whole);
    match rest {
        [] => Some(seconds),
        [b'.', fraction @ ..] => Some(seconds.saturating_add(fraction_of_a_second(fraction)?)),
        _ => None,
    }
}

/// `1*DIGIT` behind a dot, rounded up to the millisecond.
fn fraction_of_a_second(digits: &[u8]) -> Option<Duration> {
    let (kept, dropped) = digits.split_at(digits.len().min(3));
    let (thousandths, []) = number(kept)? else { return None };
    if !dropped.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let scale = 10_u64.pow(3 - kept.len() as u32);
    let beyond = dropped.iter().any(|digit| *digit != b'0');
    Some(Duration::from_millis(thousandths * scale + u64::from(beyond)))
}

/// Milliseconds, leniently with a fraction, rounded up.
pub(super) fn millis(value: &[u8]) -> Option<Duration> {
    let thousandfold = seconds(value)?;
    Some(Duration::from_millis(
        thousandfold.as_secs().saturating_add(u64::from(thousandfold.subsec_nanos() > 0)),
    ))
}

/// The `1*DIGIT` at the front, and what comes behind it.
fn number(value: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut rest) = (0_u64, value);
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        rest = behind;
    }
    (rest.len() < value.len()).then_some((number, rest))
}

/// A duration as Go prints it: `6m0s`, `1.5s`, `12ms`. Rounded up to the millisecond.
pub(super) fn go_duration(mut value: &[u8]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    if value.is_empty() {
        return None;
    }
    while !value.is_empty() {
        let end = value.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b'.'))?;
        let (amount, rest) = value.split_at(end);
        let end = rest.iter().position(u8::is_ascii_digit).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let amount = seconds(amount)?;
        total = total.saturating_add(match unit {
            b"h" => amount.saturating_mul(3_600),
            b"m" => amount.saturating_mul(60),
            b"s" => amount,
            b"ms" => up_to_millis(amount, 1_000),
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => up_to_millis(amount, 1_000_000),
            b"ns" => up_to_millis(amount, 1_000_000_000),
            _ => return None,
        });
        value = rest;
    }
    Some(total)
}

/// `amount / parts`, rounded up to the millisecond.
fn up_to_millis(amount: Duration, parts: u128) -> Duration {
    let millis = amount.as_nanos().div_ceil(1_000_000 * parts);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
