//! Figures as people read them: three significant digits and a unit.

use std::time::Duration;

const UNITS: [(f64, &str); 6] =
    [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];

/// `100 ms`, `1.5 s`, `20.5 d`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    // A little less than a whole unit is shown as a whole one.
    let unit = UNITS.iter().find(|(unit, _)| three_digits(seconds / unit) >= 1.0);
    match unit {
        _ if time.is_zero() => "0".to_owned(),
        Some((unit, name)) => format!("{} {name}", three_digits(seconds / unit)),
        None => format!("{} ns", time.as_nanos()),
    }
}

/// `1.2×`, `64×`.
pub(crate) fn times(factor: f64) -> String {
    format!("{}×", number(factor))
}

/// With three significant digits, whole ones as they are, and large ones as powers of ten.
pub(crate) fn number(number: f64) -> String {
    match number {
        large if large >= 1e9 => format!("{large:.2e}").replace("e", " × 10^"),
        whole if whole.fract() == 0.0 => whole.to_string(),
        small => three_digits(small).to_string(),
    }
}

fn three_digits(number: f64) -> f64 {
    let before_point = if number >= 1.0 { number.log10().floor() as i32 + 1 } else { 1 };
    let scale = 10_f64.powi((3 - before_point).max(0));
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_largest_unit_that_fits() {
        for (nanos, expected) in [
            (0, "0"),
            (7, "7 ns"),
            (1_500, "1.5 µs"),
            (752_345_678, "752 ms"),
            (999_600_000, "1 s"),
            (1_303_000_000, "1.3 s"),
            (40_700_000_000, "40.7 s"),
            (90_000_000_000, "1.5 min"),
            (16_272_000_000_000, "4.52 h"),
            (1_767_744_000_000_000, "20.5 d"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), expected);
        }
        assert!(time(Duration::MAX).ends_with(" d"));
    }

    #[test]
    fn factors_are_short_however_large() {
        for (factor, expected) in
            [(1.0, "1×"), (1.2, "1.2×"), (1.728, "1.73×"), (1000.0, "1000×"), (4e9, "4.00 × 10^9×")]
        {
            assert_eq!(times(factor), expected);
        }
    }
}
