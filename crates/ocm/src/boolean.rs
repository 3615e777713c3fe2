//! Parses boolean strings like Go.

/// Returns true if Go's `strconv.ParseBool`, with which Argo CD reads annotations, parses the text as true.
pub fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}
