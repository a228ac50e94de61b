use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::document::Document;
use super::nearest::{list, suggestion};
use crate::ratio::Ratio;

pub(super) type Found<'d> = &'d Spanned<DeValue<'d>>;

/// What stands under a key, or that nothing does.
///
/// Each reading method gives `None` where nothing stands there, and also where something wrong does,
/// which it notes.
#[derive(Debug, Clone)]
#[must_use = "a value is not checked before it is read"]
pub struct Value<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) path: String,
    /// The byte at which its problems are shown: its own, or its table's where it is missing.
    pub(super) at: usize,
    pub(super) found: Option<Found<'d>>,
}

impl<'d> Value<'d> {
    /// Whether something stands there.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.found.is_some()
    }

    /// Whether a table stands there.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.found.is_some_and(|found| found.get_ref().is_table())
    }

    /// Whether an array stands there.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.found.is_some_and(|found| found.get_ref().is_array())
    }

    /// Notes it as a problem if nothing stands there.
    pub fn required(self) -> Self {
        if self.found.is_none() {
            self.problem("this key is required, but missing");
        }
        self
    }

    /// Notes a problem of this value: what is wrong with it, and what would be right.
    pub fn problem(&self, message: impl Into<String>) {
        self.document.note(self.at, &self.path, message.into());
    }

    /// A duration with its unit, such as `"1.5s"`.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        const DURATION: &str = "a duration such as \"200ms\", \"1.5s\" or \"2m\"";
        let no_unit = || {
            self.expected(format!("the unit is missing: expected {DURATION}"));
            None
        };
        match self.found?.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => no_unit(),
            DeValue::String(text) if text.parse::<f64>().is_ok() => no_unit(),
            DeValue::String(text) => match humantime::parse_duration(text) {
                Ok(duration) => Some(duration),
                Err(error) => {
                    self.problem(format!("expected {DURATION}, got \"{text}\": {error}"));
                    None
                }
            },
            _ => self.expect(DURATION),
        }
    }

    /// A share: a number from 0 to 1, or a percentage such as `"20%"`.
    #[must_use]
    pub fn ratio(&self) -> Option<Ratio> {
        let share = match self.found?.get_ref() {
            DeValue::String(text) => {
                let percent = text.strip_suffix('%').and_then(|it| it.trim_end().parse().ok());
                percent.map(|percent: f64| percent / 100.0)
            }
            number => as_f64(number),
        };
        let ratio = share.and_then(|share| Ratio::new(share).ok());
        ratio.or_else(|| self.expect("a ratio from 0 to 1, or a percentage such as \"20%\""))
    }

    /// A whole number within `range`.
    #[must_use]
    pub fn integer<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + PartialOrd + Display + TryFrom<i128>,
    {
        let number = match self.found?.get_ref() {
            DeValue::Integer(digits) => {
                i128::from_str_radix(digits.as_str(), digits.radix()).ok().map(T::try_from)
            }
            _ => None,
        };
        match number {
            Some(Ok(number)) if range.contains(&number) => Some(number),
            _ => self.expect(&format!("a whole number from {} to {}", range.start(), range.end())),
        }
    }

    /// A number within `range`, whole or not; a bound at infinity is none.
    #[must_use]
    pub fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = as_f64(self.found?.get_ref()).filter(|number| range.contains(number));
        number.or_else(|| {
            let (least, most) = (range.start(), range.end());
            self.expect(&match (least.is_finite(), most.is_finite()) {
                (true, true) => format!("a number from {least} to {most}"),
                (true, false) => format!("a number of at least {least}"),
                (false, true) => format!("a number of at most {most}"),
                (false, false) => "a number".to_owned(),
            })
        })
    }

    /// `true` or `false`.
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        self.found?.get_ref().as_bool().or_else(|| self.expect("`true` or `false`"))
    }

    /// A string.
    #[must_use]
    pub fn text(&self) -> Option<&'d str> {
        self.found?.get_ref().as_str().or_else(|| self.expect("a string"))
    }

    /// What one of a closed list of words stands for.
    #[must_use]
    pub fn word<T: Clone>(&self, words: &[(&str, T)]) -> Option<T> {
        let names = words.iter().map(|(name, _)| *name);
        let expected = || format!("one of {}", list(names.clone()));
        let Some(text) = self.found?.get_ref().as_str() else {
            return self.expect(&expected());
        };
        let known = words.iter().find(|(name, _)| *name == text);
        if known.is_none() {
            let meant = match suggestion(text, names.clone()) {
                meant if meant.contains("did you mean") => meant,
                _ => String::new(), // the list stands there already
            };
            self.problem(format!("expected {}, got \"{text}\"{meant}", expected()));
        }
        known.map(|(_, meaning)| meaning.clone())
    }

    /// The items of an array; none where nothing stands there.
    #[must_use]
    pub fn items(&self) -> Vec<Value<'d>> {
        let Some(found) = self.found else {
            return Vec::new();
        };
        let Some(items) = found.get_ref().as_array() else {
            self.expect::<()>("an array");
            return Vec::new();
        };
        let item = |(n, item): (usize, Found<'d>)| Value {
            document: self.document,
            path: format!("{}[{n}]", self.path),
            at: item.span().start,
            found: Some(item),
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Notes that `what` was expected and something else was found.
    pub(super) fn expect<T>(&self, what: &str) -> Option<T> {
        self.expected(format!("expected {what}"));
        None
    }

    fn expected(&self, expected: String) {
        let got = match self.found.map(|found| found.get_ref()) {
            Some(DeValue::Integer(digits)) => digits.to_string(),
            Some(DeValue::Float(digits)) => digits.to_string(),
            Some(DeValue::String(text)) => format!("\"{text}\""),
            Some(DeValue::Boolean(flag)) => flag.to_string(),
            Some(DeValue::Datetime(date)) => format!("the date {date}"),
            Some(DeValue::Array(_)) => "an array".to_owned(),
            Some(DeValue::Table(_)) => "a table".to_owned(),
            None => "nothing".to_owned(),
        };
        self.problem(format!("{expected}, got {got}"));
    }
}

fn as_f64(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(digits) => digits.as_str().parse().ok(),
        DeValue::Integer(digits) => {
            let whole = i64::from_str_radix(digits.as_str(), digits.radix()).ok()?;
            Some(whole as f64)
        }
        _ => None,
    }
}
