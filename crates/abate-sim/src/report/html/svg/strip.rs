//! A strip whose darkness tells the value.

use super::steps::Steps;

/// How many shades there are.
const LEVELS: usize = 5;

/// The `d` of a path for each shade, on a grid that is one high; a value of 0 is on none of them.
pub(in super::super) fn strip(steps: &Steps, values: &[f64]) -> [String; LEVELS] {
    let mut paths = [const { String::new() }; LEVELS];
    let mut open: Option<(usize, i32, i32)> = None;
    let mut close = |open: Option<(usize, i32, i32)>| {
        if let Some((level, from, to)) = open {
            paths[level - 1].push_str(&format!("M{from} 0H{to}V1H{from}Z"));
        }
    };
    for (value, from, to) in steps.spans_of(values) {
        let level = (steps.value.place(value) * LEVELS as f64).ceil() as usize;
        match &mut open {
            Some((before, _, end)) if *before == level => *end = to,
            _ => close(open.replace((level, from, to)).filter(|(level, ..)| *level > 0)),
        }
    }
    close(open.filter(|(level, ..)| *level > 0));
    paths
}

#[cfg(test)]
mod tests {
    use super::super::scale::Scale;
    use super::*;

    #[test]
    fn neighbours_of_one_shade_are_one_piece() {
        let steps = Steps { time: Scale::linear(4.0), step: 1.0, value: Scale::linear(10.0) };
        let [lightest, _, _, _, darkest] = strip(&steps, &[0.0, 1.0, 2.0, 10.0]);
        assert_eq!(lightest, "M300 0H900V1H300Z");
        assert_eq!(darkest, "M900 0H1200V1H900Z");
    }

    #[test]
    fn nothing_is_not_drawn() {
        let steps = Steps { time: Scale::linear(2.0), step: 1.0, value: Scale::linear(10.0) };
        assert_eq!(strip(&steps, &[0.0, 0.0]), [const { String::new() }; LEVELS]);
    }
}
