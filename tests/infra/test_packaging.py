"""The image, the compose file and the manifests are valid, and agree with each other."""

import re
from pathlib import Path

import kubernetes_validate
import yaml
from compose_spec import PyCompose
from template import ROOT

PACKAGING = ROOT / "packaging"
DOCKERFILE = (PACKAGING / "Dockerfile").read_text()
MANIFESTS = list(yaml.safe_load_all((PACKAGING / "kubernetes.yaml").read_text()))


def manifest(kind: str) -> dict:
    (found,) = (one for one in MANIFESTS if one["kind"] == kind)
    return found


def test_the_manifests_have_no_field_that_kubernetes_does_not_know():
    for one in MANIFESTS:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_the_compose_file_follows_its_specification():
    compose = PyCompose.from_yaml((PACKAGING / "compose.yaml").read_text())
    assert compose.service_names() == ["offhours"]


def test_the_user_of_the_image_is_the_one_for_whom_volumes_are_mounted():
    (user,) = re.findall(r"(?m)^USER (\d+):\1$", DOCKERFILE)
    assert int(user) > 0
    assert f"--uid {user} " in DOCKERFILE
    assert f"--gid {user} " in DOCKERFILE
    assert f"--chown={user}:{user} /data /data" in DOCKERFILE
    security = manifest("Deployment")["spec"]["template"]["spec"]["securityContext"]
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        assert security[key] == int(user), key


def test_two_processes_never_work_on_one_store():
    deployment = manifest("Deployment")["spec"]
    assert deployment["replicas"] == 1
    assert deployment["strategy"] == {"type": "Recreate"}


def test_each_container_runs_on_a_read_only_root_without_rights():
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    compose = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
    (service,) = compose["services"].values()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_tokens_are_mounted_so_that_the_service_accepts_them():
    """A file that others can read is refused; the group may read one of root's."""
    volumes = manifest("Deployment")["spec"]["template"]["spec"]["volumes"]
    (secret,) = (volume["secret"] for volume in volumes if "secret" in volume)
    assert secret["defaultMode"] == 0o440


def test_the_unit_and_the_image_run_the_allocator_as_it_is_measured():
    def settings(path: Path) -> list[str]:
        return re.findall(r"MIMALLOC_\w+=\d", path.read_text().replace('": "', "="))

    measured = settings(ROOT / "tests" / "bench" / "idle.py")
    assert len(measured) == 2
    assert settings(PACKAGING / "offhours.service") == measured
    assert settings(PACKAGING / "Dockerfile") == measured
