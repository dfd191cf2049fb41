"""Checks that the files of a deployment agree with each other and with the service.

Usage: deployment.py BINARY, which prints its default settings, and says whether those of a deployment are valid.
"""

import configparser
import pathlib
import re
import subprocess
import sys
import tomllib

import yaml

MANIFESTS = pathlib.Path("docs/deploy/kubernetes")


def config(**settings):
    done = subprocess.run([sys.argv[1], "config"], env=settings, capture_output=True, text=True)
    check(f"these settings are valid: {', '.join(settings) or 'the defaults'} {done.stderr}", not done.stderr)
    return tomllib.loads(done.stdout)


def read(path):
    return yaml.safe_load(pathlib.Path(path).read_text())


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|)", str(text)).groups()
    return int(number) * (60 if unit == "m" else 1)


def is_twice_the_inflight_bytes(text):
    number, unit = re.fullmatch(r"(\d+)([mMgG])i?", text).groups()
    return int(number) << (20 if unit in "mM" else 30) == 2 * DEFAULT["max_inflight_bytes"]


def check(fact, truth):
    if not truth:
        raise SystemExit(f"wrong: {fact}")
    print(f"   {fact}")


def check_image_and_compose():
    image = pathlib.Path("Dockerfile").read_text()
    check("the image listens on the default port", f"ENV EXPERTISE_LISTEN=0.0.0.0:{PORT}\nEXPOSE {PORT}\n" in image)
    compose = read("compose.yaml")["services"]["expertise"]
    settings = compose["environment"]
    config(**{name: re.sub(r"\$\{.*\}", "secret", text) for name, text in settings.items()}, EXPERTISE_LISTEN=f"0.0.0.0:{PORT}")
    published = [f"127.0.0.1:{it}:{it}" for it in (PORT, METRICS_PORT)]
    check("compose publishes it and metrics on loopback", compose["ports"] == published)
    check("compose serves metrics", settings["EXPERTISE_METRICS_LISTEN"] == METRICS)
    check("compose waits longer than the grace", seconds(compose["stop_grace_period"]) > GRACE)
    check("compose limits the memory", is_twice_the_inflight_bytes(compose["mem_limit"]))


def check_systemd():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read("docs/deploy/expertise.service")
    service = unit["Service"]
    page = pathlib.Path("docs/deploy/README.md").read_text()
    profile = re.search(r"cargo build .*--profile (\w+)", page).group(1)
    program = service["ExecStart"].split()[0]
    check("the page of systemd builds what it installs", f"install target/{profile}/expertise {program}" in page)
    check("systemd waits longer than the grace", seconds(service["TimeoutStopSec"]) > GRACE)
    check("systemd limits the memory", is_twice_the_inflight_bytes(service["MemoryMax"]))


def check_kubernetes():
    files = {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}
    documents = {name: read(MANIFESTS / name) for name in files}
    kustomization = read(MANIFESTS / "kustomization.yaml")
    check("kustomization lists every manifest", set(kustomization["resources"]) == files)
    deployment, service, policy, budget = (
        documents[f"{name}.yaml"]["spec"] for name in ("deployment", "service", "networkpolicy", "poddisruptionbudget")
    )
    pod = deployment["template"]
    (container,) = pod["spec"]["containers"]
    check("kustomization names the image", kustomization["images"][0]["name"] == container["image"])
    secret = "postgres://expertise:secret@postgres/expertise"
    settings = {entry["name"]: entry.get("value", secret) for entry in container["env"]}
    config(**settings)
    grace = seconds(settings["EXPERTISE_SHUTDOWN_GRACE"]) + container["lifecycle"]["preStop"]["sleep"]["seconds"]
    check("Kubernetes waits longer than pause and grace", pod["spec"]["terminationGracePeriodSeconds"] > grace)
    check("Kubernetes limits the memory", is_twice_the_inflight_bytes(container["resources"]["limits"]["memory"]))
    listens = (settings["EXPERTISE_LISTEN"], settings["EXPERTISE_METRICS_LISTEN"])
    check("the container listens on the ports", listens == (f"0.0.0.0:{PORT}", METRICS))
    ports = {entry["name"]: entry["containerPort"] for entry in container["ports"]}
    check("it names them", ports == {"grpc": PORT, "metrics": METRICS_PORT})
    annotated = pod["metadata"]["annotations"]["prometheus.io/port"]
    check("Prometheus finds the metrics", annotated == str(METRICS_PORT))
    check("the readiness probe uses the port", container["readinessProbe"]["grpc"]["port"] == PORT)
    restarting = [container[probe]["tcpSocket"]["port"] for probe in ("startupProbe", "livenessProbe")]
    check("a pod that waits for its database is not restarted", restarting == ["grpc", "grpc"])
    served = [(it["port"], it["targetPort"]) for it in service["ports"]]
    check("the service uses the ports", served == [(PORT, "grpc"), (METRICS_PORT, "metrics")])
    allowed = [rule["ports"] for rule in policy["ingress"]]
    check("the network policy names them", allowed == [[{"port": name}] for name in ports])
    selectors = [deployment["selector"], budget["selector"], policy["podSelector"]]
    selectors = [selector["matchLabels"] for selector in selectors] + [service["selector"]]
    check("all selectors match the pods", all(it == pod["metadata"]["labels"] for it in selectors))
    patch = yaml.safe_load(read(MANIFESTS / "migrate/kustomization.yaml")["patches"][0]["patch"])["spec"]["template"]["spec"]
    (migrating,), (patched,) = patch["initContainers"], patch["containers"]
    same = all(migrating[it] == container[it] for it in ("image", "securityContext"))
    check("the init container is like the servers", same)
    check("the servers do not migrate then", patched["env"] == [{"name": "EXPERTISE_MIGRATE", "value": "false"}])


DEFAULT = config()
PORT = int(DEFAULT["listen"].rpartition(":")[2])
GRACE = seconds(DEFAULT["shutdown_grace"])
# Where the deployments serve metrics.
METRICS_PORT = 9464
METRICS = f"0.0.0.0:{METRICS_PORT}"
check_image_and_compose()
check_systemd()
check_kubernetes()
