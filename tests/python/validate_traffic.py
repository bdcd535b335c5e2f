"""Validates recorded HTTP exchanges against both clouds' OpenAPI descriptions.

    validate_traffic.py SPEC_DIR EXCHANGES.jsonl
    validate_traffic.py --self-test SPEC_DIR

SPEC_DIR holds `digitalocean.openapi.yaml` and `hetzner.v1.openapi.json`. The exchanges are JSON
lines as the simulator's `GET /_simulator/exchanges` returns them; `-` reads standard input.

Each violation is printed with the exchange's number, its place and the reason. The exit code is 1
if there is any, and 2 if there is nothing to validate. `--self-test` gives the validator deliberate
violations, each of which it must find, and good exchanges, in which it must find none.

An exchange affected by a fault (`"faulty": true`) has an answer that is not the cloud's own: only
its request is validated. A body that the simulator has since forgotten is skipped.
"""

import json
import pathlib
import re
import sys
from urllib.parse import parse_qsl, unquote

import yaml
from openapi_schema_validator import (
    OAS30ReadValidator,
    OAS30WriteValidator,
    OAS31Validator,
    oas30_format_checker,
    oas31_format_checker,
)
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


class Description:
    """One cloud's OpenAPI description."""

    def __init__(self, document, uri):
        self.document = document
        self.uri = uri
        resource = Resource.from_contents(document, default_specification=DRAFT202012)
        self.registry = Registry().with_resource(uri, resource)
        self.is_31 = document["openapi"].startswith("3.1")
        # Fixed paths come before those with parameters: /v2/droplets/actions.
        paths = sorted(document["paths"], key=lambda path: path.count("{"))
        self.paths = [(path, pattern_of(path)) for path in paths]

    def find(self, path):
        """Returns the path's template and the values of its parameters, or None."""
        for template, pattern in self.paths:
            match = pattern.fullmatch(path)
            if match:
                return template, {name: unquote(text) for name, text in match.groupdict().items()}
        return None

    def resolve(self, pointer):
        """Returns the node at a pointer after following references, and its own pointer."""
        node = self.document
        for part in pointer:
            node = node[part]
        while isinstance(node, dict) and "$ref" in node:
            parts = node["$ref"][len("#/") :].split("/")
            pointer = [part.replace("~1", "/").replace("~0", "~") for part in parts]
            node = self.document
            for part in pointer:
                node = node[part]
        return node, pointer

    def errors(self, pointer, value, direction):
        """Yields what is wrong with a value, according to the schema at a pointer."""
        parts = [str(part).replace("~", "~0").replace("/", "~1") for part in pointer]
        schema = {"$ref": self.uri + "#/" + "/".join(parts)}
        if self.is_31:
            kind, checker = OAS31Validator, oas31_format_checker
        else:
            kind = OAS30WriteValidator if direction == "request" else OAS30ReadValidator
            checker = oas30_format_checker
        validator = kind(schema, registry=self.registry, format_checker=checker)
        for error in validator.iter_errors(value):
            yield from most_specific(error)


def pattern_of(template):
    """Returns the expression that matches the paths of a template."""
    parts = re.split(r"\{(\w+)\}", template)
    fixed = [
        re.escape(part) if index % 2 == 0 else f"(?P<{part}>[^/]+)"
        for index, part in enumerate(parts)
    ]
    return re.compile("".join(fixed))


def most_specific(error):
    """Yields an error's place and message; for alternatives, why at most three do not fit."""
    place = "/".join(str(part) for part in error.absolute_path) or "(whole)"
    message = error.message if len(error.message) < 300 else error.message[:300] + "…"
    if error.validator in ("anyOf", "oneOf") and error.context:
        inner = sorted({cause.message[:160] for cause in error.context})
        message = f"fits no alternative of {error.validator}: " + "; ".join(inner[:3])
    yield place, message


def parsed(text, schema):
    """Converts a parameter's text to the schema's type. Returns the text itself if that fails."""
    kind = schema.get("type")
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
    except ValueError:
        return text
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


