"""A large fleet for the simulated clouds."""

CONFIGURATION = """\
timezone = "Europe/Berlin"
max_new = 1000

[accounts.do-main]
provider = "digitalocean"
token = "env:OFFHOURS_DEMO_DO_TOKEN"

[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]

[schedules.nights-too]
periods = [{ begin = "06:00", end = "23:00" }]
"""

ACCOUNT = """\
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "simulated-do-token"
"""

# What browsers read as a tag, what turns the direction of text, and what no line has room for.
HOSTILE = [
    "<script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "\\u202egnp.1-bew",
    "x" * 200,
    "&lt;b&gt;",
]


def fleet(count: int) -> str:
    droplets = []
    for number in range(count):
        name = HOSTILE[number] if number < len(HOSTILE) else f"machine-{number}"
        schedule = "office" if number % 3 else "nights-too"
        droplets.append(
            "[[droplets]]\n"
            f"id = {1000 + number}\n"
            f'name = "{name}"\n'
            f'tags = ["offhours:{schedule}"]\n'
            'region = "fra1"\n'
            'size = "s-2vcpu-4gb"\n'
        )
    return "\n".join([ACCOUNT, *droplets])
