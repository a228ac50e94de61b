//! Figures as people read them.

use std::time::Duration;

/// `1,234,567`.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `0.4`, `1,234`, `12k`, `3.4M`: at most five signs, for axes.
pub(super) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() < 9_999.5 {
        let whole = value.round();
        let is_whole = (value - whole).abs() < 0.05 || value.abs() >= 100.0;
        return match is_whole {
            true if value < 0.0 => format!("−{}", count(-whole as u64)),
            true => count(whole as u64),
            false => trimmed(format!("{value:.1}")),
        };
    }
    let (size, unit) = UNITS.into_iter().find(|(size, _)| value.abs() >= *size).unwrap_or(UNITS[3]);
    let scaled = value / size;
    let decimals = usize::from(scaled.abs() < 100.0);
    format!("{}{unit}", trimmed(format!("{scaled:.decimals$}")))
}

/// `4,980`: to the nearest whole one.
pub(super) fn rate(value: f64) -> String {
    if value.is_finite() { count(value.round().max(0.0) as u64) } else { "–".to_owned() }
}

/// `1.04`.
pub(super) fn ratio(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "–".to_owned() }
}

/// `99.9 %`, rounded down: 100 % is all of them and 0 % is none.
pub(super) fn percent(share: f64) -> String {
    match share {
        share if share.is_nan() => "–".to_owned(),
        share if share <= 0.0 => "0 %".to_owned(),
        share if share < 0.001 => "< 0.1 %".to_owned(),
        share if share >= 1.0 => "100 %".to_owned(),
        share => format!("{} %", trimmed(format!("{:.1}", (share * 1e3 + 1e-9).floor() / 10.0))),
    }
}

/// `250 µs`, `12 ms`, `1.6 s`, `12 min`, `2.5 h`: two figures that matter, or three.
pub(super) fn duration(time: Duration) -> String {
    const UNITS: [(f64, f64, &str); 5] = [
        (36_000.0, 3_600.0, "h"),
        (900.0, 60.0, "min"),
        (0.9995, 1.0, "s"),
        (0.000_999_5, 1e-3, "ms"),
        (0.0, 1e-6, "µs"),
    ];
    let seconds = time.as_secs_f64();
    if time.is_zero() {
        return "0 s".to_owned();
    }
    let (_, size, unit) =
        UNITS.into_iter().find(|(least, ..)| seconds >= *least).unwrap_or(UNITS[4]);
    let scaled = seconds / size;
    let decimals = usize::from(scaled < 9.95);
    format!("{} {unit}", trimmed(format!("{scaled:.decimals$}")))
}

/// Without a fraction that says nothing.
fn trimmed(text: String) -> String {
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!([count(0), count(999), count(1_000)], ["0", "999", "1,000"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        let shorts = [0.0, 0.25, 1.0, 999.6, 9_999.0, 12_000.0, 12_340.0, 2.5e6, 1e15, f64::NAN];
        assert_eq!(
            shorts.map(short),
            ["0", "0.2", "1", "1,000", "9,999", "12k", "12.3k", "2.5M", "1000T", "–"]
        );
        assert_eq!([0.0, 1.0, 4.871].map(ratio), ["0.00", "1.00", "4.87"]);
    }

    #[test]
    fn all_is_said_of_all_and_none_of_none() {
        let shares = [0.0, 0.000_01, 0.03, 0.029, 0.414, 0.999_99, 1.0, f64::NAN];
        assert_eq!(
            shares.map(percent),
            ["0 %", "< 0.1 %", "3 %", "2.9 %", "41.4 %", "99.9 %", "100 %", "–"]
        );
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let times = [0, 250, 1_000, 12_300, 999_900, 1_640_000, 123_000_000, 1_080_000_000];
        assert_eq!(
            times.map(|micros| duration(Duration::from_micros(micros))),
            ["0 s", "250 µs", "1 ms", "12 ms", "1 s", "1.6 s", "123 s", "18 min"]
        );
        assert_eq!(duration(Duration::from_secs(90_000)), "25 h");
    }
}
