"""Fleets and configurations for stacks that are watched for seconds, not for minutes."""

from __future__ import annotations

ACCOUNTS = """
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "simulated-do-token"
read_token = "simulated-do-reads"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "simulated-hz-token"
read_token = "simulated-hz-reads"
"""

QUICK = (
    ACCOUNTS
    + """
[[droplets]]
id = 387104512
name = "web-1"
tags = ["offhours:nights"]
power_action = "1s"

[[databases]]
id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
name = "orders"
engine = "pg"
plan = "db-s-4vcpu-8gb"
tags = ["offhours:nights"]
resize = "1s"

[[servers]]
id = 42
name = "ci-1"
labels = { offhours = "nights" }
shutdown = "1s"
poweron = "1s"
"""
)
"""One resource for each way to a provider; all of them act at once."""

ORDER = """
[groups.last]
resources = ["name:*"]
after = ["do-main/droplet/1"]
"""
"""All go after a Droplet that does not exist, so that nothing waits, and all records are read."""

DEAF = """
[[servers]]
id = 43
name = "legacy"
labels = { offhours = "nights" }
ignores_shutdown = true
poweroff = "1s"
"""
"""A server whose guest ignores the shutdown signal."""

DEAF_SERVER = "hz-eu/server/43"
STUBBORN = """
[[databases]]
id = "3f9a3f6e-6f0f-4a8e-9a55-0d2a6f5a7c11"
name = "archive"
engine = "pg"
plan = "db-s-2vcpu-4gb"
tags = ["offhours:minutes"]
refuses_shrink = true
"""
"""A database that its provider refuses to shrink."""

STUBBORN_DATABASE = "do-main/database/3f9a3f6e-6f0f-4a8e-9a55-0d2a6f5a7c11"

FOLLOWED = {
    "do-main/droplet/3164444",
    "do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30",
    "do-main/node-pool/bd5f5959-5e1e-4205-a714-a914373942af/cdda885e-7663-40c8-bc74-3a036c66545d",
    "hz-eu/server/42",
    "hz-eu/server/43",
}
"""The resources that follow the schedule of `make stack` and can be stopped."""

DROPLET = "do-main/droplet/387104512"
DATABASE = "do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
SERVER = "hz-eu/server/42"
