//! The log: events on standard error, one per line.

use clap::ValueEnum;
use manifest::text::is_unprintable;
use std::fmt;
use std::io;
use tracing::Subscriber;
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{self, Writer};
use tracing_subscriber::fmt::{self as layer, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::{Registry, registry};

/// The verbosity of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Problems that a person has to fix.
    Error,
    /// Failures that are retried.
    Warn,
    /// Changes.
    Info,
    /// Decisions and their reasons.
    Debug,
    /// Everything.
    Trace,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
            Level::Trace => Self::TRACE,
        }
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: time, level, module, message, `key=value`.
    Text,
    /// For programs: a JSON object per line.
    Json,
}

/// Logs events to standard error from now on: those of these crates from the level on, and warnings and errors of
/// libraries. Only the first call has an effect: a process has one log.
pub fn init(level: Level, format: Format, crates: &[&str]) {
    let subscriber = subscriber(level, format, crates, io::stderr);
    tracing::subscriber::set_global_default(subscriber).unwrap_or_default();
}

/// The module of kube that logs a response in full when it cannot parse it, which may expose Secrets. We log such failures
/// ourselves.
const KUBE_CLIENT: &str = "kube_client::client";

/// Creates a subscriber that writes events to `writer`. Libraries log only warnings and errors: at `debug` they would drown our
/// events.
fn subscriber<W>(level: Level, format: Format, crates: &[&str], writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let ours = LevelFilter::from(level);
    let targets = Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target(KUBE_CLIENT, ours.min(LevelFilter::ERROR))
        .with_targets(crates.iter().map(|name| (*name, ours)));
    // An event that cannot be written is lost; reporting that on the same standard error would end the process.
    let layer = layer::layer().with_writer(writer).log_internal_errors(false);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        Format::Text => layer.fmt_fields(format::debug_fn(write_field).delimited(" ")).boxed(),
        Format::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
    };
    registry().with(layer.with_filter(targets))
}

/// Writes a field of an event as text. Text that others wrote, such as a message in a status, cannot look like another field or
/// event.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = format!("{value:?}");
    if field.name() == "message" {
        return text.chars().try_for_each(|char| match char {
            char if is_unprintable(char) => write!(writer, "{}", char.escape_default()),
            char => writer.write_char(char),
        });
    }
    let is_word = |char: char| !char.is_whitespace() && !is_unprintable(char) && char != '"' && char != '=';
    if is_quoted(&text) || !text.is_empty() && text.chars().all(is_word) {
        write!(writer, "{}={text}", field.name())
    } else {
        write!(writer, "{}={text:?}", field.name())
    }
}

