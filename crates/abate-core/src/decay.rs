//! How what is kept fades with time.

/// What is left of one after `lapse` time constants: `(1 + lapse/64)^−64`, by six squarings.
///
/// Never more than 0.01 from `e^(−lapse)`, and the same bits on every machine and in every language
/// that has IEEE doubles, which `exp` does not promise.
#[must_use]
pub fn decay(lapse: f64) -> f64 {
    let mut kept = 1.0 / (1.0 + lapse / 64.0);
    for _ in 0..6 {
        kept *= kept;
    }
    kept
}

/// `(d, (1 − d)/lapse)`: what is left of a stock, and what is left of an income that came evenly
/// over the `lapse`.
#[must_use]
pub fn fade(lapse: f64) -> (f64, f64) {
    if lapse <= 0.0 {
        return (1.0, 1.0);
    }
    let kept = decay(lapse);
    (kept, (1.0 - kept) / lapse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_near_the_exponential_everywhere() {
        for step in 0..10_000 {
            let lapse = f64::from(step) / 500.0;
            assert!((decay(lapse) - (-lapse).exp()).abs() < 0.01, "{lapse}");
        }
        assert_eq!(decay(0.0), 1.0);
        assert_eq!(decay(f64::INFINITY), 0.0);
    }

    #[test]
    fn an_even_income_over_no_time_is_kept_whole() {
        assert_eq!(fade(0.0), (1.0, 1.0));
        let (_, share) = fade(1e-5);
        assert!((share - 1.0).abs() < 1e-4, "{share}");
    }
}
