"""examples/kubernetes: the schemas of Kubernetes accept its objects, and the names in them fit each other."""

from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="no PyYAML: run `make .venv/tested`")
kubernetes_validate = pytest.importorskip(
    "kubernetes_validate", reason="no kubernetes-validate: run `make .venv/tested`"
)

FOLDER = Path(__file__).parents[2] / "examples" / "kubernetes"
SHARED = FOLDER.parent / "high-availability"
VERSIONS = ("1.30", "1.37")


def documents() -> list[dict[str, Any]]:
    """All objects that `kubectl apply -k` makes of files here; the ConfigMap is made of those that a list names."""
    kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    files = [FOLDER / name for name in kustomization["resources"] if name.endswith(".yaml")]
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def named(kind: str, name: str) -> dict[str, Any]:
    return next(one for one in documents() if (one["kind"], one["metadata"]["name"]) == (kind, name))


def containers() -> dict[str, Any]:
    return {one["name"]: one for one in named("StatefulSet", "penstock")["spec"]["template"]["spec"]["containers"]}


def values(container: str) -> dict[str, str]:
    return {one["name"]: one["value"] for one in containers()[container]["env"] if "value" in one}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("document", documents(), ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_the_schema_accepts_each_object(document: dict[str, Any], version: str) -> None:
    assert kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_refuses_a_word_that_there_is_not() -> None:
    wrong = named("StatefulSet", "penstock")
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_object_and_file_is_named_by_a_list() -> None:
    there = {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml"}
    lists = [yaml.safe_load((folder / "kustomization.yaml").read_text()) for folder in (FOLDER, SHARED)]
    made = lists[1]["configMapGenerator"]

    assert set(lists[0]["resources"]) == there | {"../high-availability"}
    assert [one["name"] for one in made] == ["penstock-files"]
    assert set(made[0]["files"]) == {path.name for path in SHARED.iterdir()} - {"kustomization.yaml"}


def test_servers_and_sentinels_are_told_the_names_that_the_pods_have() -> None:
    servers = named("StatefulSet", "penstock")["spec"]
    assert named("Service", servers["serviceName"])["spec"]["clusterIP"] == "None"
    names = [f"penstock-{number}.{servers['serviceName']}" for number in range(servers["replicas"])]
    told = {"NAME": f"$(POD).{servers['serviceName']}", "FIRST": names[0], "SENTINELS": " ".join(names)}

    assert values("server") == values("sentinel") == told


def test_all_that_is_mounted_or_read_is_there() -> None:
    servers = named("StatefulSet", "penstock")["spec"]
    volumes = {one["name"]: one for one in servers["template"]["spec"]["volumes"]}
    claims = {one["metadata"]["name"] for one in servers["volumeClaimTemplates"]}
    secrets = [one["valueFrom"]["secretKeyRef"] for one in containers()["server"]["env"] if "secretKeyRef" in str(one)]

    assert volumes["files"]["configMap"]["name"] == "penstock-files"
    assert {mount["name"] for one in containers().values() for mount in one["volumeMounts"]} == set(volumes) | claims
    assert {one["key"] for one in secrets} == set(named("Secret", "penstock-passwords")["stringData"])


def test_objects_choose_the_pods_by_their_label_and_ports_that_they_have() -> None:
    label = named("StatefulSet", "penstock")["spec"]["template"]["metadata"]["labels"]
    services = [one["spec"] for one in documents() if one["kind"] == "Service"]
    ports = {one["ports"][0]["name"]: one["ports"][0]["containerPort"] for one in containers().values()}

    assert [one["selector"] for one in services] == [label] * 2
    assert named("PodDisruptionBudget", "penstock")["spec"]["selector"]["matchLabels"] == label
    assert named("StatefulSet", "penstock")["spec"]["selector"]["matchLabels"] == label
    assert [{port["name"]: port["port"] for port in one["ports"]} for one in services] == [
        ports,
        {"sentinel": ports["sentinel"]},
    ]


def test_each_container_is_probed_and_may_write_its_volume_alone() -> None:
    probes = {"startupProbe", "readinessProbe", "livenessProbe"}

    assert [probes - one.keys() for one in containers().values()] == [set()] * 2
    assert {str(one["securityContext"]) for one in containers().values()} == {
        str({"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
    }
