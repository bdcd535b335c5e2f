//! What every command gets: where the service is, and the form of its output.

use std::env;

use domain::configuration::Configuration;
use jiff::{Timestamp, tz::TimeZone};
use report::time::shared_zone;

use crate::{
    connection::Connection,
    output::{self, Format, Style},
    print::Screen,
};

/// The options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Context {
    /// Form of the output.
    #[arg(
        long = "output",
        short = 'o',
        value_name = "FORM",
        global = true,
        value_enum,
        default_value_t
    )]
    pub format: Format,
    /// Time zone in which times are shown, such as Europe/Berlin [default: that of the variable TZ,
    /// or the one that all schedules share, or this machine's].
    #[arg(long, value_name = "ZONE", global = true, value_parser = TimeZone::get)]
    pub tz: Option<TimeZone>,
    /// Skip the confirmation.
    #[arg(long, short, global = true)]
    pub yes: bool,
    /// Where the service is.
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Context {
    /// How a command shows what concerns these schedules.
    pub(crate) fn screen<'c>(
        &self,
        configuration: impl Into<Option<&'c Configuration>>,
        now: Timestamp,
    ) -> Screen {
        let zone = self.zone(configuration);
        Screen { format: self.format, style: Style::of_stdout(), zone, now }
    }

    pub(crate) fn remark_on_unknown_zone(&self) {
        let named = env::var("TZ").unwrap_or_default();
        if self.tz.is_none() && !named.is_empty() && TimeZone::try_system().is_err() {
            output::remark(&format!(
                "warning: unknown time zone `{named}` in TZ: times are in UTC\n"
            ));
        }
    }

    /// The zone in which a command shows all its times.
    pub(crate) fn zone<'c>(&self, configuration: impl Into<Option<&'c Configuration>>) -> TimeZone {
        let system = || TimeZone::try_system().unwrap_or(TimeZone::UTC);
        if let Some(zone) = &self.tz {
            return zone.clone();
        }
        if env::var_os("TZ").is_some_and(|zone| !zone.is_empty()) {
            return system();
        }
        let shared = configuration.into().and_then(|one| shared_zone(one).cloned());
        shared.unwrap_or_else(system)
    }
}

#[cfg(test)]
impl Context {
    /// The defaults.
    pub(crate) fn plain() -> Self {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            context: Context,
        }
        let Line { context } = clap::Parser::parse_from(["offhours"]);
        Self { tz: Some(TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC)), ..context }
    }
}
