//! Numbers as servers write them, never read as less than they say.

use std::time::Duration;

/// `1*DIGIT`, and leniently `1*DIGIT "." 1*DIGIT`. What is too large for any clock saturates.
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let dot = value.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match dot {
        Some(dot) => (&value[..dot], Some(&value[dot + 1..])),
        None => (value, None),
    };
    let seconds = Duration::from_secs(number(whole)?);
    let Some(fraction) = fraction else { return Some(seconds) };
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (kept, dropped) = fraction.split_at(fraction.len().min(3));
    let scale = 10_u64.pow(3 - kept.len() as u32);
    let beyond = dropped.iter().any(|digit| *digit != b'0');
    let millis = number(kept)? * scale + u64::from(beyond);
    Some(seconds.saturating_add(Duration::from_millis(millis)))
}

/// Milliseconds, leniently with a fraction, rounded up.
pub(super) fn millis(value: &[u8]) -> Option<Duration> {
    let thousandfold = seconds(value)?;
    Some(Duration::from_millis(
        thousandfold.as_secs().saturating_add(u64::from(thousandfold.subsec_nanos() > 0)),
    ))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
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
