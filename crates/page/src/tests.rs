//! The page of a small fleet on Monday, 23 November 2026, at 23:30 in UTC.

mod fleet;

use std::sync::Arc;

use domain::{
    configuration::{Mode, Override, OverrideTarget, Pause, PauseScope},
    schedule::Desired,
};
use jiff::tz::TimeZone;
use report::history::Period;

use super::*;
use fleet::{Fleet, NIGHT, at};

fn page(fleet: &Fleet, audience: Audience) -> String {
    fleet.shown(NIGHT, |input| render(input, audience))
}

fn operators(fleet: &Fleet) -> String {
    page(fleet, Audience::Operators)
}

/// The text between tags, with single spaces.
fn text(html: &str) -> String {
    let (_, body) = html.split_once("<body>").unwrap();
    let mut text = String::new();
    for part in body.split('<') {
        let (tag, after) = part.split_once('>').unwrap_or(("", part));
        let is_within_words = matches!(tag.trim_start_matches('/'), "b" | "bdi" | "code");
        text.push_str(if is_within_words { "" } else { " " });
        text.push_str(after);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn at_half_past_eleven_a_stranger_reads_what_is_off_until_when_why_and_who_asked() {
    let text = text(&operators(&Fleet::night()));
    for words in [
        "1 resource needs attention.",
        "2 of 4 off",
        "office",
        "Off until Tue 08:00 UTC, then running, by the schedule.",
        "Running until Tue 02:00 UTC, then stopped. An override by ada: release night.",
        "stopped until Tue 08:00 UTC",
        "The stop was refused by its provider",
        "What to do: once the cause is gone, offhours stop do-main/droplet/3164444 asks again",
        "ada: override running schedule late until Tue 2026-11-24 02:00 UTC (release night)",
        "as of Mon 2026-11-23 23:26 UTC, 4m ago",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn an_override_that_begins_later_is_what_comes_next() {
    let mut fleet = Fleet::night();
    let of_late = fleet.in_force.overrides.iter().next().unwrap().clone();
    let set = Override {
        target: OverrideTarget::Schedule("office".parse().unwrap()),
        set_at: at("2026-11-24T05:00:00Z"),
        ends_at: at("2026-11-24T06:00:00Z"),
        ..of_late
    };
    fleet.in_force.overrides = [set].into_iter().collect();
    let text = text(&operators(&fleet));
    let says = "Off until Tue 05:00 UTC, then running, by an override.";
    assert!(text.contains(says), "{text}");
}

#[test]
fn an_override_that_ends_without_a_change_lasts_until_the_next_one() {
    let mut fleet = Fleet::night();
    let of_late = fleet.in_force.overrides.iter().next().unwrap().clone();
    let stopped = Override { desired: Desired::Stopped, ..of_late };
    fleet.in_force.overrides = [stopped].into_iter().collect();
    let says = "Off until Tue 09:00 UTC, then running. An override by ada: release night.";
    let operators = text(&operators(&fleet));
    assert!(operators.contains(says), "{operators}");
    let public = text(&page(&fleet, Audience::Public));
    let says = "Off until Tue 09:00 UTC, by an override, then running.";
    assert!(public.contains(says), "{public}");
}

#[test]
fn a_person_is_named_with_the_state_that_they_asked_for() {
    let mut fleet = Fleet::in_order();
    let server = OverrideTarget::Resource(fleet.records[0].reference.clone());
    let of_late = Fleet::night().in_force.overrides.iter().next().unwrap().clone();
    fleet.in_force.overrides = [Override { target: server, ..of_late }].into_iter().collect();
    // It is not started yet.
    let says = "stopped, stopped from Tue 02:00 UTC, overridden to running";
    let operators = text(&operators(&fleet));
    assert!(operators.contains(&format!("{says} by ada (release night)")), "{operators}");
    let public = text(&page(&fleet, Audience::Public));
    assert!(public.contains(says) && !public.contains("ada"), "{public}");
}

#[test]
fn the_calendar_is_that_of_the_month_of_the_money_west_of_greenwich_too() {
    let zone = TimeZone::get("America/New_York").unwrap();
    let october = Period::month_of(at("2026-10-15T00:00:00Z"));
    let render = |input: &Input<'_>| render(input, Audience::Operators);
    let html = Fleet::night().shown_in(&zone, october, NIGHT, render);
    assert!(html.contains("<h4>October 2026</h4>"), "{html}");
}

#[test]
fn a_holiday_of_another_zone_is_the_day_that_it_covers_most_of() {
    let mut fleet = Fleet::in_order();
    let configuration = Arc::make_mut(&mut fleet.in_force.configuration);
    let rule = serde_json::json!({ "schedule": {
        "timezone": "Europe/Berlin",
        "periods": [{ "weekdays": ["mon-fri"], "begin": "08:00", "end": "19:00" }],
        "holidays": ["2026-11-27"],
    }});
    let rule = serde_json::from_value(rule).unwrap();
    configuration.schedules.insert(testing::scene::office(), rule);
    let text = text(&operators(&fleet));
    assert!(text.contains("Thu 2026-11-26 11.0 h"), "{text}");
    assert!(text.contains("Fri 2026-11-27 holiday 0.0 h"), "{text}");
}

#[test]
fn what_is_not_known_of_a_day_is_no_zero() {
    let text = text(&operators(&Fleet::in_order()));
    // Before it was first seen, the day itself, and one that is to come.
    for row in ["Thu 2026-11-19 11.0 h unknown", "Mon 2026-11-23 11.0 h 4.5 h"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    assert!(text.contains("Tue 2026-11-24 11.0 h Wed 2026-11-25"), "{text}");
}

#[test]
fn all_in_order_is_said_in_a_sentence_and_a_number() {
    let fleet = Fleet::in_order();
    let text = text(&operators(&fleet));
    assert!(text.starts_with("Offhours All is as it should be. 1 of 1 off, "), "{text}");
}

#[test]
fn what_is_old_is_marked_and_what_is_recent_is_not() {
    let fleet = Fleet::in_order();
    let shown = |now: &str| fleet.shown(at(now), |input| render(input, Audience::Operators));
    let recent = shown("2026-11-23T23:41:00Z");
    assert!(recent.contains("class=\"age\"") && !recent.contains("age stale"));
    let old = shown("2026-11-23T23:41:01Z");
    assert!(old.contains("class=\"age stale\""), "nothing is stopped on it any more");
    assert!(!text(&old).contains("All is as it should be."));
}

#[test]
fn what_was_saved_is_an_amount_nothing_or_unknown() {
    let head = |fleet: &Fleet| {
        let text = text(&operators(fleet));
        let (head, _) = text.split_once(" as of ").unwrap();
        assert!(!head.contains("0.00"), "{head}");
        head.rsplit_once(" off, ").unwrap().1.to_owned()
    };
    // They are billed in full while off.
    assert_eq!(head(&Fleet::night()), "nothing saved this month");
    assert_eq!(head(&Fleet::without_history()), "what was saved this month is unknown");
    let mut both = Fleet::without_history();
    both.records.extend(Fleet::in_order().records);
    assert_eq!(head(&both), "nothing saved this month, known for 1 of 2");
}

#[test]
fn a_pause_is_in_the_first_lines_and_on_the_strips_of_what_it_concerns() {
    let fleet = Fleet::night().paused();
    let first = |html: String| text(&html).split_once(" as of ").unwrap().0.to_owned();
    let line = "Everything of account do-main is paused until Tue 06:00 UTC by grace (moving): \
                nothing is sent. offhours resume --account do-main ends that.";
    let operators = first(operators(&fleet));
    assert!(operators.contains(line), "{operators}");
    let public = first(page(&fleet, Audience::Public));
    assert!(public.contains("A part is paused until Tue 06:00 UTC: nothing is sent."), "{public}");
    let brief = fleet.shown(NIGHT, |input| markdown(input, Audience::Operators));
    assert!(brief.contains("paused until Tue 06:00 UTC by grace (moving)"), "{brief}");
    let drawn = |fleet: &Fleet| self::operators(fleet).matches("path class=\"p\"").count();
    assert_eq!(drawn(&fleet), 2, "the Droplets of the account");
    assert_eq!(drawn(&Fleet::night()), 0);
}

#[test]
fn what_comes_next_is_only_observed_or_waits_for_the_end_of_a_pause() {
    let mut paused = Fleet::night().paused();
    let office = PauseScope::Schedule("office".parse().unwrap());
    let pause = paused.in_force.overrides.pauses().next().unwrap().clone();
    let pause = Pause { scope: office, ends_at: at("2026-11-24T09:00:00Z"), ..pause };
    paused.in_force.overrides = paused.in_force.overrides.with_pauses([pause]);
    let but = ", but paused until Tue 09:00 UTC";
    let mut observed = Fleet::night();
    Arc::make_mut(&mut observed.in_force.configuration).settings.mode = Mode::Observe;
    for (fleet, but) in [(paused, but), (observed, ", but only observed")] {
        for audience in [Audience::Operators, Audience::Public] {
            let text = text(&page(&fleet, audience));
            for words in [
                format!("Off until Tue 08:00 UTC, then running, by the schedule{but}."),
                format!("stopped, running from Tue 08:00 UTC{but}"),
                format!("Next: running at Tue 08:00 UTC, in 8h 30m{but}."),
            ] {
                assert!(text.contains(&words), "{words}: {text}");
            }
            assert!(!text.contains("stopped until Tue 08:00"), "{text}");
            let brief = fleet.shown(NIGHT, |input| markdown(input, audience));
            assert!(brief.contains(&format!("by the schedule{but}.")), "{brief}");
        }
    }
}

#[test]
fn a_page_of_an_owner_says_whose_it_is_and_has_their_schedules_alone() {
    let mut fleet = Fleet::in_order();
    fleet.owner = Some("<web>");
    let shown = text(&operators(&fleet));
    assert!(shown.starts_with("Offhours, resources of &lt;web&gt; All is as "), "{shown}");
    assert!(shown.contains("office") && !shown.contains("late"), "{shown}");
    let brief = fleet.shown(NIGHT, |input| markdown(input, Audience::Operators));
    assert!(brief.starts_with("Resources of &lt;web&gt;:\n\n**All is as "), "{brief}");
    for public in [
        page(&fleet, Audience::Public),
        fleet.shown(NIGHT, |input| markdown(input, Audience::Public)),
    ] {
        assert!(!public.contains("web&gt;"), "{public}");
    }
}

#[test]
fn the_public_form_has_no_reference_id_reason_person_or_account() {
    let fleet = Fleet::night().paused();
    let secret = [
        "do-main",
        "hz-eu",
        "droplet",
        "server/",
        "3164444",
        "ada",
        "release night",
        "refused by",
        "offhours stop",
        "offhours start",
        "grace",
        "token",
    ];
    let markdown = |audience| fleet.shown(NIGHT, |input| markdown(input, audience));
    for (public, whole) in [
        (page(&fleet, Audience::Public), operators(&fleet)),
        (markdown(Audience::Public), markdown(Audience::Operators)),
    ] {
        let shown = public.replace("<style", "").to_lowercase();
        for word in secret {
            assert!(!shown.contains(word), "{word}: {public}");
        }
        assert!(whole.contains("ada") && whole.contains("do-main"), "{whole}");
    }
}

#[test]
fn hostile_names_and_reasons_are_text() {
    let fleet = Fleet::named(&format!("<script>alert(1)</script>\u{202e}{}", "x".repeat(5_000)));
    for audience in [Audience::Operators, Audience::Public] {
        let html = page(&fleet, audience);
        assert!(!html.contains("<script"), "it is escaped");
        assert!(html.contains("&lt;script&gt;"));
        assert!(!html.contains('\u{202e}'), "what turns the text around is written out");
        assert!(!html.contains(&"x".repeat(4_096)), "it is shortened");
        let markdown = fleet.shown(NIGHT, |input| markdown(input, audience));
        assert!(!markdown.contains("<script"), "{markdown}");
    }
}

#[test]
fn nothing_is_loaded_no_script_runs_and_each_picture_has_a_text() {
    let html = operators(&Fleet::night());
    assert!(html.contains(&format!("content=\"{POLICY}\"")));
    for loading in ["<script", "src=", "http://", "https://", "url(", "@import", "<link", "onclick"]
    {
        assert!(!html.contains(loading), "{loading}");
    }
    for picture in html.split("<svg").skip(1) {
        let (tag, inside) = picture.split_once('>').unwrap();
        assert!(tag.contains("role=\"img\"") && tag.contains("aria-label=\""), "{tag}");
        assert!(inside.starts_with("<title>"), "{inside}");
    }
}

/// How light a colour `#rrggbb` or `#rgb` is, as WCAG has it.
fn luminance(colour: &str) -> f64 {
    let digits = colour.trim_start_matches('#');
    let size = digits.len() / 3;
    let parts = [0, 1, 2].map(|part| {
        let digits = digits[part * size..][..size].repeat(3 - size);
        let share = f64::from(u8::from_str_radix(&digits, 16).unwrap()) / 255.0;
        if share <= 0.04 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
}

#[test]
fn what_ran_and_the_focus_differ_from_what_is_beside_them_in_light_and_dark() {
    let themes: Vec<_> = include_str!("style.css").split(":root{").skip(1).collect();
    assert_eq!(themes.len(), 2);
    for theme in themes {
        let colour = |name: &str| {
            let (_, rest) = theme.split_once(&format!("--{name}:")).unwrap();
            luminance(rest.split([';', '}']).next().unwrap())
        };
        for (one, other) in [
            ("ran", "known"),
            ("ran", "unclear"),
            ("known", "unclear"),
            ("ran", "bg"),
            ("ran", "card"),
        ] {
            let (one_light, other_light) = (colour(one), colour(other));
            let (more, less) = (one_light.max(other_light), one_light.min(other_light));
            let contrast = (more + 0.05) / (less + 0.05);
            assert!(contrast >= 3.0, "{one} and {other}: {contrast:.2}: {theme}");
        }
    }
}

#[test]
fn a_page_of_500_resources_stays_below_600_kilobytes() {
    for audience in [Audience::Operators, Audience::Public] {
        let length = page(&Fleet::large(500), audience).len();
        assert!(length < 600_000, "{length}");
        assert!(length > 100_000, "all of them are shown: {length}");
    }
}
