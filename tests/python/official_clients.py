"""Uses both clouds' official clients against a running simulator.

    official_clients.py SIMULATOR_URL DO_TOKEN HZ_TOKEN

The simulator's clock must be held (`cloud-simulator --at INSTANT`): the checks move it instead of
sleeping. They need two Droplets, a database cluster that may shrink, a node pool that may be empty
and two servers, all running. They restore what they change, but a machine of each cloud gets a new
id. For the second Droplet and one of the servers, another plan and their own must be available.
Prints a line per check and finally how many passed; the exit code is 1 if any failed.
"""

import datetime
import json
import sys
import urllib.request
import warnings

import hcloud
import pydo
from azure.core.exceptions import HttpResponseError
from hcloud.images import Image
from hcloud.locations import Location
from hcloud.server_types.domain import ServerType
from hcloud.servers import ServerCreatePublicNetwork

LONGEST_WAIT = datetime.timedelta(minutes=30)


class Simulator:
    """The simulator's control API."""

    def __init__(self, url):
        self.url = url

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def now(self):
        return datetime.datetime.fromisoformat(
            self.call("/_simulator/clock")["now"].replace("Z", "+00:00")
        )

    def pass_time(self, seconds):
        now = self.now() + datetime.timedelta(seconds=seconds)
        self.call("/_simulator/clock", {"now": now.isoformat()})

    def wait_until(self, holds, step):
        """Lets time pass in steps of `step` seconds until the condition holds."""
        end = self.now() + LONGEST_WAIT
        while not holds():
            assert self.now() < end, f"not after {LONGEST_WAIT}"
            self.pass_time(step)


class Checks:
    """Runs checks and counts them."""

    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, check, *arguments):
        try:
            detail = check(*arguments)
        except Exception as error:  # One failed check does not hide the others.
            self.failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")
        else:
            self.passed += 1
            print(f"ok     {name}" + (f": {detail}" if detail else ""))


def refusal_of(call):
    """Returns the cloud's error, or None. pydo returns declared errors and raises others."""
    try:
        answer = call()
    except HttpResponseError as error:
        return error.status_code, json.loads(error.response.text())
    if isinstance(answer, dict) and set(answer) >= {"id", "message"}:
        return None, answer
    return None


