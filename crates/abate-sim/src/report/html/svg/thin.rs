//! Fewer points, where there are more than a screen has.

/// The most stretches that a plot is cut into: about a pixel each on a wide screen.
const STRETCHES: usize = 600;

/// Which of the values to draw: all of them, or of each stretch the least and the greatest, so that
/// no peak is lost.
pub(super) fn kept(values: &[f64]) -> Vec<usize> {
    if values.len() <= 2 * STRETCHES {
        return (0..values.len()).collect();
    }
    let width = values.len().div_ceil(STRETCHES);
    let mut kept = Vec::with_capacity(2 * STRETCHES);
    for (at, stretch) in values.chunks(width).enumerate() {
        let by_value = |a: &usize, b: &usize| stretch[*a].total_cmp(&stretch[*b]);
        let least = (0..stretch.len()).min_by(by_value).unwrap_or(0);
        let most = (0..stretch.len()).max_by(by_value).unwrap_or(0);
        kept.push(at * width + least.min(most));
        if least != most {
            kept.push(at * width + least.max(most));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_kept() {
        assert_eq!(kept(&[]), [0; 0]);
        assert_eq!(kept(&[3.0; 1_200]), (0..1_200).collect::<Vec<_>>());
    }

    #[test]
    fn a_peak_of_one_in_a_hundred_thousand_is_kept_and_so_is_a_gap() {
        let mut values = vec![1.0; 100_000];
        values[77_777] = 9.0;
        values[33_333] = 0.0;
        let kept = kept(&values);
        assert!(kept.len() <= 1_200, "{}", kept.len());
        assert!(kept.contains(&77_777) && kept.contains(&33_333));
        assert!(kept.is_sorted());
    }
}
