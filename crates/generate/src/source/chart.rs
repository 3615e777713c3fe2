//! Checks the files of a chart before Helm reads them.
//!
//! Helm follows every link below a chart, and `.Files.Get` can read the target. It unpacks the charts in `charts/*.tgz`, each up
//! to 100 MiB and nested without limit. It loads the references of a `values.schema.json` from any file and from the network.
//! Nothing else in a chart makes Helm access other locations: `helm template` does not fetch the dependencies of `Chart.yaml`,
//! templates have no `env`, `getHostByName` returns nothing and `lookup` accesses no cluster.

use super::bounds::{self, Repository, Target};
use super::remote::{Remotes, is_url};
use flate2::read::MultiGzDecoder;
use manifest::problem::plain;
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The maximum number of bytes of all archives of a chart together, unpacked: Helm's limit for one archive.
const UNPACKED: u64 = 100 << 20;

/// The maximum number of bytes of a schema: Helm's limit for any file.
const SCHEMA_SIZE: u64 = 5 << 20;

/// The maximum number of bytes of a packaged chart. Helm 3.18 and later allow 5 MiB, earlier versions any size.
const ARCHIVE_SIZE: u64 = 32 << 20;

/// The maximum nesting depth of archives.
const NESTED: usize = 8;

/// The maximum number of files and folders reached through links: links can make a few folders look like endlessly many.
const LINKED: usize = 100_000;

/// The file with the JSON schema of a chart's values.
const SCHEMA: &str = "values.schema.json";

/// The settings for checking a chart.
pub(super) struct Check<'a> {
    pub(super) repository: &'a Repository,
    pub(super) remotes: &'a Remotes,
    /// True if Helm reads schemas.
    pub(super) schemas: bool,
}

/// The role of a folder in a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The root of a chart.
    Chart,
    /// The folder with the dependencies of a chart.
    Dependencies,
    /// Any other folder.
    Other,
}

/// The state of a walk through the files of a chart.
struct Walk<'a> {
    check: &'a Check<'a>,
    /// The ancestors of the current folder, with links resolved.
    within: Vec<PathBuf>,
    linked: usize,
    /// The remaining number of bytes that archives may unpack to.
    left: u64,
    problems: Vec<String>,
}

