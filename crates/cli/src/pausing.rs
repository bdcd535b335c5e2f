//! What every command says first while something is paused.

use domain::configuration::Overrides;
use report::pausing::lines;

use crate::{
    output::{self, Format},
    print::Screen,
};

/// Says, above what a command prints for people, what is paused.
pub(crate) fn remark_on_pauses(overrides: &Overrides, screen: &Screen) {
    if screen.format == Format::Table {
        for line in lines(overrides, &screen.zone, screen.now) {
            output::remark(&format!("{line}\n"));
        }
    }
}