class Validator:
    """Validates one exchange after the other against both clouds' descriptions."""

    def __init__(self, spec_dir):
        spec_dir = pathlib.Path(spec_dir)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # Timestamps in examples must stay text.
        loader = type("Loader", (loader,), {})
        loader.yaml_implicit_resolvers = {
            first: [
                (tag, expression) for tag, expression in resolvers if not tag.endswith(":timestamp")
            ]
            for first, resolvers in loader.yaml_implicit_resolvers.items()
        }
        with open(spec_dir / "digitalocean.openapi.yaml", encoding="utf-8") as file:
            self.digitalocean = Description(yaml.load(file, loader), "urn:digitalocean")
        with open(spec_dir / "hetzner.v1.openapi.json", encoding="utf-8") as file:
            self.hetzner = Description(json.load(file), "urn:hetzner")

    def violations(self, exchange):
        """Yields everything that is wrong with an exchange: where, and why."""
        request, answer = exchange["request"], exchange["answer"]
        method, path = request["method"].lower(), request["path"]
        description = self.hetzner if path.startswith("/v1/") else self.digitalocean
        found = description.find(path)
        if not found:
            yield "request path", f"{path} is no path of the API"
            return
        template, values = found
        item = description.document["paths"][template]
        if method not in METHODS or method not in item:
            yield "request method", f"{template} has no {method.upper()}"
            return
        pointer = ["paths", template, method]
        yield from self.request_violations(description, pointer, request, values)
        if answer is None or exchange.get("faulty"):
            return
        if (
            not request["authorization"]
            and answer["status"] != 401
            and item[method].get("security") != []
        ):
            yield "answer status", f"{answer['status']} though the request had no authorization"
        yield from self.answer_violations(description, pointer, answer)

    def request_violations(self, description, pointer, request, values):
        operation, _ = description.resolve(pointer)
        parameters = {}
        for owner in (pointer[:-1], pointer):
            for index, _ in enumerate(description.resolve(owner)[0].get("parameters", [])):
                parameter, at = description.resolve([*owner, "parameters", index])
                parameters[(parameter["in"], parameter["name"])] = (parameter, [*at, "schema"])
        query = {}
        for name, text in parse_qsl(request["query"], keep_blank_values=True):
            query.setdefault(name, []).append(text)
        for name in query:
            if ("query", name) not in parameters:
                yield f"request query {name}", "the API has no such parameter here"
        for (place, name), (parameter, schema_at) in parameters.items():
            if place == "path":
                texts = [values[name]] if name in values else []
            elif place == "query":
                texts = query.get(name, [])
            else:
                continue
            if not texts:
                if parameter.get("required"):
                    yield f"request {place} {name}", "is required"
                continue
            schema, _ = description.resolve(schema_at)
            if schema.get("type") == "array":
                value = [
                    parsed(text, description.resolve([*schema_at, "items"])[0]) for text in texts
                ]
            elif len(texts) > 1:
                yield f"request {place} {name}", "is given more than once"
                continue
            else:
                value = parsed(texts[0], schema)
            for _, why in description.errors(schema_at, value, "request"):
                yield f"request {place} {name}", why
        yield from self.request_body_violations(description, pointer, operation, request)

    def request_body_violations(self, description, pointer, operation, request):
        body, content_type = request["body"], request["content_type"]
        if "requestBody" not in operation:
            if body:
                yield "request body", "this operation takes no body"
            if content_type:
                yield "request content-type", f"{content_type}, though this operation takes no body"
            return
        declared, at = description.resolve([*pointer, "requestBody"])
        if not body:
            if declared.get("required"):
                yield "request body", "is required"
            return
        yield from self.content_violations(
            description, [*at, "content"], content_type, body, "request"
        )

    def answer_violations(self, description, pointer, answer):
        responses = description.resolve([*pointer, "responses"])[0]
        status = str(answer["status"])
        exact = [status, status[0] + "XX", status[0] + "xx", "default"]
        key = next((key for key in exact if key in responses), None)
        if key is None:
            yield "answer status", f"{status} is not declared"
            return
        response, at = description.resolve([*pointer, "responses", key])
        headers = {name.lower(): text for name, text in answer["headers"].items()}
        for name in response.get("headers", {}):
            header, header_at = description.resolve([*at, "headers", name])
            text = headers.get(name.lower())
            if text is None:
                if header.get("required"):
                    yield f"answer header {name}", "is required"
            elif "schema" in header:
                schema_at = [*header_at, "schema"]
                value = parsed(text, description.resolve(schema_at)[0])
                for _, why in description.errors(schema_at, value, "answer"):
                    yield f"answer header {name}", why
        if answer.get("forgotten"):
            return
        if not response.get("content"):
            if answer["body"]:
                yield "answer body", f"{status} has none"
            return
        content_type = headers.get("content-type")
        yield from self.content_violations(
            description, [*at, "content"], content_type, answer["body"], "answer"
        )

    def content_violations(self, description, content_at, content_type, body, direction):
        content = description.resolve(content_at)[0]
        media = (content_type or "").split(";")[0].strip().lower()
        if media not in content:
            yield f"{direction} content-type", f"{content_type} instead of {' or '.join(content)}"
            return
        try:
            value = json.loads(body)
        except ValueError as error:
            yield f"{direction} body", f"no JSON: {error}"
            return
        if "schema" in content[media]:
            for place, why in description.errors([*content_at, media, "schema"], value, direction):
                yield f"{direction} body {place}", why


