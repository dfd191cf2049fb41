"""Checks that the files of a deployment agree with each other and with the service.

Usage: deployment.py BINARY DESCRIPTOR_SET

The binary says its default settings, and whether those of a deployment are valid. Envoy is not run: its
schema says whether each field of its configuration exists, and the descriptor set whether every rpc can be
transcoded.
"""

import configparser
import pathlib
import re
import subprocess
import sys
import tomllib

import yaml
from google.api import annotations_pb2, field_behavior_pb2  # noqa: F401
from google.protobuf import descriptor_pb2, descriptor_pool, json_format
from google.protobuf import field_mask_pb2, struct_pb2, timestamp_pb2  # noqa: F401

from envoy.config.bootstrap.v3 import bootstrap_pb2

# The types that the configuration may use in `typed_config`.
from envoy.extensions.filters.http.cors.v3 import cors_pb2  # noqa: F401
from envoy.extensions.filters.http.grpc_json_transcoder.v3 import transcoder_pb2
from envoy.extensions.filters.http.grpc_web.v3 import grpc_web_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401

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
    profile = re.search(r"cargo build .*--(\w+)", page).group(1)
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


def services_of(path):
    """The services of the contract, by name."""
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(path).read_bytes())
    pool = descriptor_pool.Default()
    # Google's are imported above or come with protobuf.
    own = [file for file in files.file if not file.name.startswith("google/")]
    for file in own:
        pool.Add(file)
    names = [f"{file.package}.{service.name}" for file in own for service in file.service]
    return {name: pool.FindServiceByName(name) for name in names}


def transcoded(method):
    """The HTTP method and path of an rpc. Its variables and its body are fields of the request."""
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    path = getattr(rule, verb)
    try:
        for name in [*re.findall(r"\{([^}=]+)\}", path), *({rule.body} - {"", "*"})]:
            message = method.input_type
            for part in name.split("."):
                message = message.fields_by_name[part].message_type
            assert bool(message) == (name == rule.body)
        assert not rule.additional_bindings and not (verb in ("get", "delete") and rule.body)
    except (KeyError, AttributeError, AssertionError) as error:
        raise SystemExit(f"wrong: {method.full_name} cannot be transcoded from {verb} {path}") from error
    return verb, re.sub(r"\{[^}]+\}", "*", path)


def check_envoy(services):
    document = read("docs/deploy/envoy.yaml")
    resources = json_format.ParseDict(document, bootstrap_pb2.Bootstrap()).static_resources
    (network_filter,) = resources.listeners[0].filter_chains[0].filters
    manager = http_connection_manager_pb2.HttpConnectionManager()
    network_filter.typed_config.Unpack(manager)
    transcoder = transcoder_pb2.GrpcJsonTranscoder()
    manager.http_filters[2].typed_config.Unpack(transcoder)
    check("the transcoder has every service", sorted(transcoder.services) == sorted(services))
    paths = [transcoded(method) for service in services.values() for method in service.methods]
    check(f"{len(paths)} rpcs have paths of their own", paths and len(set(paths)) == len(paths))
    (host,) = manager.route_config.virtual_hosts
    reachable = [any(f"/{name}/".startswith(it.match.prefix) for it in host.routes) for name in services]
    check("every service has a route", all(reachable))
    removed = set(host.request_headers_to_remove)
    check("callers cannot set the account", removed == {"x-account-id", "x-subject", "x-scopes"})
    limits = {transcoder.max_request_body_size.value, transcoder.max_response_body_size.value}
    check("bodies may be as large as messages", limits == {DEFAULT["max_message_bytes"]})


DEFAULT = config()
PORT = int(DEFAULT["listen"].rpartition(":")[2])
GRACE = seconds(DEFAULT["shutdown_grace"])
# Where the deployments serve metrics.
METRICS_PORT = 9464
METRICS = f"0.0.0.0:{METRICS_PORT}"
check_image_and_compose()
check_systemd()
check_kubernetes()
check_envoy(services_of(sys.argv[2]))
