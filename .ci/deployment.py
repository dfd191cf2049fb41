"""Checks that the settings in different files of a deployment agree."""

import configparser
import pathlib
import re

import dockerfile_parse
import yaml

MIB = 1 << 20
# Where the deployments serve metrics.
METRICS_PORT = 9464
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
    published = [f"127.0.0.1:{it}:{it}" for it in (port, METRICS_PORT)]
    check("compose publishes it and metrics on loopback", compose["ports"] == published)
    metrics = f"0.0.0.0:{METRICS_PORT}"
    check("compose serves metrics", compose["environment"]["EXPERTISE_METRICS_LISTEN"] == metrics)
    check("compose waits longer than the grace", seconds(compose["stop_grace_period"]) > grace)
    check("the memory limit in compose is twice EXPERTISE_MAX_INFLIGHT_BYTES", size(compose["mem_limit"]) == 2 * inflight)

    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read("docs/deploy/expertise.service")
    service = unit["Service"]
    unit_text = pathlib.Path("docs/deploy/expertise.service").read_text()
    loopback = f"Environment=EXPERTISE_METRICS_LISTEN=127.0.0.1:{METRICS_PORT}\n"
    check("systemd serves metrics on loopback", loopback in unit_text)
    page = pathlib.Path("docs/deploy/README.md").read_text()
    installed = re.search(r"cargo build .*--(\w+)", page).group(1)
    check("the page of systemd builds what it installs", f"install target/{installed}/expertise {service['ExecStart'].split()[0]}" in page)
    check("systemd restarts it as often as needed", unit["Unit"]["StartLimitIntervalSec"] == "0")
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
    check("the container serves metrics", settings["EXPERTISE_METRICS_LISTEN"] == metrics)
    ports = {entry["name"]: entry["containerPort"] for entry in container["ports"]}
    check("the container names the ports", ports == {"grpc": port, "metrics": METRICS_PORT})
    annotations = pod["metadata"]["annotations"]
    check("Prometheus finds the metrics", annotations["prometheus.io/port"] == str(METRICS_PORT))
    check("the readiness probe uses the port", container["readinessProbe"]["grpc"]["port"] == port)
    restarting = [container[probe]["tcpSocket"]["port"] for probe in ("startupProbe", "livenessProbe")]
    check("a pod that waits for its database is not restarted", restarting == ["grpc", "grpc"])
    served = [(it["port"], it["targetPort"]) for it in documents["service.yaml"]["spec"]["ports"]]
    check("the service uses the ports", served == [(port, "grpc"), (METRICS_PORT, "metrics")])
    allowed = [rule["ports"] for rule in documents["networkpolicy.yaml"]["spec"]["ingress"]]
    check("the network policy names the ports", allowed == [[{"port": name}] for name in ports])
    component = yaml.safe_load((MANIFESTS / "migrate/kustomization.yaml").read_text())
    patch = yaml.safe_load(component["patches"][0]["patch"])["spec"]["template"]["spec"]
    (migrating,), (patched,) = patch["initContainers"], patch["containers"]
    check("the init container has the image of the servers", migrating["image"] == container["image"])
    check("it may do no more than they", migrating["securityContext"] == container["securityContext"])
    check("the servers do not migrate then", patched == {"name": container["name"], "env": [{"name": "EXPERTISE_MIGRATE", "value": "false"}]})
    labels = pod["metadata"]["labels"]
    selectors = [
        documents["deployment.yaml"]["spec"]["selector"]["matchLabels"],
        documents["service.yaml"]["spec"]["selector"],
        documents["poddisruptionbudget.yaml"]["spec"]["selector"]["matchLabels"],
        documents["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    check("all selectors match the pods", all(selector == labels for selector in selectors))


main()
