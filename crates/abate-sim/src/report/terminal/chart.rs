//! Columns as blocks.

use super::columns::Column;
use super::line::{
    FAINT, FIRST, FIRST_UNDER_RETRIES, Line, PLAIN, RETRIES, SUCCEEDED, TROUBLE, clean, fit,
};
use crate::record::Run;
use anstyle::Style;
use textwrap::core::display_width;

/// What stands left of a chart.
pub(super) const GUTTER: usize = 8;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: usize = 8;

/// How many lines the attempts take.
const ROWS: usize = 5;

/// First tries with retries on top, from the highest line down. Without colours, retries are hatched.
pub(super) fn stacked(
    columns: &[Option<Column>],
    most: f64,
    label: impl Fn(f64) -> String,
    colours: bool,
) -> Vec<Line> {
    let row = |row: usize| {
        let labelled = match row {
            top if top + 1 == ROWS => gutter(&label(most), '┤'),
            0 => gutter(&label(0.0), '┤'),
            _ => gutter("", '│'),
        };
        let mut line = Line::default().and(FAINT, labelled);
        for column in columns {
            let (style, block) = column.map_or((PLAIN, ' '), |of| cell(&of, most, row, colours));
            line.push(style, block.encode_utf8(&mut [0; 4]));
        }
        line
    };
    (0..ROWS).rev().map(row).collect()
}

/// The share of calls that succeed, in one line.
pub(super) fn goodput(columns: &[Option<Column>]) -> Line {
    let mut line = Line::default().and(FAINT, gutter("100 %", '┤'));
    for column in columns {
        let share = column.and_then(|column| column.goodput);
        // One block at least: no call begins where there is none.
        let block = share.map_or(' ', |share| BLOCKS[1 + (share * 7.0).floor() as usize]);
        line.push(SUCCEEDED, block.encode_utf8(&mut [0; 4]));
    }
    line
}

/// The time axis, heavy where there is trouble.
pub(super) fn axis(columns: &[Option<Column>]) -> Line {
    let mut line = Line::default().and(FAINT, gutter("", '└'));
    for column in columns {
        match column {
            Some(Column { is_trouble: true, .. }) => line.push(TROUBLE, "━"),
            _ => line.push(FAINT, "─"),
        }
    }
    line
}

/// What stands below the axis: the start, what the troubles are as far as there is room, the end.
pub(super) fn times(run: &Run, seconds: f64, width: usize, end: &str) -> Line {
    let mut line = Line::default().and(FAINT, " ".repeat(GUTTER) + "0 s");
    let mut at = "0 s".len();
    let last = width.saturating_sub(display_width(end));
    for trouble in &run.faults {
        let from = (trouble.from.as_secs_f64() / seconds * width as f64) as usize;
        let from = from.max(at + 1);
        let what = clean(&trouble.what);
        let until = from + display_width(&what);
        if until < last {
            line.push(PLAIN, &" ".repeat(from - at));
            line.push(TROUBLE, &what);
            at = until;
        }
    }
    if at < last {
        line.push(PLAIN, &" ".repeat(last - at));
        line.push(FAINT, end);
    }
    line
}

fn cell(of: &Column, most: f64, row: usize, colours: bool) -> (Style, char) {
    let eighths = |value: f64| (value / most * (ROWS * EIGHTHS) as f64).round() as usize;
    let here = |eighths: usize| eighths.saturating_sub(row * EIGHTHS).min(EIGHTHS);
    // What there is can be seen, however little.
    let all = here(eighths(of.all).max(usize::from(of.all > 0.0)));
    let first = here(eighths(of.first)).min(all);
    let is_mostly_first = 2 * first >= all;
    match (first, all) {
        (1..EIGHTHS, EIGHTHS) if colours => (FIRST_UNDER_RETRIES, BLOCKS[first]),
        _ if is_mostly_first => (FIRST, BLOCKS[all]),
        (_, 4..) if !colours => (RETRIES, '░'),
        _ => (RETRIES, BLOCKS[all]),
    }
}

fn gutter(label: &str, edge: char) -> String {
    let label = fit(label, GUTTER - 2);
    let spaces = GUTTER - 2 - display_width(&label);
    format!("{}{label} {edge}", " ".repeat(spaces))
}