def exchange_of(method, path, status, answer, body=None, query="", **changes):
    """Builds an exchange for the self-test."""
    text = "" if body is None else json.dumps(body)
    return {
        "sequence": 0,
        "faulty": changes.get("faulty", False),
        "request": {
            "method": method,
            "path": path,
            "query": query,
            "content_type": changes.get("content_type", "application/json" if text else None),
            "authorization": changes.get("authorization", True),
            "body": text,
        },
        "answer": {
            "status": status,
            "headers": {
                "content-type": changes.get("answer_type", "application/json"),
                "ratelimit-remaining": changes.get("remaining", "4999"),
            },
            "body": "" if answer is None else json.dumps(answer),
        },
    }


DATABASE = "/v2/databases/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
POOL = (
    "/v2/kubernetes/clusters/bd5f5959-5e1e-4205-a714-a914373942af"
    "/node_pools/cdda885e-7663-40c8-bc74-3a036c66545d"
)
POWEROFF = "/v1/servers/42/actions/poweroff"
ACTION = {"action": {"id": 1, "status": "in-progress", "type": "power_off", "completed_at": None}}
SERVER_ACTION = {
    "action": {
        "id": 1,
        "command": "stop_server",
        "status": "running",
        "started": "2026-11-23T07:00:00Z",
        "finished": None,
        "progress": 0,
        "resources": [{"id": 42, "type": "server"}],
        "error": None,
    }
}
RESIZE = {"size": "db-s-1vcpu-1gb", "num_nodes": 1}
UPDATED = {"node_pool": {"name": "general", "size": "s-1vcpu-2gb", "count": 0, "labels": None}}
UPDATE = {"name": "general", "count": 0, "auto_scale": False, "labels": None}
REFUSED = {"id": "unprocessable_entity", "message": "no"}
LOCKED = {"error": {"code": "locked", "message": "locked", "details": None}}


def good_exchanges():
    """Yields exchanges in which nothing may be found."""
    droplet = "/v2/droplets/1/actions"
    yield exchange_of("POST", droplet, 201, ACTION, {"type": "power_off"})
    yield exchange_of(
        "POST", "/v2/droplets/actions", 201, {"actions": []}, {"type": "power_off"}, "tag_name=web"
    )
    yield exchange_of("POST", droplet, 422, REFUSED, {"type": "power_off"})
    yield exchange_of("PUT", f"{DATABASE}/resize", 202, None, RESIZE)
    yield exchange_of("PUT", POOL, 202, UPDATED, UPDATE)
    yield exchange_of("GET", "/v2/databases", 200, {"databases": []})
    yield exchange_of("GET", "/v2/databases/options", 200, {"options": {}})
    yield exchange_of("POST", POWEROFF, 201, SERVER_ACTION)
    yield exchange_of("POST", POWEROFF, 423, LOCKED)
    yield exchange_of("GET", "/v1/actions", 200, {"actions": []}, query="id=1&id=2")
    yield exchange_of("GET", "/v2/account", 200, "<html>", faulty=True)


