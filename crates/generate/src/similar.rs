//! Finds the name that a misspelled name probably means.

/// The length of a name from which none is similar.
const NAME_MAX: usize = 100;

/// Returns the candidate that differs from `name` by the fewest typing errors, if they are few.
pub(super) fn similar<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // The comparison needs time and memory for each pair of characters.
    if name.len() > NAME_MAX {
        return None;
    }
    // Names such as `env` and `data` are similar to many others.
    let max = name.len() / 6;
    let nearest = candidates.map(|it| (strsim::damerau_levenshtein(name, it), it)).min()?;
    (nearest.0 <= max.min(2)).then_some(nearest.1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
