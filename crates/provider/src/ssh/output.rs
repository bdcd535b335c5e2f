//! A command's output: its first bytes, and how to display them.

use std::fmt;

use domain::text::one_line;

/// The first bytes of a command's standard output and error, in order of arrival.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Output {
    kept: Vec<u8>,
    dropped: u64,
}

impl Output {
    /// Keeps as much of the data as still fits.
    pub(super) fn add(&mut self, data: &[u8], limit: usize) {
        let fits = data.len().min(limit.saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&data[..fits]);
        self.dropped += (data.len() - fits) as u64;
    }

    /// The number of bytes that were read but not kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The text on one line, safe to show.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.kept);
        one_line(text.trim(), usize::MAX).into_owned()
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept, dropped } = self;
        write!(f, "Output({} bytes kept, {dropped} dropped)", kept.len())
    }
}
