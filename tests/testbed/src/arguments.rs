//! The arguments of a command.

/// Arguments of a command: one line, as a user types it, or a list if some have spaces.
pub trait Arguments {
    /// Returns them one by one.
    fn words(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Arguments for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Arguments for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<A: Arguments + ?Sized> Arguments for &A {
    fn words(&self) -> Vec<&str> {
        (*self).words()
    }
}