/// Returns true if the text is one quoted string and nothing else.
fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| {
        let mut is_escaped = false;
        let mut is_plain = |char: char| {
            let is_plain = is_escaped || char != '"';
            is_escaped = !is_escaped && char == '\\';
            is_plain && !is_unprintable(char)
        };
        inner.chars().all(&mut is_plain) && !is_escaped
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::Value;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use tracing::{debug, error, error_span, info, warn};

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that are logged while a function runs.
    pub(crate) fn logged(level: Level, format: Format, done: impl FnOnce()) -> Vec<String> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(subscriber(level, format, &["runtime"], move || writer.clone()), done);
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns a line without the time at its start, which must be UTC in the format of RFC 3339.
    fn timeless(line: &str) -> &str {
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.ends_with('Z'), "{line}");
        time.parse::<jiff::Timestamp>().unwrap();
        rest
    }

    #[test]
    fn text_event_is_one_line_with_time_level_module_and_fields() {
        let lines = logged(Level::Info, Format::Text, || {
            info!(application = "argocd/shop", works = 3, "written");
        });
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        let desired = r#" INFO runtime::telemetry::tests: written application="argocd/shop" works=3"#;
        assert_eq!(timeless(line), desired);
    }

    #[test]
    fn an_event_in_a_span_has_the_fields_of_the_span() {
        let event = || {
            let span = error_span!("reconcile", controller = "pull", object = %"argocd/shop", attempt = 2);
            span.in_scope(|| warn!(work = %"eu1/shop", "write failed"));
        };
        let lines = logged(Level::Warn, Format::Text, event);
        let desired = " WARN reconcile{controller=\"pull\" object=argocd/shop attempt=2}: \
                      runtime::telemetry::tests: write failed work=eu1/shop";
        assert_eq!(timeless(&lines[0]), desired);
        let lines = logged(Level::Warn, Format::Json, event);
        let event: Value = serde_json::from_str(&lines[0]).unwrap();
        let desired =
            serde_json::json!({"name": "reconcile", "controller": "pull", "object": "argocd/shop", "attempt": 2});
        assert_eq!((&event["work"], &event["span"]), (&"eu1/shop".into(), &desired));
    }

    #[test]
    fn escapes_foreign_texts_in_log_events() {
        let evil = "no\n2026-01-01T00:00:00Z ERROR leader=true \u{1b}[31m";
        let lines = logged(Level::Info, Format::Text, || {
            info!(reason = evil, "quoted");
            info!(reason = %evil, "shown");
            info!(reason = %"\"a\" b=\"c\"", "half quoted");
            info!(reason = %"plain", nothing = %"", "words");
            info!("said: {evil}");
        });
        let ends = [
            r#"quoted reason="no\n2026-01-01T00:00:00Z ERROR leader=true \u{1b}[31m""#,
            r#"shown reason="no\n2026-01-01T00:00:00Z ERROR leader=true \u{1b}[31m""#,
            r#"half quoted reason="\"a\" b=\"c\"""#,
            r#"words reason=plain nothing="""#,
            r"said: no\n2026-01-01T00:00:00Z ERROR leader=true \u{1b}[31m",
        ];
        assert_eq!(lines.len(), ends.len(), "{lines:#?}");
        for (line, end) in lines.iter().zip(ends) {
            assert!(line.ends_with(end), "{line}\n{end}");
        }
    }

    #[test]
    fn json_event_is_one_object_per_line_with_flat_fields() {
        let lines = logged(Level::Info, Format::Json, || {
            info!(application = %"argocd/shop", works = 3, "written\nhere");
        });
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        let event: Value = serde_json::from_str(line).unwrap();
        let has = |key: &str, value: Value| assert_eq!(event[key], value, "{line}");
        has("level", "INFO".into());
        has("target", "runtime::telemetry::tests".into());
        has("message", "written\nhere".into());
        has("application", "argocd/shop".into());
        has("works", 3.into());
        assert!(event["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    #[test]
    fn libraries_log_only_warnings_and_errors() {
        let all = || {
            error!("ours 1");
            warn!("ours 2");
            info!("ours 3");
            debug!("ours 4");
            error!(target: "kube::client", "theirs 1");
            warn!(target: "rustls::conn", "theirs 2");
            info!(target: "hyper_util", "theirs 3");
            debug!(target: "tower", "theirs 4");
        };
        let names = |level| {
            let lines = logged(level, Format::Text, all);
            let names = lines.iter().map(|line| line.rsplit_once(": ").unwrap().1.to_owned());
            names.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(names(Level::Error), "ours 1, theirs 1");
        assert_eq!(names(Level::Warn), "ours 1, ours 2, theirs 1, theirs 2");
        assert_eq!(names(Level::Info), "ours 1, ours 2, ours 3, theirs 1, theirs 2");
        assert_eq!(
            names(Level::Trace),
            "ours 1, ours 2, ours 3, ours 4, theirs 1, theirs 2"
        );
    }

    #[test]
    fn response_that_kube_cannot_parse_is_not_logged() {
        let lines = logged(Level::Trace, Format::Text, || {
            warn!(target: "kube_client::client", "{}, {:?}", r#"{"data":{"password":"cGFzcw=="}}"#, "missing field");
        });
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn closed_log_output_is_ignored() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for format in [Format::Text, Format::Json] {
            let subscriber = subscriber(Level::Info, format, &["runtime"], || Closed);
            tracing::subscriber::with_default(subscriber, || info!("lost"));
        }
    }
}
