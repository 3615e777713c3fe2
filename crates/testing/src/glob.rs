//! A slow and simple glob matcher, as a reference for tests.

/// A part of a glob without alternatives.
#[derive(Clone, Debug)]
enum Part {
    Text,
    One,
    Is(char),
    /// A character class: true if negated, and the ranges of characters.
    In(bool, Vec<(char, char)>),
}

/// Returns true if a glob matches, by expanding its alternatives and trying every length of each `*`; `None` for a malformed one.
///
/// # Panics
/// Never: after the last alternative nothing is left.
#[must_use]
pub fn glob_matches(glob: &str, text: &str) -> Option<bool> {
    let text: Vec<char> = text.chars().collect();
    let glob: Vec<char> = glob.chars().collect();
    let (all, rest) = expand(&glob, false)?;
    assert!(rest.is_empty());
    Some(all.iter().any(|parts| fits(parts, &text)))
}

/// Expands the alternatives up to the end, or inside `{…}` up to a `,` or `}`. Returns the rest too.
fn expand(mut glob: &[char], inside: bool) -> Option<(Vec<Vec<Part>>, &[char])> {
    let mut all = vec![Vec::new()];
    while let Some((&first, rest)) = glob.split_first() {
        if inside && (first == ',' || first == '}') {
            break;
        }
        glob = rest;
        let next: Vec<Vec<Part>> = match first {
            '*' => vec![vec![Part::Text]],
            '?' => vec![vec![Part::One]],
            '\\' => match glob.split_first() {
                Some((&escaped, rest)) => {
                    glob = rest;
                    vec![vec![Part::Is(escaped)]]
                }
                None => vec![Vec::new()],
            },
            '[' => {
                let (part, rest) = class(glob)?;
                glob = rest;
                vec![vec![part]]
            }
            '{' => {
                let mut alternatives = Vec::new();
                loop {
                    let (some, rest) = expand(glob, true)?;
                    alternatives.extend(some);
                    let (&end, rest) = rest.split_first()?;
                    glob = rest;
                    if end == '}' {
                        break alternatives;
                    }
                }
            }
            plain => vec![vec![Part::Is(plain)]],
        };
        all = all
            .iter()
            .flat_map(|start| next.iter().map(|end| [&start[..], end].concat()))
            .collect();
    }
    Some((all, glob))
}

fn class(glob: &[char]) -> Option<(Part, &[char])> {
    let (negated, glob) = match glob {
        ['!', rest @ ..] => (true, rest),
        _ => (false, glob),
    };
    if let [low, '-', high, rest @ ..] = glob {
        let rest = rest.strip_prefix(&[']'])?;
        return (low <= high).then(|| (Part::In(negated, vec![(*low, *high)]), rest));
    }
    let (mut listed, mut rest) = (Vec::new(), glob);
    loop {
        match rest {
            [']', after @ ..] if !listed.is_empty() => return Some((Part::In(negated, listed), after)),
            [] | [']', ..] | ['\\'] => return None,
            ['\\', char, after @ ..] | [char, after @ ..] => {
                listed.push((*char, *char));
                rest = after;
            }
        }
    }
}

fn fits(parts: &[Part], text: &[char]) -> bool {
    let Some((first, parts)) = parts.split_first() else {
        return text.is_empty();
    };
    if matches!(first, Part::Text) {
        return (0..=text.len()).any(|length| fits(parts, &text[length..]));
    }
    let Some((char, text)) = text.split_first() else {
        return false;
    };
    let is_fit = match first {
        Part::Text | Part::One => true,
        Part::Is(only) => only == char,
        Part::In(negated, ranges) => ranges.iter().any(|(low, high)| (low..=high).contains(&char)) != *negated,
    };
    is_fit && fits(parts, text)
}
