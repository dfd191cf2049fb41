"""Checks that the files of a deployment agree with each other and with the service.

Usage: deployment.py BINARY DESCRIPTOR_SET

The binary says its default settings. Envoy is not run: its schema says whether each field of its configuration exists, and the
descriptor set whether every rpc can be transcoded.
"""

import configparser
import pathlib
import re
import subprocess
import sys
import tomllib

import dockerfile_parse
import yaml
from google.api import annotations_pb2, field_behavior_pb2  # noqa: F401
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    field_mask_pb2,  # noqa: F401
    json_format,
    struct_pb2,  # noqa: F401
    timestamp_pb2,  # noqa: F401
)
from google.protobuf.descriptor import FieldDescriptor

from envoy.config.bootstrap.v3 import bootstrap_pb2

# The types that the configuration may use in `typed_config`.
from envoy.extensions.filters.http.cors.v3 import cors_pb2  # noqa: F401
from envoy.extensions.filters.http.grpc_json_transcoder.v3 import transcoder_pb2
from envoy.extensions.filters.http.grpc_web.v3 import grpc_web_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2,
)
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401

MIB = 1 << 20
# The default settings.
DEFAULT = tomllib.loads(subprocess.run([sys.argv[1], "config"], check=True, env={}, capture_output=True, text=True).stdout)
PORT = int(DEFAULT["listen"].rpartition(":")[2])
# Where the deployments serve metrics.
METRICS_PORT = 9464
METRICS = f"0.0.0.0:{METRICS_PORT}"
MANIFESTS = pathlib.Path("docs/deploy/kubernetes")


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|)", str(text)).groups()
    return int(number) * (60 if unit == "m" else 1)


def is_twice_the_inflight_bytes(text):
    number, unit = re.fullmatch(r"(\d+)([mMgG])i?", text).groups()
    size = int(number) * (MIB if unit in "mM" else 1024 * MIB)
    return size == 2 * DEFAULT["max_inflight_bytes"]


def check(fact, truth):
    if not truth:
        raise SystemExit(f"wrong: {fact}")
    print(f"   {fact}")


def check_image_and_compose():
    image = dockerfile_parse.DockerfileParser("Dockerfile")
    lines = {(line["instruction"], line["value"]) for line in image.structure}
    listens = image.envs["EXPERTISE_LISTEN"] == f"0.0.0.0:{PORT}"
    check("the image listens on the default port and exposes it", listens and ("EXPOSE", str(PORT)) in lines)
    compose = yaml.safe_load(pathlib.Path("compose.yaml").read_text())["services"]["expertise"]
    published = [f"127.0.0.1:{it}:{it}" for it in (PORT, METRICS_PORT)]
    check("compose publishes it and metrics on loopback", compose["ports"] == published)
    check("compose serves metrics", compose["environment"]["EXPERTISE_METRICS_LISTEN"] == METRICS)
    grace = seconds(DEFAULT["shutdown_grace"])
    check("compose waits longer than the grace", seconds(compose["stop_grace_period"]) > grace)
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
    grace = seconds(DEFAULT["shutdown_grace"])
    check("systemd waits longer than the grace", seconds(service["TimeoutStopSec"]) > grace)
    check("systemd limits the memory", is_twice_the_inflight_bytes(service["MemoryMax"]))


def check_kubernetes():
    files = {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml"}
    documents = {name: yaml.safe_load((MANIFESTS / name).read_text()) for name in files}
    kustomization = yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())
    check("kustomization lists every manifest", set(kustomization["resources"]) == files)
    deployment, service, policy, budget = (
        documents[f"{name}.yaml"]["spec"]
        for name in ("deployment", "service", "networkpolicy", "poddisruptionbudget")
    )
    pod = deployment["template"]
    (container,) = pod["spec"]["containers"]
    check("kustomization names the image", kustomization["images"][0]["name"] == container["image"])
    settings = {entry["name"]: entry.get("value") for entry in container["env"]}
    grace = seconds(settings["EXPERTISE_SHUTDOWN_GRACE"])
    grace += container["lifecycle"]["preStop"]["sleep"]["seconds"]
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
    component = yaml.safe_load((MANIFESTS / "migrate/kustomization.yaml").read_text())
    patch = yaml.safe_load(component["patches"][0]["patch"])["spec"]["template"]["spec"]
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
    """The HTTP method and path of an rpc, without the names of variables, which are fields of
    its request, as is the body."""

    def field_at(path):
        message, field = method.input_type, None
        for name in path.split("."):
            field = message.fields_by_name[name]
            message = field.message_type
        return field

    rule = method.GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    path = getattr(rule, verb)
    try:
        variables = [field_at(variable) for variable in re.findall(r"\{([^}=]+)\}", path)]
        valid = not any(it.message_type or it.is_repeated for it in variables)
        if rule.body not in ("", "*"):
            valid &= field_at(rule.body).type == FieldDescriptor.TYPE_MESSAGE
    except (KeyError, AttributeError):
        valid = False
    valid &= not rule.additional_bindings and not (verb in ("get", "delete") and rule.body)
    if not valid:
        raise SystemExit(f"wrong: {method.full_name} cannot be transcoded from {verb} {path}")
    return verb, re.sub(r"\{[^}]+\}", "*", path)


def check_envoy(services):
    document = yaml.safe_load(pathlib.Path("docs/deploy/envoy.yaml").read_text())
    resources = json_format.ParseDict(document, bootstrap_pb2.Bootstrap()).static_resources
    (network_filter,) = resources.listeners[0].filter_chains[0].filters
    manager = http_connection_manager_pb2.HttpConnectionManager()
    network_filter.typed_config.Unpack(manager)
    filters = [it.name.rpartition(".")[2] for it in manager.http_filters]
    expected = ["cors", "grpc_web", "grpc_json_transcoder", "router"]
    check("calls pass CORS, gRPC-Web, the transcoder and the router", filters == expected)
    transcoder = transcoder_pb2.GrpcJsonTranscoder()
    manager.http_filters[2].typed_config.Unpack(transcoder)
    check("the transcoder has every service", sorted(transcoder.services) == sorted(services))
    paths = [transcoded(method) for service in services.values() for method in service.methods]
    check(f"{len(paths)} rpcs have paths of their own", paths and len(set(paths)) == len(paths))
    (host,) = manager.route_config.virtual_hosts
    reachable = [any(f"/{name}/".startswith(it.match.prefix) for it in host.routes) for name in services]
    check("every service has a route", all(reachable))
    clusters = {cluster.name for cluster in resources.clusters}
    check("every route leads to a cluster", {it.route.cluster for it in host.routes} <= clusters)
    retried = {route.route.retry_policy.retry_on for route in host.routes}
    check("only calls that no server has begun are retried", retried == {"connect-failure,refused-stream"})
    removed = set(host.request_headers_to_remove)
    check("callers cannot set the account", removed == {"x-account-id", "x-subject", "x-scopes"})
    limits = {transcoder.max_request_body_size.value, transcoder.max_response_body_size.value}
    check("bodies may be as large as messages", limits == {DEFAULT["max_message_bytes"]})


check_image_and_compose()
check_systemd()
check_kubernetes()
check_envoy(services_of(sys.argv[2]))
