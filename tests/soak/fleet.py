"""The simulated clouds when a run begins: every kind, and every reason to be left alone.

Everything is faster than in the real clouds, because the clock is the machine's own.
"""

from __future__ import annotations

from dataclasses import dataclass

TOKENS = {
    "do-main": "simulated-do-token",
    "do-lab": "simulated-lab-token",
    "hz-eu": "simulated-hz-token",
}
"""The token that the simulator accepts for each account."""
PROVIDERS = {"do-main": "digitalocean", "do-lab": "digitalocean", "hz-eu": "hetzner"}

SCHEDULES = ("rota", "shifts", "gentle", "soft", "steady", "frugal")
"""In order: cron, periods, no power cuts, Droplets shut down first, enforced, smaller plans."""
HIBERNATES = "away"
"""The schedule that hibernates its machines; no person and no operator interferes with it."""


@dataclass(frozen=True)
class Member:
    """A resource that follows a schedule."""

    reference: str
    name: str
    toml: str

    @property
    def kind(self) -> str:
        """The kind in the reference."""
        return self.reference.split("/")[1]

    @property
    def account(self) -> str:
        """The account in the reference."""
        return self.reference.split("/")[0]


def droplet(number: int, name: str, tag: str, account: str = "do-main", more: str = "") -> Member:
    """A Droplet with one tag."""
    return Member(
        f"{account}/droplet/{number}",
        name,
        f"""
[[droplets]]
account = "{account}"
id = {number}
name = "{name}"
tags = ["{tag}"]
power_action = "4s"
shutdown = "12s"
{more}
""",
    )


def database(number: int, name: str, tag: str, engine: str, plan: str, more: str = "") -> Member:
    """A database with one tag."""
    account = "do-lab" if name.startswith("lab-") else "do-main"
    identity = f"9cc10173-e9ea-4176-9dbc-{number:012}"
    return Member(
        f"{account}/database/{identity}",
        name,
        f"""
[[databases]]
account = "{account}"
id = "{identity}"
name = "{name}"
engine = "{engine}"
plan = "{plan}"
tags = ["{tag}"]
resize = "30s"
{more}
""",
    )


def server(number: int, name: str, word: str, more: str = "") -> Member:
    """A server with one label."""
    return Member(
        f"hz-eu/server/{number}",
        name,
        f"""
[[servers]]
id = {number}
name = "{name}"
labels = {{ offhours = "{word}" }}
shutdown = "9s"
poweroff = "3s"
poweron = "5s"
{more}
""",
    )


STAGING = "bd5f5959-5e1e-4205-a714-000000000001"
CI = "bd5f5959-5e1e-4205-a714-000000000002"


def pool(cluster: str, number: int, name: str, count: int, more: str = "") -> Member:
    """A node pool, whose table comes after its cluster's."""
    identity = f"cdda885e-7663-40c8-bc74-{number:012}"
    return Member(
        f"do-main/node-pool/{cluster}/{identity}",
        name,
        f"""
[[clusters.pools]]
id = "{identity}"
name = "{name}"
count = {count}
scale_up = "15s"
scale_down = "15s"
{more}
""",
    )


def cluster(identity: str, name: str, tags: str = "") -> str:
    """The table of a cluster, which comes before its pools."""
    return f"""
[[clusters]]
account = "do-main"
id = "{identity}"
name = "{name}"
tags = [{tags}]
"""


DEAF = "ignores_shutdown = true"
RESIZED = 'size = "c-4"\ndisk = 25\nresize = "15s"'
RESCALED = 'server_type = "cpx32"\ndisk = 40\nchange_type = "15s"'
"""Machines enlarged without their disks, so that they fit a smaller plan."""

