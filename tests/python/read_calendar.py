"""Reads an iCalendar file from standard input with a parser that is not ours.

Prints its events as JSON, in their order. The exit code is 1 if a property cannot be read.
"""

import json
import sys

from icalendar import Calendar

calendar = Calendar.from_ical(sys.stdin.buffer.read())
events = []
for component in (calendar, *calendar.events):
    if component.errors:
        sys.exit(f"{component.name}: {component.errors}")
for event in calendar.events:
    events.append(
        {
            "uid": str(event["UID"]),
            "written": event.decoded("DTSTAMP").isoformat(),
            "begins": event.start.isoformat(),
            "ends": event.end.isoformat(),
            "summary": str(event["SUMMARY"]),
            "description": str(event["DESCRIPTION"]) if "DESCRIPTION" in event else None,
        }
    )
json.dump({"name": calendar.calendar_name, "events": events}, sys.stdout)