impl Check<'_> {
    /// Returns the problems of the chart, such as files that lead Helm out of the repository, one line each.
    pub(super) fn problems(&self, chart: &Path) -> Vec<String> {
        let chart = match self.repository.follow(chart) {
            Ok(Target::Folder(chart)) => chart,
            // Helm reports that the chart is missing.
            Ok(_) => return Vec::new(),
            Err(why) => return vec![format!("{}: {why}", self.repository.shown(chart))],
        };
        let mut walk = Walk {
            check: self,
            within: vec![chart.clone()],
            linked: 0,
            left: UNPACKED,
            problems: Vec::new(),
        };
        walk.folder(&chart, "", Role::Chart, false);
        walk.problems
    }
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, shown: &str, role: Role, by_link: bool) {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let why = plain(&error);
                self.problems
                    .push(format!("{}: the folder cannot be read: {why}", displayed(shown)));
                return;
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let shown = if shown.is_empty() {
                name.clone()
            } else {
                format!("{shown}/{name}")
            };
            if by_link {
                self.linked += 1;
                if self.linked > LINKED {
                    return;
                }
                if self.linked == LINKED {
                    self.problems.push(format!(
                        "{shown}: more than {LINKED} files are reached through links: replace links to folders by the folders"
                    ));
                    return;
                }
            }
            let Ok(kind) = entry.file_type() else {
                self.problems.push(format!("{shown}: it cannot be read: remove it"));
                continue;
            };
            let path = entry.path();
            if kind.is_symlink() {
                self.link(&path, &shown, role);
            } else if kind.is_dir() {
                self.within.push(path.clone());
                self.folder(&path, &shown, within(role, &name), by_link);
                self.within.pop();
            } else if kind.is_file() {
                self.file(&path, &shown, role);
            }
        }
    }

    fn link(&mut self, link: &Path, shown: &str, role: Role) {
        match self.check.repository.follow(link) {
            Ok(Target::File(path)) => self.file(&path, shown, role),
            Ok(Target::Folder(path)) if self.within.iter().any(|folder| folder.starts_with(&path)) => {
                self.problems.push(format!(
                    "{shown}: the link leads to one of its parent folders, which Helm would follow forever: remove the link"
                ));
            }
            Ok(Target::Folder(path)) => {
                let name = shown.rsplit('/').next().unwrap_or(shown);
                self.within.push(path.clone());
                self.folder(&path, shown, within(role, name), true);
                self.within.pop();
            }
            Ok(Target::Nothing) => self.problems.push(format!(
                "{shown}: Helm would follow this link: its target does not exist: correct or remove the link"
            )),
            Err(why) => self
                .problems
                .push(format!("{shown}: Helm would follow this link: {why}")),
        }
    }

    /// Checks the file at `path`; `shown` is its path for Helm.
    fn file(&mut self, path: &Path, shown: &str, role: Role) {
        let name = shown.rsplit('/').next().unwrap_or(shown);
        let is_schema = role == Role::Chart && name == SCHEMA && self.check.schemas;
        let is_archive = role == Role::Dependencies && is_archive(name);
        if !is_schema && !is_archive {
            return;
        }
        let most = if is_schema { SCHEMA_SIZE } else { ARCHIVE_SIZE };
        match bounds::read(path, most) {
            Err(why) => self.problems.push(format!("{shown}: {why}")),
            Ok(bytes) if is_schema => self.schema(&bytes, shown),
            Ok(bytes) => self.archive(&bytes, shown, 1),
        }
    }

    /// Checks a packaged chart and the charts nested in it, as Helm reads it: in memory, without writing to a disk.
    fn archive(&mut self, bytes: &[u8], shown: &str, depth: usize) {
        if depth > NESTED {
            self.problems.push(format!(
                "{shown}: more than {NESTED} packaged charts are nested: unpack some of them"
            ));
            return;
        }
        let mut inside = Vec::new();
        if let Err(why) = entries(bytes, &mut self.left, &mut inside) {
            self.problems.push(format!("{shown}: {why}"));
            return;
        }
        for Entry { name, role, bytes } in inside {
            let shown = format!("{shown}: {name}");
            match role {
                Role::Chart if self.check.schemas => self.schema(&bytes, &shown),
                Role::Dependencies => self.archive(&bytes, &shown, depth + 1),
                _ => {}
            }
        }
    }

    fn schema(&mut self, bytes: &[u8], shown: &str) {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let Ok(schema) = serde_json::from_slice::<Value>(bytes) else {
            self.problems
                .push(format!("{shown}: it is not a schema in JSON: correct or remove it"));
            return;
        };
        if let Some(keyword) = foreign_reference(&schema, self.check.remotes) {
            self.problems.push(format!(
                "{shown}: {keyword}: Helm would read it from another file or from the network: move the definition into this schema \
                 and refer to it by '#/…', or set helm-skip-schema-validation"
            ));
        }
    }
}

fn displayed(shown: &str) -> &str {
    if shown.is_empty() { "." } else { shown }
}

fn within(role: Role, name: &str) -> Role {
    match role {
        Role::Chart if name == "charts" => Role::Dependencies,
        Role::Dependencies => Role::Chart,
        _ => Role::Other,
    }
}

fn is_archive(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension == "tgz")
}

/// A file in an archive that needs further checks.
struct Entry {
    name: String,
    /// The role of the file's folder.
    role: Role,
    bytes: Vec<u8>,
}

