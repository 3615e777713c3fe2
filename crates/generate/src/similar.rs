//! Finds the name that a misspelled name probably means.

/// The length of a name from which none is similar.
const NAME_MAX: usize = 100;

/// Returns the candidate that differs from `name` by the fewest typing errors, if they are few.
pub fn similar<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // The comparison needs time and memory for each pair of characters.
    if name.len() > NAME_MAX {
        return None;
    }
    // Names such as `env` and `data` are similar to many others.
    let max = (name.len() / 6).min(2);
    let length = name.chars().count();
    let nearest = candidates
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= max)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min()?;
    (nearest.0 <= max).then_some(nearest.1)
}

/// Returns true if `typed` is `meant` with one typing error, or with two if it is longer than four characters.
pub fn is_typing_error(typed: &str, meant: &str) -> bool {
    let max = if typed.len() > 4 { 2 } else { 1 };
    typed.len() <= NAME_MAX && strsim::damerau_levenshtein(typed, meant) <= max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_are_no_typing_errors() {
        for (typed, meant, expected) in [
            ("sttaus", "status", true),
            ("--polcy", "--policy", true),
            ("jsn", "json", true),
            ("apply", "policy", false),
            ("all", "pull", false),
        ] {
            assert_eq!(is_typing_error(typed, meant), expected, "{typed}");
        }
    }

    #[test]
    fn finds_the_nearest_name() {
        let candidates = ["rollout", "rollout-groups", "helm-values"];
        assert_eq!(similar("rolout", candidates.into_iter()), Some("rollout"));
        assert_eq!(similar("helm-value", candidates.into_iter()), Some("helm-values"));
        assert_eq!(similar("colour", candidates.into_iter()), None);
        let long = "x".repeat(1_000_000);
        assert_eq!(similar(&long, [&*long].into_iter()), None);
    }
}
