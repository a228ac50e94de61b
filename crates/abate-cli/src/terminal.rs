//! How the terminal is written to. Colours are left out where the output is no terminal, or where
//! `NO_COLOR` is set: that is what anstream's streams are for.

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};

/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What may go wrong.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What a section is about.
pub(crate) const TITLE: Style = Style::new().bold();
/// What is there for those who want to know.
pub(crate) const ASIDE: Style = Style::new().dimmed();

/// A line below the header is all that a table of figures needs.
const LINES: TableStyle = TableStyle::new()
    .header_separator(LineStyle::new('─', '─', '─', '─'))
    .header_lines(ContentLineStyle::new(' ', ' ', ' '))
    .content_lines(ContentLineStyle::new(' ', ' ', ' '));

/// The width of the terminal, in columns; 80 where there is none.
pub(crate) fn width() -> usize {
    const USUAL: usize = 80;
    terminal_size::terminal_size().map_or(USUAL, |(width, _)| width.0.into())
}

/// A table of figures: all columns to the right, as numbers are read.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(LINES).set_header(header).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