/// Checks every entry of an archive, and collects those that need further checks.
fn entries(bytes: &[u8], left: &mut u64, inside: &mut Vec<Entry>) -> Result<(), String> {
    let unreadable = |error: io::Error| match error.get_ref().and_then(|inner| inner.downcast_ref::<TooMuch>()) {
        Some(TooMuch) => format!(
            "the packaged charts are larger than {} MiB when unpacked: unpack or remove some",
            UNPACKED >> 20
        ),
        None => "it is not a packaged chart: package it again with 'helm package'".to_owned(),
    };
    let unpacked = Limited {
        from: MultiGzDecoder::new(bytes),
        left,
    };
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let name = match String::from_utf8(entry.path_bytes().into_owned()) {
            Ok(name) if !name.chars().any(char::is_control) => name,
            _ => return Err("the name of an entry is not plain text: package it again with 'helm package'".to_owned()),
        };
        check_extensions(&mut entry).map_err(|()| {
            format!("{name}: its archive entry has an unknown format: package it again with 'helm package'")
        })?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        if kind.is_symlink() || kind.is_hard_link() {
            return Err(format!(
                "{name}: a packaged chart cannot have links: package it again with 'helm package', which copies what they lead to"
            ));
        }
        if !kind.is_file() {
            return Err(format!(
                "{name}: it is not a regular file: package it again with 'helm package'"
            ));
        }
        let Some(role) = role_in_archive(&name)? else { continue };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(unreadable)?;
        inside.push(Entry { name, role, bytes });
    }
    // Check the bytes after the end: another reader might continue.
    let mut rest = archive.into_inner();
    let mut buffer = [0; 4096];
    loop {
        match rest.read(&mut buffer).map_err(unreadable)? {
            0 => return Ok(()),
            read if buffer[..read].iter().any(|&byte| byte != 0) => {
                return Err("it has data after its end: package it again with 'helm package'".to_owned());
            }
            _ => {}
        }
    }
}

/// Refuses extended headers that readers interpret differently: repeated keys, and names of sparse files.
fn check_extensions<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<(), ()> {
    let Some(extensions) = entry.pax_extensions().map_err(drop)? else {
        return Ok(());
    };
    let mut keys: Vec<String> = Vec::new();
    for extension in extensions {
        let extension = extension.map_err(drop)?;
        let key = extension.key().map_err(drop)?.to_owned();
        if key.starts_with("GNU.") || keys.contains(&key) {
            return Err(());
        }
        keys.push(key);
    }
    Ok(())
}

/// Returns the role of a file's folder in an archive; `None` if the file need not be opened. Helm ignores the first part of the
/// path.
fn role_in_archive(name: &str) -> Result<Option<Role>, String> {
    if name.starts_with('/') || name.contains('\\') || name.split('/').any(|part| part == "..") {
        return Err(format!(
            "{name}: its path leads outside the packaged chart: package it again with 'helm package'"
        ));
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let mut role = Role::Chart;
    let Some((file, folders)) = parts.split_last() else {
        return Ok(None);
    };
    for folder in folders.iter().skip(1) {
        role = within(role, folder);
    }
    Ok(match role {
        Role::Chart if *file == SCHEMA => Some(Role::Chart),
        Role::Dependencies if is_archive(file) => Some(Role::Dependencies),
        _ => None,
    })
}

/// A reader limited to the remaining bytes of all archives of a chart.
struct Limited<'a, R> {
    from: R,
    left: &'a mut u64,
}

#[derive(Debug)]
struct TooMuch;

impl std::fmt::Display for TooMuch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("too much")
    }
}

impl std::error::Error for TooMuch {}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                *self.left = left;
                Ok(read)
            }
            None => Err(io::Error::other(TooMuch)),
        }
    }
}

/// The meta-schemas that Helm contains.
const DRAFTS: [&str; 6] = [
    "schema",
    "draft-04/schema",
    "draft-06/schema",
    "draft-07/schema",
    "draft/2019-09/schema",
    "draft/2020-12/schema",
];

/// Returns the keyword of a reference in a schema to a target that is not in the schema, not part of Helm, and not allowed.
fn foreign_reference(schema: &Value, remotes: &Remotes) -> Option<&'static str> {
    match schema {
        Value::Array(items) => items.iter().find_map(|item| foreign_reference(item, remotes)),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let keyword = ["$ref", "$dynamicRef", "$recursiveRef", "$schema"]
                .into_iter()
                .find(|it| it == key);
            match (keyword, value) {
                (Some(keyword), Value::String(target)) => (!is_known(target, remotes)).then_some(keyword),
                _ => foreign_reference(value, remotes),
            }
        }),
        _ => None,
    }
}

