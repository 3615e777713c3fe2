//! Objects in a ManifestWork for one managed cluster.

use super::names::{ClusterName, WorkName};
use super::object::Object;
use crate::json;

/// A ManifestWork: the objects that one cluster is given.
#[derive(Debug)]
pub struct Work<'a> {
    name: &'a WorkName,
    cluster: &'a ClusterName,
    objects: &'a [Object],
}

impl<'a> Work<'a> {
    /// Wraps `objects`, in their order, for `cluster`.
    #[must_use]
    pub fn new(name: &'a WorkName, cluster: &'a ClusterName, objects: &'a [Object]) -> Self {
        Self { name, cluster, objects }
    }

    /// Hands the canonical JSON of the work to `write`, piece by piece.
    ///
    /// # Errors
    /// The first error of `write`.
    pub fn each_piece<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut piece = String::from(
            r#"{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"#,
        );
        json::write_text(&self.name.to_string(), &mut piece);
        piece.push_str(r#","namespace":"#);
        json::write_text(&self.cluster.to_string(), &mut piece);
        piece.push_str(r#"},"spec":{"workload":{"manifests":["#);
        for (at, object) in self.objects.iter().enumerate() {
            if at > 0 {
                piece.push(',');
            }
            write(&piece)?;
            piece.clear();
            for piece in object.pieces() {
                write(&piece)?;
            }
        }
        piece.push_str("]}}}");
        write(&piece)
    }
}

/// How many of the largest objects an error names.
const LARGEST_TOLD: usize = 5;

/// Checks that the objects fit in one work, as OCM's admission webhook counts.
///
/// # Errors
/// With a line that names the largest objects and their sizes.
pub fn check_size(objects: &[Object], limit: u64) -> Result<(), String> {
    let mut sizes: Vec<(u64, &Object)> = objects.iter().map(|object| (object.size() as u64, object)).collect();
    let total: u64 = sizes.iter().map(|(size, _)| size).sum();
    if total <= limit {
        return Ok(());
    }
    sizes.sort_by_key(|&(size, _)| std::cmp::Reverse(size));
    let largest: Vec<String> = sizes
        .iter()
        .take(LARGEST_TOLD)
        .map(|(size, object)| format!("{} {size}", object.key))
        .collect();
    Err(format!(
        "the work would have {total} bytes of manifests, and OCM takes at most {limit}: the largest are {}; leave files out with \
         exclude, or split the folder into several Applications",
        largest.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::object::tests::object;

    #[test]
    fn a_work_that_is_too_large_names_what_is_large() {
        let big = |name: &str, size: usize| {
            object(&format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: '{}'}}}}",
                "<".repeat(size)
            ))
        };
        let objects = [big("small", 10), big("large", 1000), big("larger", 1001)];
        let total: usize = objects.iter().map(Object::size).sum();
        assert_eq!(check_size(&objects, total as u64), Ok(()));
        let told = check_size(&objects, total as u64 - 1).unwrap_err();
        assert!(
            told.contains("the largest are ConfigMap larger 6092, ConfigMap large 6085, ConfigMap small 145;"),
            "{told}"
        );
    }
}
