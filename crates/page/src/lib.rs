//! What there is to look at: one HTML document, its pictures, and calendars. Pure, with no I/O.
