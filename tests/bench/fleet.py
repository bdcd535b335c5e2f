"""The fleets that `make scale` measures: resources in accounts and schedules."""

from __future__ import annotations

from dataclasses import dataclass

IN_AN_ACCOUNT = 500
"""The most resources in one account: half of the accounts hold Droplets, the others servers."""
FOLLOWING = 20
"""The number of resources that follow one schedule. All schedules have the same periods."""


@dataclass(frozen=True)
class Fleet:
    """`size` resources, spread evenly over accounts and schedules."""

    size: int

    @property
    def accounts(self) -> int:
        """The number of accounts, equally many for each cloud."""
        return max(2, 2 * -(-self.size // (2 * IN_AN_ACCOUNT)))

    @property
    def schedules(self) -> int:
        return max(1, self.size // FOLLOWING)

    def configuration(self) -> str:
        """Returns the configuration, as a user would write it."""
        lines = ["max_stops = 1000"]
        for place in range(self.accounts):
            lines += [
                f"[accounts.{_account(place)}]",
                f'provider = "{_provider(place)}"',
                f'token = "env:{_variable(place)}"',
            ]
        for place in range(self.schedules):
            lines += [
                f"[schedules.s{place}]",
                'timezone = "UTC"',
                'periods = [{ weekdays = "mon-fri", begin = "08:00", end = "18:00" }]',
            ]
        return "\n".join(lines) + "\n"

    def clouds(self) -> str:
        """Returns the fleet file of the simulated clouds."""
        lines = []
        for place in range(self.accounts):
            lines += [
                "[[accounts]]",
                f'name = "{_account(place)}"',
                f'provider = "{_provider(place)}"',
                f'token = "{_token(place)}"',
            ]
        for resource in range(self.size):
            place, schedule = resource % self.accounts, f"s{resource % self.schedules}"
            of = [f"id = {resource + 1}", f'account = "{_account(place)}"']
            if _provider(place) == "digitalocean":
                of += [f'name = "web-{resource}"', f'tags = ["offhours:{schedule}"]']
                lines += ["[[droplets]]", *of]
            else:
                of += [f'name = "ci-{resource}"', f'labels = {{ offhours = "{schedule}" }}']
                lines += ["[[servers]]", *of]
        return "\n".join(lines) + "\n"

    def tokens(self) -> dict[str, str]:
        """Returns the tokens, keyed by the variables that hold them."""
        return {_variable(place): _token(place) for place in range(self.accounts)}


def _provider(place: int) -> str:
    return ("digitalocean", "hetzner")[place % 2]


def _account(place: int) -> str:
    return f"account-{place}"


def _variable(place: int) -> str:
    return f"TOKEN_{place}"


def _token(place: int) -> str:
    return f"token-of-account-{place}"