DROPLETS = (
    droplet(3164441, "web-1", "offhours:rota"),
    droplet(3164442, "web-2", "offhours:rota"),
    droplet(3164443, "shop-1", "offhours:shifts"),
    droplet(3164444, "shop-2", "offhours:soft"),
    droplet(3164445, "batch-1", "offhours:soft", more=DEAF),
    droplet(3164446, "desk-1", "offhours:steady"),
    droplet(3164447, "render-1", "offhours:frugal", more=RESIZED),
    droplet(3164451, "lab-1", "offhours:shifts", "do-lab"),
    droplet(3164452, "lab-2", "offhours:rota", "do-lab"),
)
DATABASES = (
    database(1, "orders", "offhours:rota", "pg", "db-s-4vcpu-8gb"),
    database(2, "reports", "offhours:shifts", "mysql", "db-s-2vcpu-4gb", "nodes = 2"),
    database(3, "sessions", "offhours:shifts", "valkey", "db-s-1vcpu-2gb"),
    database(4, "ledger", "offhours:rota", "pg", "db-s-2vcpu-4gb", "storage_mib = 122880"),
    database(5, "archive", "offhours:rota", "pg", "db-s-2vcpu-4gb", "refuses_shrink = true"),
    database(6, "lab-orders", "offhours:steady", "pg", "db-s-2vcpu-4gb"),
)
POOLS = (
    pool(STAGING, 1, "workers", 3, 'tags = ["offhours:rota"]'),
    pool(STAGING, 2, "burst", 2, 'tags = ["offhours:shifts"]\nautoscale = { min = 1, max = 4 }'),
    pool(CI, 3, "runners", 2),
    pool(CI, 4, "cache", 1, "refuses_zero = true"),
)
SERVERS = (
    server(41, "ci-1", "rota"),
    server(42, "ci-2", "shifts"),
    server(43, "legacy", "rota", DEAF),
    server(44, "mail", "gentle"),
    server(45, "deaf-mail", "gentle", DEAF),
    server(46, "kiosk", "steady"),
    server(47, "builder", "frugal", RESCALED),
)
MEMBERS = (*DROPLETS, *DATABASES, *POOLS, *SERVERS)

QUICK = 'snapshot = "20s"\ncreation = "10s"'
HIBERNATING = (
    droplet(3164448, "bench-1", f"offhours:{HIBERNATES}", more=f'{QUICK}\nsnapshot_lag = "10s"'),
    server(48, "build-1", HIBERNATES, f'{QUICK}\nserver_type = "cpx22"\naddresses = []'),
)
"""Machines that do not exist while they are stopped."""
KEYS = """
[[digitalocean.ssh_keys]]
account = "do-main"
id = 1
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"

[[digitalocean.projects]]
account = "do-main"
id = "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
name = "first"
is_default = true

[[hetzner.ssh_keys]]
id = 1
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"""
"""What machines are recreated with."""

UNTOUCHED = """
[[droplets]]
account = "do-main"
id = 3164461
name = "vpn"

[[droplets]]
account = "do-main"
id = 3164462
name = "web-prod"
tags = ["offhours:rota"]

[[droplets]]
account = "do-main"
id = 3164463
name = "pinned"
tags = ["offhours:rota", "offhours:off"]

[[droplets]]
account = "do-main"
id = 3164464
name = "torn"
tags = ["offhours:rota", "offhours:shifts"]

[[droplets]]
account = "do-main"
id = 3164465
name = "misspelt"
tags = ["offhours:roda"]

[[databases]]
account = "do-main"
id = "9cc10173-e9ea-4176-9dbc-000000000091"
name = "events"
engine = "kafka"
plan = "db-s-2vcpu-4gb"
nodes = 3
tags = ["offhours:rota"]

[[servers]]
id = 61
name = "db-prod"
labels = { offhours = "rota" }

[[servers]]
id = 62
name = "bastion"
labels = { offhours = "off" }
"""
"""Protected, opted out, in conflict, misspelled, of an unsupported kind, or named by nothing."""


def toml() -> str:
    """Returns the whole fleet."""
    accounts = "".join(
        f'[[accounts]]\nname = "{name}"\nprovider = "{PROVIDERS[name]}"\ntoken = "{token}"\n\n'
        for name, token in TOKENS.items()
    )
    clusters = cluster(STAGING, "staging") + POOLS[0].toml + POOLS[1].toml
    clusters += cluster(CI, "ci", '"offhours:rota"') + POOLS[2].toml + POOLS[3].toml
    others = "".join(one.toml for one in (*DROPLETS, *DATABASES, *SERVERS, *HIBERNATING))
    return accounts + others + UNTOUCHED + KEYS + clusters


def newcomer(number: int, schedule: str) -> Member:
    """A Droplet that a person creates."""
    return droplet(3164500 + number, f"guest-{number}", f"offhours:{schedule}")
