//! The suffixes of Kubernetes' quantities, such as `500m` and `1Gi`.

/// Returns the factor and the power of ten of a quantity's suffix; none for a text that is no suffix.
pub fn suffix(text: &str) -> Option<(u128, i32)> {
    let (factor, exponent) = match text {
        "" => (1, 0),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        _ => (1, text.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some((factor, exponent))
}