class DigitalOcean:
    """Checks with pydo."""

    def __init__(self, simulator, token):
        self.simulator = simulator
        self.client = pydo.Client(token=token, endpoint=simulator.url)
        self.plain = {"enforce_https": False}

    def droplets(self, per_page):
        """Returns all Droplets and how many pages they took."""
        found, page = [], 1
        while True:
            answer = self.client.droplets.list(per_page=per_page, page=page, **self.plain)
            found += answer["droplets"]
            if "next" not in answer.get("links", {}).get("pages", {}):
                assert len(found) == answer["meta"]["total"]
                return found, page
            page += 1

    def own_droplets(self):
        """Returns the running Droplets that are not Kubernetes workers."""
        droplets, _ = self.droplets(200)
        return [
            droplet
            for droplet in droplets
            if droplet["status"] == "active"
            and not any(tag.startswith("k8s") for tag in droplet["tags"])
        ]

    def account(self):
        answer = self.client.account.get(**self.plain)
        assert answer["account"]["status"] == "active"

    def wrong_token(self):
        client = pydo.Client(token="wrong", endpoint=self.simulator.url)
        _, error = refusal_of(lambda: client.droplets.list(**self.plain))
        assert error["id"] == "unauthorized", error

    def lists_in_pages(self):
        some, pages = self.droplets(2)
        every, one = self.droplets(200)
        assert pages > 1 and one == 1
        assert [droplet["id"] for droplet in some] == [droplet["id"] for droplet in every]
        return f"{len(every)} Droplets on {pages} pages"

    def unknown(self):
        _, error = refusal_of(lambda: self.client.droplets.get(1, **self.plain))
        assert error["id"] == "not_found", error

    def power(self, droplet, kind, expected):
        number = droplet["id"]
        action = self.client.droplet_actions.post(number, body={"type": kind}, **self.plain)[
            "action"
        ]
        assert action["status"] == "in-progress" and action["type"] == kind
        pending = refusal_of(
            lambda: self.client.droplet_actions.post(number, body={"type": kind}, **self.plain)
        )
        assert pending[1]["message"] == "Droplet already has a pending event.", pending

        def get(what):
            return self.client.droplets.get(number, **self.plain)["droplet"][what]

        assert get("locked") is False, "only an administrator locks a Droplet"
        self.simulator.wait_until(
            lambda: (
                self.client.actions.get(action["id"], **self.plain)["action"]["status"]
                == "completed"
            ),
            2,
        )
        self.simulator.wait_until(lambda: get("status") == expected, 1)
        log = self.client.droplet_actions.list(number, **self.plain)["actions"]
        assert log[0]["id"] == action["id"]
        return f"{droplet['name']} is {expected}"

    def already(self, droplet, kind, words):
        status, error = refusal_of(
            lambda: self.client.droplet_actions.post(
                droplet["id"], body={"type": kind}, **self.plain
            )
        )
        assert status == 422 and words in error["message"], error

    def sizes(self, droplet):
        """Resizes a Droplet without its disk, and back."""
        number, own = droplet["id"], droplet["size_slug"]
        sizes = self.client.sizes.list(per_page=200, **self.plain)["sizes"]
        other = next(
            size["slug"]
            for size in sizes
            if size["available"]
            and droplet["region"]["slug"] in size["regions"]
            and size["disk"] >= droplet["disk"]
            and size["slug"] != own
        )

        def resize(slug):
            body = {"type": "resize", "size": slug, "disk": False}
            return self.client.droplet_actions.post(number, body=body, **self.plain)

        refused = refusal_of(lambda: resize(other))
        assert "Droplet is currently on" in refused[1]["message"], refused
        self.power(droplet, "power_off", "off")
        for slug in (other, own):
            action = resize(slug)["action"]
            assert action["type"] == "resize" and action["status"] == "in-progress", action

            def completed(action=action):
                found = self.client.actions.get(action["id"], **self.plain)["action"]
                return found["status"] == "completed"

            self.simulator.wait_until(completed, 10)
            after = self.client.droplets.get(number, **self.plain)["droplet"]
            assert (after["size_slug"], after["status"]) == (slug, "off"), after
            assert after["disk"] == droplet["disk"], after
        self.power(droplet, "power_on", "active")
        return f"{droplet['name']}: {own} to {other} and back"

    def copies(self, droplet):
        """Takes a snapshot of a Droplet, deletes the Droplet, and recreates it."""
        number, name = droplet["id"], "a copy"
        self.power(droplet, "power_off", "off")
        body = {"type": "snapshot", "name": name}
        action = self.client.droplet_actions.post(number, body=body, **self.plain)["action"]

        def completed(action):
            found = self.client.actions.get(action, **self.plain)["action"]
            return found["status"] == "completed"

        def snapshots():
            answer = self.client.droplets.list_snapshots(number, **self.plain)
            return [found for found in answer["snapshots"] if found["name"] == name]

        self.simulator.wait_until(lambda: completed(action["id"]), 10)
        assert snapshots() == [], "shown as soon as its action was completed"
        self.simulator.wait_until(snapshots, 5)
        (snapshot,) = snapshots()
        assert snapshot["min_disk_size"] == droplet["disk"] and snapshot["size_gigabytes"] > 0
        found = self.client.snapshots.get(snapshot["id"], **self.plain)["snapshot"]
        assert (found["id"], found["resource_id"]) == (str(snapshot["id"]), str(number)), found
        self.client.droplets.destroy(number, **self.plain)
        self.simulator.pass_time(5)
        answer = self.client.droplets.get(number, **self.plain)
        assert answer["id"] == "not_found", answer
        body = {field: droplet[field] for field in ("name", "tags")}
        body |= {"region": droplet["region"]["slug"], "size": droplet["size_slug"]}
        made = self.client.droplets.create({**body, "image": snapshot["id"]}, **self.plain)
        assert made["droplet"]["status"] == "new", made
        self.simulator.wait_until(lambda: completed(made["links"]["actions"][0]["id"]), 10)
        after = self.client.droplets.get(made["droplet"]["id"], **self.plain)["droplet"]
        assert after["status"] == "active" and after["id"] != number, after
        for field in ("name", "tags", "size_slug", "disk"):
            assert after[field] == droplet[field], field
        return f"{droplet['name']}: {number} is {after['id']} now"

    def databases(self):
        options = self.client.databases.list_options(**self.plain)["options"]
        databases = self.client.databases.list_clusters(**self.plain)["databases"]
        engines = {database["engine"] for database in databases}
        assert engines <= set(options), engines
        return f"{len(databases)} clusters"

    def resize(self):
        """Shrinks a database and restores it; some may refuse, with the cloud's form of error."""
        options = self.client.databases.list_options(**self.plain)["options"]
        refused = []
        for database in self.client.databases.list_clusters(**self.plain)["databases"]:
            layouts = options[database["engine"]]["layouts"]
            plans = next(
                layout["sizes"]
                for layout in layouts
                if layout["num_nodes"] == database["num_nodes"]
            )
            small = min(plans, key=capacity)
            if capacity(small) == capacity(database["size"]):
                continue
            refusal = self.resized(database["id"], small, database["num_nodes"])
            if refusal:
                status, error = refusal
                assert status == 422 and error["id"] == "unprocessable_entity", refusal
                refused.append(database["name"])
                continue
            back = self.resized(database["id"], database["size"], database["num_nodes"])
            assert back is None, back
            return f"{database['name']}: {database['size']} to {small} and back; refused: {refused}"
        raise AssertionError("no database may shrink")

    def resized(self, uuid, plan, nodes):
        """Resizes and waits. Returns the refusal, if it is refused."""
        body = {"size": plan, "num_nodes": nodes}
        refusal = refusal_of(
            lambda: self.client.databases.update_cluster_size(uuid, body, **self.plain)
        )
        if refusal:
            return refusal

        def get():
            return self.client.databases.get_cluster(uuid, **self.plain)["database"]

        self.simulator.wait_until(lambda: get()["status"] == "resizing", 1)
        again = refusal_of(
            lambda: self.client.databases.update_cluster_size(uuid, body, **self.plain)
        )
        assert again is not None and again[0] in (409, 422), again
        self.simulator.wait_until(lambda: get()["status"] == "online", 30)
        after = get()
        assert (after["size"], after["num_nodes"]) == (plan, nodes), after
        return None

    def scale(self):
        """Scales a node pool to zero and back."""
        clusters = self.client.kubernetes.list_clusters(**self.plain)["kubernetes_clusters"]
        refused = []
        for cluster in clusters:
            answer = self.client.kubernetes.list_node_pools(cluster["id"], **self.plain)
            for pool in answer["node_pools"]:
                old = {node["id"] for node in pool["nodes"]}
                refusal = self.scaled(cluster["id"], pool, 0, auto_scale=False)
                if refusal:
                    assert refusal[0] == 422, refusal
                    refused.append(pool["name"])
                    continue
                again = self.scaled(
                    cluster["id"], pool, pool["count"], auto_scale=pool["auto_scale"]
                )
                assert again is None, again
                after = self.client.kubernetes.get_node_pool(
                    cluster["id"], pool["id"], **self.plain
                )["node_pool"]
                for field in (
                    "count",
                    "auto_scale",
                    "min_nodes",
                    "max_nodes",
                    "tags",
                    "labels",
                    "taints",
                ):
                    assert after[field] == pool[field], field
                assert not old & {node["id"] for node in after["nodes"]}
                return f"{pool['name']}: {pool['count']} to 0 and back; refused: {refused}"
        raise AssertionError("no pool may be empty")

    def scaled(self, cluster, pool, count, auto_scale):
        """Scales and waits. Returns the refusal, if it is refused."""
        body = {"name": pool["name"], "count": count, "auto_scale": auto_scale}
        body.update({field: pool[field] for field in ("tags", "labels", "taints")})
        if auto_scale:
            body.update(min_nodes=pool["min_nodes"], max_nodes=pool["max_nodes"])

        def update():
            return self.client.kubernetes.update_node_pool(cluster, pool["id"], body, **self.plain)

        refusal = refusal_of(update)
        if refusal:
            return refusal

        def states():
            answer = self.client.kubernetes.get_node_pool(cluster, pool["id"], **self.plain)
            return [node["status"]["state"] for node in answer["node_pool"]["nodes"]]

        self.simulator.wait_until(lambda: states() == ["running"] * count, 15)
        return None


