//! What to do next about one record, and what an observation or an answer means for it: pure
//! functions, so that each guard has a test.

pub(crate) mod answer;
pub(crate) mod follow;
pub(crate) mod log;
pub(crate) mod method;
pub(crate) mod plan;
pub(crate) mod step;