fn is_known(target: &str, remotes: &Remotes) -> bool {
    let (document, _) = target.split_once('#').unwrap_or((target, ""));
    let of_json_schema = ["http://json-schema.org/", "https://json-schema.org/"]
        .iter()
        .find_map(|site| document.strip_prefix(site));
    document.is_empty()
        || of_json_schema.is_some_and(|draft| DRAFTS.contains(&draft))
        || (is_url(document) && remotes.allow(document))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    struct Case {
        _scratch: TempDir,
        chart: PathBuf,
    }

    impl Case {
        fn new() -> Self {
            let scratch = TempDir::new().expect("a scratch folder");
            let chart = scratch.path().join("repository/chart");
            fs::create_dir_all(chart.join("charts/db")).expect("a folder");
            fs::create_dir_all(scratch.path().join("repository/shared/deep")).expect("a folder");
            fs::write(scratch.path().join("repository/shared/a.txt"), "a").expect("a file");
            fs::write(scratch.path().join("secret"), "secret").expect("a file");
            Self {
                _scratch: scratch,
                chart,
            }
        }

        fn problems(&self) -> Vec<String> {
            let repository = Repository::of(&self.chart, "chart");
            let remotes = ["https://schemas.example.com/".parse().expect("a prefix")]
                .into_iter()
                .collect();
            let check = Check {
                repository: &repository,
                remotes: &remotes,
                schemas: true,
            };
            check.problems(&self.chart)
        }

        fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
            fs::write(self.chart.join(name), bytes).expect("a file");
        }

        fn link(&self, name: &str, target: &str) {
            symlink(target, self.chart.join(name)).expect("a link");
        }
    }

    fn gzip(tar: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(tar).expect("bytes");
        encoder.finish().expect("bytes")
    }

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *bytes).expect("an entry");
        }
        gzip(&builder.into_inner().expect("an archive"))
    }

    fn with_link(kind: tar::EntryType) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        builder
            .append_link(&mut header, "db/files/passwd", "/etc/passwd")
            .expect("an entry");
        gzip(&builder.into_inner().expect("an archive"))
    }

    #[test]
    fn accepts_links_within_the_repository() {
        let case = Case::new();
        case.link("a.txt", "../shared/a.txt");
        case.link("charts/db/files", "../../../shared");
        case.link("charts/db/again", "files");
        assert_eq!(case.problems(), [""; 0]);
    }

    #[test]
    fn refuses_links_out_of_the_repository() {
        for (name, target) in [
            ("a", "../../secret"),
            ("a", "/proc/self/environ"),
            ("a", "/proc/4000000/cwd"),
            ("a", "nothing"),
            ("a", "."),
            ("a", "charts/.."),
            ("charts/db/a", "/etc"),
            ("charts/vendored.tgz", "../../../secret"),
            (".hidden", "../../secret"),
        ] {
            let case = Case::new();
            case.link(name, target);
            let problems = case.problems();
            assert_eq!(problems.len(), 1, "{name} -> {target}: {problems:?}");
            assert!(problems[0].starts_with(&format!("{name}: ")), "{problems:?}");
        }
        let case = Case::new();
        case.link("one", "two");
        case.link("two", "../../secret");
        assert_eq!(case.problems().len(), 2);
        let case = Case::new();
        case.link("files", "../shared/deep");
        symlink("../../../secret", case.chart.join("../shared/deep/a")).expect("a link");
        assert!(case.problems()[0].starts_with("files/a: "), "{:?}", case.problems());
        // Two folders that link to each other.
        let case = Case::new();
        case.link("files", "../shared/deep");
        symlink("../../chart/charts", case.chart.join("../shared/deep/b")).expect("a link");
        case.link("charts/c", "../../shared/deep");
        assert!(!case.problems().is_empty());
    }

    #[test]
    fn checks_packaged_charts() {
        let inner = archive(&[("sub/values.schema.json", br#"{"$ref": "file:///etc/passwd"}"#)]);
        let nested = (0..10).fold(archive(&[("a/Chart.yaml", b"")]), |inner, _| {
            archive(&[("a/charts/b.tgz", &inner)])
        });
        let zeros = vec![0; 3 << 20];
        let mut double = archive(&[("db/Chart.yaml", b"")]);
        double.extend(archive(&[(
            "db/values.schema.json",
            br#"{"$ref": "file:///etc/passwd"}"#,
        )]));
        for (what, bytes) in [
            ("a link", with_link(tar::EntryType::Symlink)),
            ("a hard link", with_link(tar::EntryType::Link)),
            ("a device", with_link(tar::EntryType::Char)),
            ("an absolute name", archive(&[("/etc/passwd", b"")])),
            ("a name that leaves", archive(&[("db/../../a", b"")])),
            ("a Windows name", archive(&[(r"db\..\..\a", b"")])),
            (
                "a schema that reads files",
                archive(&[("db/values.schema.json", br#"{"$ref": "file:///etc/passwd"}"#)]),
            ),
            ("a packaged chart in it", archive(&[("db/charts/sub.tgz", &inner)])),
            ("many that are nested", nested),
            ("two archives", double),
            ("no archive", b"no archive".to_vec()),
            ("half an archive", archive(&[("db/Chart.yaml", b"a")])[..40].to_vec()),
        ] {
            let case = Case::new();
            case.write("charts/db.tgz", bytes);
            let problems = case.problems();
            assert_eq!(problems.len(), 1, "{what}: {problems:?}");
            assert!(problems[0].starts_with("charts/db.tgz: "), "{what}: {problems:?}");
        }
        let case = Case::new();
        case.write(
            "charts/db-1.tgz",
            archive(&[
                ("db/Chart.yaml", b""),
                ("db/values.schema.json", br##"{"$ref": "#/definitions/a"}"##),
            ]),
        );
        assert_eq!(case.problems(), [""; 0]);
        // Each archive is small enough, but all of them together are not.
        for at in 0..40 {
            case.write(&format!("charts/db-{at}.tgz"), archive(&[("db/a", &zeros)]));
        }
        assert!(
            case.problems()[0].contains("larger than 100 MiB"),
            "{:?}",
            case.problems()
        );
    }

    #[test]
    fn schema_may_reference_only_itself() {
        for (schema, is_valid) in [
            (
                r##"{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a"}"##,
                true,
            ),
            (
                r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"$ref": {"type": "string"}}}"#,
                true,
            ),
            (
                r#"{"properties": {"a": {"$ref": "https://schemas.example.com/v1.json#/definitions/a"}}}"#,
                true,
            ),
            (r#"{"$ref": "file:///etc/passwd"}"#, false),
            (r#"{"allOf": [{"$ref": "http://127.0.0.1:1/a.json"}]}"#, false),
            (r#"{"$id": "http://127.0.0.1:1/", "$ref": "a.json"}"#, false),
            (r#"{"$schema": "http://127.0.0.1:1/schema"}"#, false),
            (r#"{"$schema": "http://json-schema.org/draft-07/../../schema"}"#, false),
            (r#"{"$dynamicRef": "other.json#a"}"#, false),
            (r#"{"\u0024ref": "/proc/self/environ"}"#, false),
            ("{", false),
        ] {
            for name in ["values.schema.json", "charts/db/values.schema.json"] {
                let case = Case::new();
                case.write(name, schema);
                assert_eq!(case.problems().is_empty(), is_valid, "{schema}: {:?}", case.problems());
            }
            // Helm does not read it there.
            let case = Case::new();
            fs::create_dir(case.chart.join("docs")).expect("a folder");
            case.write("docs/values.schema.json", schema);
            assert_eq!(case.problems(), [""; 0], "{schema}");
        }
    }
}
