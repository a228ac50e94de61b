//! Lines of styled text that fit.

use anstyle::{AnsiColor, Color, Style};
use std::fmt::Write as _;
use textwrap::core::display_width;

pub(super) const PLAIN: Style = Style::new();
pub(super) const BOLD: Style = Style::new().bold();
pub(super) const FAINT: Style = Style::new().dimmed();
pub(super) const FIRST: Style = AnsiColor::Blue.on_default();
pub(super) const RETRIES: Style = AnsiColor::Yellow.on_default();
pub(super) const FIRST_UNDER_RETRIES: Style = FIRST.bg_color(Some(Color::Ansi(AnsiColor::Yellow)));
pub(super) const SUCCEEDED: Style = AnsiColor::Green.on_default();
pub(super) const TROUBLE: Style = AnsiColor::Red.on_default();

/// Pieces of text, each in a style.
#[derive(Debug, Default)]
pub(super) struct Line(Vec<(Style, String)>);

impl Line {
    pub(super) fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        self.push(style, &text.into());
        self
    }

    pub(super) fn push(&mut self, style: Style, text: &str) {
        match self.0.last_mut() {
            Some((last, before)) if *last == style => before.push_str(text),
            _ => self.0.push((style, text.to_owned())),
        }
    }

    /// The line, cut off where `width` ends.
    pub(super) fn render(&self, width: usize, colours: bool) -> String {
        let mut rendered = String::new();
        let mut left = width;
        for (style, text) in &self.0 {
            let text = fit(text, left);
            left -= display_width(&text);
            if colours && *style != PLAIN {
                // Writing to a String does not fail.
                let _ = write!(rendered, "{style}{text}{style:#}");
            } else {
                rendered.push_str(&text);
            }
        }
        if colours { rendered } else { rendered.trim_end().to_owned() }
    }
}

/// The text, or as much of it as fits, with a sign that there was more.
pub(super) fn fit(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for sign in text.chars() {
        cut.push(sign);
        if display_width(&cut) >= width {
            cut.pop();
            break;
        }
    }
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// The text without what a terminal would take for a command, or for a change of direction.
pub(super) fn clean(text: &str) -> String {
    let clean = |sign: char| match sign {
        sign if sign.is_whitespace() => ' ',
        sign if sign.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        sign => sign,
    };
    text.chars().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_off() {
        let cut = [0, 1, 2, 5, 6].map(|width| fit("policy", width));
        assert_eq!(cut, ["", "…", "p…", "poli…", "policy"]);
        assert_eq!(
            [3, 4, 5, 6].map(|width| fit("再試行", width)),
            ["再…", "再…", "再試…", "再試行"]
        );
    }

    #[test]
    fn a_name_gives_no_commands() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{202e}"), "a\u{fffd}[2Jb c\u{fffd}");
    }

    #[test]
    fn styles_take_no_room_and_can_be_left_out() {
        let line = Line::default().and(BOLD, "ab").and(PLAIN, "cd");
        assert_eq!(line.render(3, false), "abc".replace("bc", "b…"));
        assert_eq!(line.render(9, true), "\u{1b}[1mab\u{1b}[0mcd");
    }
}
