//! Pictures of a terminal, as SVG: text stays sharp, searchable and small.

use std::fmt::Write as _;

/// The width of a character, and the height of a line, in pixels.
const CHARACTER: usize = 8;
const LINE: usize = 18;
/// The margin around the text.
const MARGIN: usize = 16;
/// The width of the terminal, in characters. Longer lines are wrapped.
const COLUMNS: usize = 130;
/// The time for which each screen of a recording is shown, in seconds.
const SHOWN_FOR: usize = 3;

const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1f2430";
const PROMPT: &str = "#7f8896";

/// Draws a command and its output, with the colours of its escape codes.
///
/// Several outputs are a recording: each is a screen that replaces the one before. A viewer without animations shows the last.
pub(crate) fn svg(command: &str, outputs: &[String]) -> String {
    let prompt = vec![
        Span::new("$ ", Style::coloured(PROMPT)),
        Span::new(command, Style::default()),
    ];
    let screens: Vec<Vec<Line>> = outputs
        .iter()
        .map(|output| output.lines().flat_map(|line| wrapped(spans(line))).collect())
        .collect();
    let lines = || screens.iter().flatten().chain(std::iter::once(&prompt));
    let width = 2 * MARGIN + CHARACTER * lines().map(length).max().unwrap_or_default();
    let height = 2 * MARGIN + LINE * (1 + screens.iter().map(Vec::len).max().unwrap_or_default());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         {}<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13.3\" fill=\"{FOREGROUND}\">\n",
        animation(screens.len())
    );
    svg += &draw_line(0, &prompt);
    for (number, screen) in screens.iter().enumerate() {
        writeln!(svg, "<g class=\"screen\" id=\"screen{number}\">").expect(NEVER_FAILS);
        for (row, line) in (1..).zip(screen) {
            svg += &draw_line(row, line);
        }
        svg += "</g>\n";
    }
    svg + "</g>\n</svg>\n"
}

const NEVER_FAILS: &str = "writing to a String never fails";

/// Returns the style that shows each of several screens for its time, and then the next.
fn animation(screens: usize) -> String {
    if screens < 2 {
        return String::new();
    }
    let mut style = "<style>\n.screen:not(:last-child) { opacity: 0; }\n".to_owned();
    for number in 0..screens {
        let [from, to] = [number, number + 1].map(|at| 100 * at / screens);
        let before = if number > 0 { "0% { opacity: 0; } " } else { "" };
        writeln!(
            style,
            "#screen{number} {{ animation: show{number} {}s step-end infinite; }}\n\
             @keyframes show{number} {{ {before}{from}% {{ opacity: 1; }} {to}%, 100% {{ opacity: {}; }} }}",
            screens * SHOWN_FOR,
            u8::from(number + 1 == screens),
        )
        .expect(NEVER_FAILS);
    }
    style + "</style>\n"
}

/// Draws a line of the terminal.
fn draw_line(row: usize, line: &Line) -> String {
    if line.is_empty() {
        return String::new();
    }
    let y = MARGIN + LINE * row + LINE * 3 / 4;
    let width = CHARACTER * length(line);
    let mut svg = format!("<text x=\"{MARGIN}\" y=\"{y}\" textLength=\"{width}\">");
    for Span { text, style } in line {
        let colour = style
            .colour
            .map(|colour| format!(" fill=\"{colour}\""))
            .unwrap_or_default();
        let weight = if style.is_bold { " font-weight=\"bold\"" } else { "" };
        write!(svg, "<tspan{colour}{weight}>{}</tspan>", escaped(text)).expect(NEVER_FAILS);
    }
    svg + "</text>\n"
}

type Line = Vec<Span>;

fn length(line: &Line) -> usize {
    line.iter().map(|span| span.text.chars().count()).sum()
}

/// A part of a line in one style.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    text: String,
    style: Style,
}

impl Span {
    fn new(text: &str, style: Style) -> Self {
        Self {
            text: text.to_owned(),
            style,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Style {
    colour: Option<&'static str>,
    is_bold: bool,
}

impl Style {
    fn coloured(colour: &'static str) -> Self {
        Self {
            colour: Some(colour),
            is_bold: false,
        }
    }
}

/// Splits a line at its escape codes.
fn spans(line: &str) -> Line {
    let mut spans = Vec::new();
    let mut style = Style::default();
    let mut pieces = line.split("\x1b[");
    spans.extend(pieces.next().map(|text| Span::new(text, style)));
    for piece in pieces {
        let (code, text) = piece.split_once('m').expect("a code of a colour");
        match code {
            "1" => style.is_bold = true,
            "31" => style.colour = Some("#f28779"),
            "32" => style.colour = Some("#bae67e"),
            "33" => style.colour = Some("#ffd173"),
            "36" => style.colour = Some("#95e6cb"),
            "0" => style = Style::default(),
            other => panic!("an unknown code: {other}"),
        }
        spans.push(Span::new(text, style));
    }
    spans.retain(|span| !span.text.is_empty());
    spans
}

/// Splits a line where the terminal ends.
fn wrapped(line: Line) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    let mut free = COLUMNS;
    for Span { text, style } in line {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            if free == 0 {
                lines.push(Line::new());
                free = COLUMNS;
            }
            let end = rest.char_indices().nth(free).map_or(rest.len(), |(at, _)| at);
            let (fits, after) = rest.split_at(end);
            lines.last_mut().expect("a line").push(Span::new(fits, style));
            free -= fits.chars().count();
            rest = after;
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    // Browsers show several spaces as one.
    let text = text.replace(' ', "\u{a0}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
