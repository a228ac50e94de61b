//! The word that was probably meant.

/// `; did you mean …?` if one of `known` is near `word`, else what there is to choose from.
pub(super) fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => match list(known) {
            none if none.is_empty() => String::new(),
            known => format!("; known here: {known}"),
        },
    }
}

/// Each of `words` in quotes, with commas between them.
pub(super) fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// That of `known` that is spelt most like `word`, if one is: what was probably meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // As clap: below 0.7 the likeness is chance.
    let alike = known.map(|known| (strsim::jaro(word, known), known)).filter(|(how, _)| *how > 0.7);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_and_where_none_is_near_all_are() {
        let known = ["attempts", "attempt_timeout", "base", "ratio"];
        let suggest = |word| suggestion(word, known.into_iter());
        assert_eq!(suggest("attempt"), "; did you mean `attempts`?");
        assert_eq!(suggest("ratoi"), "; did you mean `ratio`?");
        assert_eq!(suggest("zzz"), "; known here: `attempts`, `attempt_timeout`, `base`, `ratio`");
        assert_eq!(suggestion("zzz", [].into_iter()), "");
    }
}