def bad_exchanges():
    """Yields deliberate violations: where each must be found, and its exchange."""
    droplet = "/v2/droplets/1/actions"
    yield (
        "request body (whole)",
        exchange_of("PUT", f"{DATABASE}/resize", 202, None, {"size": "db-s-1vcpu-1gb"}),
    )
    yield (
        "request body num_nodes",
        exchange_of("PUT", f"{DATABASE}/resize", 202, None, {**RESIZE, "num_nodes": "1"}),
    )
    yield "request body", exchange_of("PUT", f"{DATABASE}/resize", 202, None)
    yield "request body (whole)", exchange_of("POST", droplet, 201, ACTION, {"type": "explode"})
    yield "request body (whole)", exchange_of("PUT", POOL, 202, UPDATED, {"count": 0})
    yield "request body count", exchange_of("PUT", POOL, 202, UPDATED, {**UPDATE, "count": None})
    yield "request body", exchange_of("POST", POWEROFF, 201, SERVER_ACTION, {})
    yield (
        "request content-type",
        exchange_of("POST", POWEROFF, 201, SERVER_ACTION, content_type="application/json"),
    )
    yield (
        "request content-type",
        exchange_of("POST", droplet, 201, ACTION, {"type": "power_off"}, content_type="text/plain"),
    )
    yield "request path droplet_id", exchange_of("GET", "/v2/droplets/abc", 404, REFUSED)
    yield (
        "request path database_cluster_uuid",
        exchange_of("GET", "/v2/databases/abc", 404, REFUSED),
    )
    yield "request path", exchange_of("GET", "/v2/nowhere", 404, REFUSED)
    # Deleting by tag: the documents omit it on purpose.
    yield (
        "request method",
        exchange_of("DELETE", "/v2/droplets", 405, REFUSED, query="tag_name=web"),
    )
    yield (
        "request query per_page",
        exchange_of(
            "GET", "/v2/droplets", 200, {"droplets": [], "meta": {"total": 0}}, query="per_page=201"
        ),
    )
    yield (
        "request query page",
        exchange_of("GET", "/v2/databases", 200, {"databases": []}, query="page=1"),
    )
    yield "request query id", exchange_of("GET", "/v1/actions", 200, {"actions": []})
    yield (
        "request query status",
        exchange_of("GET", "/v1/servers/actions", 200, {"actions": []}, query="status=done"),
    )
    yield (
        "answer body action/id",
        exchange_of("POST", droplet, 201, {"action": {"id": "1"}}, {"type": "power_off"}),
    )
    yield "answer body (whole)", exchange_of("GET", "/v2/droplets", 200, {"droplets": []})
    yield (
        "answer body action/status",
        exchange_of(
            "POST", POWEROFF, 201, {"action": {**SERVER_ACTION["action"], "status": "done"}}
        ),
    )
    yield (
        "answer body action/started",
        exchange_of(
            "POST", POWEROFF, 201, {"action": {**SERVER_ACTION["action"], "started": "yesterday"}}
        ),
    )
    yield "answer body", exchange_of("PUT", f"{DATABASE}/resize", 202, {"database": {}}, RESIZE)
    yield "answer body error", exchange_of("POST", POWEROFF, 423, {"error": {"code": "locked"}})
    yield "answer body (whole)", exchange_of("GET", "/v2/account", 401, {"error": "unauthorized"})
    yield "answer status", exchange_of("POST", POWEROFF, 415, LOCKED)
    yield (
        "answer status",
        exchange_of("GET", "/v2/databases", 200, {"databases": []}, authorization=False),
    )
    yield (
        "answer content-type",
        exchange_of("GET", "/v2/databases", 200, {"databases": []}, answer_type="text/html"),
    )
    yield (
        "answer header ratelimit-remaining",
        exchange_of("GET", "/v2/databases", 200, {"databases": []}, remaining="many"),
    )


def self_test(validator):
    """Runs the self-test and prints what went wrong. Returns the exit code."""
    checks = failed = 0
    for exchange in good_exchanges():
        checks += 1
        found = list(validator.violations(exchange))
        if found:
            failed += 1
            print(f"a good exchange was refused: {exchange['request']['path']}: {found}")
    for expected, exchange in bad_exchanges():
        checks += 1
        found = [where for where, _ in validator.violations(exchange)]
        if expected not in found:
            failed += 1
            print(f"not found: {expected} in {exchange['request']['path']}; found {found}")
    print(f"{checks - failed} passed, {failed} failed")
    return 1 if failed else 0


def validate(validator, lines):
    """Prints all violations. Returns the exit code."""
    checked = violated = 0
    for line in lines:
        if not line.strip():
            continue
        exchange = json.loads(line)
        request = exchange["request"]
        checked += 1
        for where, why in validator.violations(exchange):
            violated += 1
            print(f"#{exchange['sequence']} {request['method']} {request['path']}: {where}: {why}")
    print(f"{checked} exchanges, {violated} violations")
    if not checked:
        return 2
    return 1 if violated else 0


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--self-test":
        return self_test(Validator(arguments[1]))
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    validator = Validator(arguments[0])
    if arguments[1] == "-":
        return validate(validator, sys.stdin)
    with open(arguments[1], encoding="utf-8") as lines:
        return validate(validator, lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
