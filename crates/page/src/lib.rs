//! What there is to look at: one HTML document, its pictures, and calendars. Pure, with no I/O.

pub mod calendar;

/// For whom something is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Those who run Offhours: everything.
    Operators,
    /// Anybody: nothing that identifies a person or a resource, and no reasons.
    Public,
}
