//! Names of container images.

/// Returns the tag of an image, as in `registry:5000/name:tag@digest`.
pub fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let (_, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && !tag.is_empty()).then_some(tag)
}
