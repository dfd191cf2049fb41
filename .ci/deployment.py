"""Checks that the settings in different files of a deployment agree."""

import configparser
import pathlib
import re

import dockerfile_parse
import yaml

MIB = 1 << 20
MANIFESTS = pathlib.Path("docs/deploy/kubernetes")


def default(key):
    """The default of a setting, as the program has it."""
    source = pathlib.Path("src/config.rs").read_text()
    before, _, _ = source.partition(f"pub {key}: ")
    default = re.findall(r"default_value = ([^,\s]+)", before)[-1]
    constant = re.search(rf"const {default}: &str = ([^;]+);", source)
    return (constant.group(1) if constant else default).strip('"')


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|)", str(text)).groups()
    return int(number) * (60 if unit == "m" else 1)


def size(text):
    number, unit = re.fullmatch(r"(\d+)([mMgG])i?", text).groups()
    return int(number) * (MIB if unit in "mM" else 1024 * MIB)


def check(fact, truth):
    if not truth:
        raise SystemExit(f"wrong: {fact}")
    print(f"   {fact}")


def main():
    grace = seconds(default("shutdown_grace"))
    inflight = int(default("max_inflight_bytes"))
    port = int(default("listen").rpartition(":")[2])

    image = dockerfile_parse.DockerfileParser("Dockerfile")
    check("the image listens on the default port", image.envs["EXPERTISE_LISTEN"] == f"0.0.0.0:{port}")
    lines = {(line["instruction"], line["value"]) for line in image.structure}
    check("the image exposes it", ("EXPOSE", str(port)) in lines)

    compose = yaml.safe_load(pathlib.Path("compose.yaml").read_text())["services"]["expertise"]
    check("compose publishes it on loopback", compose["ports"] == [f"127.0.0.1:{port}:{port}"])
    check("compose waits longer than the grace", seconds(compose["stop_grace_period"]) > grace)
    check("the memory limit in compose is twice EXPERTISE_MAX_INFLIGHT_BYTES", size(compose["mem_limit"]) == 2 * inflight)

    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read("docs/deploy/expertise.service")
    service = unit["Service"]
    check("systemd waits longer than the grace", seconds(service["TimeoutStopSec"]) > grace)
    check("the memory limit in systemd is twice EXPERTISE_MAX_INFLIGHT_BYTES", size(service["MemoryMax"]) == 2 * inflight)

    files = {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}
    documents = {name: yaml.safe_load((MANIFESTS / name).read_text()) for name in files}
    kustomization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    check("kustomization lists every manifest", set(kustomization["resources"]) == files)
    pod = documents["deployment.yaml"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    check("kustomization names the image", kustomization["images"][0]["name"] == container["image"])
    settings = {entry["name"]: entry.get("value") for entry in container["env"]}
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = seconds(settings["EXPERTISE_SHUTDOWN_GRACE"])
    termination_grace = pod["spec"]["terminationGracePeriodSeconds"]
    check("Kubernetes waits longer than pause and grace", termination_grace > pause + grace)
    limit = container["resources"]["limits"]["memory"]
    check("the memory limit in Kubernetes is twice EXPERTISE_MAX_INFLIGHT_BYTES", size(limit) == 2 * inflight)
    check("the container listens on the port", settings["EXPERTISE_LISTEN"] == f"0.0.0.0:{port}")
    check("the container names the port", container["ports"] == [{"name": "grpc", "containerPort": port}])
    probed = {container[probe]["grpc"]["port"] for probe in ("startupProbe", "readinessProbe")}
    check("the probes use the port", probed == {port})
    (served,) = documents["service.yaml"]["spec"]["ports"]
    check("the service uses the port", (served["port"], served["targetPort"]) == (port, "grpc"))
    labels = pod["metadata"]["labels"]
    selectors = [
        documents["deployment.yaml"]["spec"]["selector"]["matchLabels"],
        documents["service.yaml"]["spec"]["selector"],
        documents["poddisruptionbudget.yaml"]["spec"]["selector"]["matchLabels"],
        documents["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    check("all selectors match the pods", all(selector == labels for selector in selectors))


main()
