//! Compares printed output with a page: `…` matches anything, and ages and column widths are ignored.

/// Returns true if the lines match those of a page. A line that is `…` matches any number of lines.
pub(crate) fn is_shown(shown: &[String], printed: &str) -> bool {
    let shown: Vec<String> = shown.iter().map(|line| plain(line)).collect();
    let printed: Vec<String> = printed.lines().map(plain).collect();
    lines(&shown, &printed)
}

fn lines(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => (0..=printed.len()).any(|from| lines(rest, &printed[from..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, more)| matches_line(line, first) && lines(rest, more)),
    }
}

/// Returns true if a line matches, with any text for each `…`.
fn matches_line(shown: &str, printed: &str) -> bool {
    match shown.split_once('…') {
        None => shown == printed,
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            starts.into_iter().any(|at| matches_line(after, &rest[at..]))
        }),
    }
}

/// Returns a line with single spaces between words, and one age for all.
fn plain(line: &str) -> String {
    let indent: String = line.chars().take_while(|character| *character == ' ').collect();
    let words = line
        .split_whitespace()
        .map(|word| if is_age(word) { "1s" } else { word });
    indent + &words.collect::<Vec<_>>().join(" ")
}

/// Returns true for ages such as `5s`, `3m` and `2d4h`, as kubectl prints them.
fn is_age(word: &str) -> bool {
    let parts: Vec<&str> = word.split_inclusive(['s', 'm', 'h', 'd']).collect();
    let is_part = |part: &&str| {
        let number = part.strip_suffix(['s', 'm', 'h', 'd']);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    !parts.is_empty() && parts.iter().all(is_part)
}

#[test]
fn matches_shown_output_with_ellipsis_and_ages() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_shown(&shown("NAME   AGE\na      5s"), "NAME AGE\na 3m2s\n"));
    assert!(is_shown(&shown("a\n…\nb"), "a\nc\nd\nb\n"));
    assert!(is_shown(&shown("a … b"), "a c d b"));
    assert!(!is_shown(&shown("a … b"), "a c d"));
    assert!(!is_shown(&shown("a"), "a\nb"));
    assert!(!is_shown(&shown("  a"), "a"));
}