def capacity(plan):
    """Returns a plan's memory and vCPUs, parsed from its name: db-s-1vcpu-2gb."""
    parts = plan.split("-")
    number = {
        unit: int(part[: -len(unit)])
        for part in parts
        for unit in ("vcpu", "gb")
        if part.endswith(unit)
    }
    return number["gb"], number["vcpu"]


class Hetzner:
    """Checks with hcloud."""

    def __init__(self, simulator, token):
        self.simulator = simulator
        # The client polls actions until they finish; simulated time passes instead of each wait.
        self.client = hcloud.Client(
            token=token, api_endpoint=simulator.url + "/v1", poll_interval=self.pass_a_second
        )

    def pass_a_second(self, _retries):
        self.simulator.pass_time(1)
        return 0

    def wrong_token(self):
        client = hcloud.Client(token="wrong", api_endpoint=self.simulator.url + "/v1")
        error = raised(client.servers.get_all)
        assert error.code == "unauthorized", error

    def lists_in_pages(self):
        found, page, pages = [], 1, 0
        while page is not None:
            answer = self.client.servers.get_list(per_page=2, page=page)
            found += [server.id for server in answer.servers]
            page, pages = answer.meta.pagination.next_page, pages + 1
        assert pages > 1
        assert found == [server.id for server in self.client.servers.get_all()]
        return f"{len(found)} servers on {pages} pages"

    def labels_and_location(self):
        labelled = [server for server in self.client.servers.get_all() if server.labels]
        key, value = next(iter(labelled[0].labels.items()))
        chosen = self.client.servers.get_all(label_selector=f"{key}=={value}")
        assert labelled[0].id in [server.id for server in chosen]
        # The client for Python 3.9 does not know the field yet.
        location = getattr(labelled[0].data_model, "location", None)
        assert sys.version_info < (3, 10) or location.name
        return f"{labelled[0].name} is in {location.name}" if location else None

    def unknown(self):
        error = raised(self.client.servers.get_by_id, 1)
        assert error.code == "not_found", error

    def datacenters_are_gone(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            error = raised(self.client.datacenters.get_all)
        assert error.code == "deprecated_api_endpoint", error

    def power(self, server):
        """Shuts down, cuts the power if the guest does not follow, and powers on again."""
        action = server.shutdown()
        assert action.status == "running" and action.command == "shutdown_server"
        server.reload()
        error = raised(server.power_off)
        assert error.code == "locked", error
        action.wait_until_finished()
        server.reload()
        assert server.status == "running" and not server.locked
        self.simulator.pass_time(60)
        server.reload()
        forced = server.status != "off"
        if forced:
            server.power_off().wait_until_finished()
            server.reload()
        assert server.status == "off"
        started = server.power_on()
        assert started.command == "start_server"
        started.wait_until_finished()
        server.reload()
        assert server.status == "running"
        assert self.client.actions.get_by_id(started.id).status == "success"
        commands = [action.command for action in server.get_actions(sort=["id:desc"])]
        assert commands[0] == "start_server", commands
        return f"{server.name}, {'forced' if forced else 'by its guest'}"

    def types(self):
        """Changes a server's type without its disk, and back."""
        server, other = next(
            (server, server_type)
            for server in self.client.servers.get_all()
            for server_type in self.client.server_types.get_all()
            if fits(server, server_type) and fits(server, server.server_type)
            if server_type.name != server.server_type.name
        )
        own, disk = server.server_type, server.primary_disk_size
        # By name: the client sends an id as a number, but the API description requires text.
        for name in (other.name, own.name):
            wanted = ServerType(name=name)
            error = raised(server.change_type, wanted, False)
            assert error.code == "server_not_stopped", error
            server.power_off().wait_until_finished()
            action = server.change_type(wanted, False)
            assert action.command == "change_server_type", action
            server.reload()
            assert server.status == "migrating", server.status
            action.wait_until_finished(max_retries=600)
            server.reload()
            assert server.server_type.name == name
            assert (server.primary_disk_size, server.status) == (disk, "running")
        return f"{server.name}: {own.name} to {other.name} and back"

    def copies(self):
        """Makes an image of a server, deletes the server, and recreates it from the image."""
        server = next(
            server
            for server in self.client.servers.get_all()
            if fits(server, server.server_type) and server.status == "running"
        )
        server.power_off().wait_until_finished()
        made = server.create_image(description="a copy", labels={"mark": "a1"})
        assert made.image.status == "creating", made.image.status
        made.action.wait_until_finished(max_retries=3600)
        (image,) = self.client.images.get_all(type="snapshot", label_selector="mark==a1")
        assert (image.id, image.status) == (made.image.id, "available")
        assert image.created_from.id == server.id and image.image_size > 0
        image.change_protection(delete=True).wait_until_finished()
        error = raised(image.delete)
        assert error.code == "protected", error
        address = self.client.primary_ips.get_by_id(server.public_net.primary_ipv4.id)
        assert address.auto_delete and address.assignee_id == server.id
        assert not address.update(auto_delete=False).auto_delete
        server.delete().wait_until_finished()
        assert raised(server.reload).code == "not_found"

        def create(name):
            return self.client.servers.create(
                name=name,
                server_type=ServerType(name=server.server_type.name),
                # The client sends an id as a number, but the API description requires text.
                image=Image(name=str(image.id)),
                location=Location(name=server.data_model.location.name),
                labels=server.labels,
                public_net=ServerCreatePublicNetwork(ipv4=address, enable_ipv6=False),
                start_after_create=False,
            )

        created = create(server.name)
        error = raised(create, server.name)
        assert error.code == "uniqueness_error", error
        error = raised(create, "another")
        assert error.code == "primary_ip_assigned", error
        created.action.wait_until_finished()
        created.server.reload()
        after = created.server
        assert (after.status, after.labels) == ("off", server.labels)
        assert after.public_net.ipv4.ip == server.public_net.ipv4.ip
        after.power_on().wait_until_finished()
        return f"{server.name}: {server.id} is {after.id} now"

    def catalog(self):
        assert {"fsn1", "nbg1", "hel1"} <= {
            location.name for location in self.client.locations.get_all()
        }
        assert self.client.server_types.get_all()


def fits(server, server_type):
    """Reports whether a server's type can be changed to this one."""
    own, location = server.server_type, server.data_model.location.name
    return (
        (server_type.architecture, server_type.storage_type) == (own.architecture, own.storage_type)
        and server_type.disk >= server.primary_disk_size
        and any(
            found.location.name == location and found.available and found.deprecation is None
            for found in server_type.locations
        )
    )


def raised(call, *arguments):
    """Returns the client's error that a call raises."""
    try:
        call(*arguments)
    except hcloud.APIException as error:
        return error
    raise AssertionError("the call was accepted")


def main(arguments):
    if len(arguments) != 3:
        print(__doc__)
        return 2
    url, do_token, hz_token = arguments
    simulator, checks = Simulator(url.rstrip("/")), Checks()

    do = DigitalOcean(simulator, do_token)
    checks.run("pydo: account", do.account)
    checks.run("pydo: a wrong token is refused", do.wrong_token)
    checks.run("pydo: Droplets in pages", do.lists_in_pages)
    checks.run("pydo: an unknown Droplet", do.unknown)
    first, second = do.own_droplets()[:2]
    checks.run("pydo: power off", do.power, first, "power_off", "off")
    checks.run(
        "pydo: power off again", do.already, first, "power_off", "Droplet is already powered off"
    )
    checks.run("pydo: power on", do.power, first, "power_on", "active")
    checks.run(
        "pydo: power on again", do.already, first, "power_on", "Droplet is already powered on"
    )
    checks.run("pydo: shutdown", do.power, second, "shutdown", "off")
    checks.run("pydo: power on after the shutdown", do.power, second, "power_on", "active")
    checks.run("pydo: Droplet resize", do.sizes, second)
    checks.run("pydo: snapshot, deletion, Droplet from the snapshot", do.copies, second)
    checks.run("pydo: databases and options", do.databases)
    checks.run("pydo: database resize", do.resize)
    checks.run("pydo: node pool scale", do.scale)

    hz = Hetzner(simulator, hz_token)
    checks.run("hcloud: a wrong token is refused", hz.wrong_token)
    checks.run("hcloud: servers in pages", hz.lists_in_pages)
    checks.run("hcloud: labels and location", hz.labels_and_location)
    checks.run("hcloud: an unknown server", hz.unknown)
    checks.run("hcloud: datacenters are gone", hz.datacenters_are_gone)
    checks.run("hcloud: locations and server types", hz.catalog)
    for server in hz.client.servers.get_all()[:2]:
        checks.run("hcloud: shutdown, power off, power on", hz.power, server)
    checks.run("hcloud: change of type", hz.types)
    checks.run("hcloud: image, deletion, server from the image", hz.copies)

    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
