"""Checks docs/deploy/envoy.yaml against Envoy's schema and against the contract.

Usage: envoy_recipe.py DESCRIPTOR_SET

Envoy itself is not run. Its schema says whether each field of the configuration exists.
The descriptor set says whether every rpc can be transcoded: it has an HTTP rule, its path
and body name fields of its request, and no other rpc has the same method and path.
"""

import pathlib
import re
import sys

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

CONFIGURATION = pathlib.Path("docs/deploy/envoy.yaml")
SETTINGS = pathlib.Path("src/config.rs")
PACKAGE = "expertise.v1"
VERBS = ("get", "put", "post", "delete", "patch")


def check(fact, truth):
    if not truth:
        raise SystemExit(f"wrong: {fact}")
    print(f"   {fact}")


def services_of(path):
    """The services of the contract, by name."""
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(path).read_bytes())
    pool = descriptor_pool.Default()
    for file in files.file:
        # Google's are imported above or come with protobuf.
        if not file.name.startswith("google/"):
            pool.Add(file)
    return {
        f"{file.package}.{service.name}": pool.FindServiceByName(f"{file.package}.{service.name}")
        for file in files.file
        if file.package == PACKAGE
        for service in file.service
    }


def field_at(message, path):
    """The field of a message at a path such as `step.guid`; None if there is none."""
    field = None
    for name in path.split("."):
        if message is None:
            return None
        field = message.fields_by_name.get(name)
        message = field.message_type if field else None
    return field


def transcoded(method):
    """The HTTP method and path of an rpc, without the names of variables."""
    name = method.full_name
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    verb = rule.WhichOneof("pattern")
    if verb not in VERBS or rule.additional_bindings:
        raise SystemExit(f"wrong: {name} has one HTTP rule")
    path = getattr(rule, verb)
    variables = re.findall(r"\{([^}=]+)\}", path)
    for variable in variables:
        field = field_at(method.input_type, variable)
        plain = field and field.message_type is None and not field.is_repeated
        if not plain:
            raise SystemExit(f"wrong: the path of {name} has a field {variable!r} of its request")
    if rule.body not in ("", "*"):
        field = field_at(method.input_type, rule.body)
        if field is None or field.type != FieldDescriptor.TYPE_MESSAGE:
            raise SystemExit(f"wrong: the body of {name} is a message of its request")
    if verb in ("get", "delete") and rule.body:
        raise SystemExit(f"wrong: {name} has no body")
    return verb, re.sub(r"\{[^}]+\}", "*", path)


def default_max_message_bytes():
    constant = re.search(r"const DEFAULT_MAX_MESSAGE_BYTES: u32 = ([\d_]+);", SETTINGS.read_text())
    return int(constant.group(1))


def unpacked(any_message, kind):
    message = kind()
    if not any_message.Unpack(message):
        raise SystemExit(f"wrong: there is a {kind.DESCRIPTOR.full_name}")
    return message


def main():
    (path,) = sys.argv[1:]
    document = yaml.safe_load(CONFIGURATION.read_text())
    bootstrap = json_format.ParseDict(document, bootstrap_pb2.Bootstrap())
    check("every field of the configuration is in Envoy's schema", True)

    resources = bootstrap.static_resources
    (network_filter,) = resources.listeners[0].filter_chains[0].filters
    manager = http_connection_manager_pb2.HttpConnectionManager
    manager = unpacked(network_filter.typed_config, manager)
    filters = [it.name.rpartition(".")[2] for it in manager.http_filters]
    check(
        "calls pass CORS, gRPC-Web, the transcoder and the router, in this order",
        filters == ["cors", "grpc_web", "grpc_json_transcoder", "router"],
    )
    transcoder = unpacked(manager.http_filters[2].typed_config, transcoder_pb2.GrpcJsonTranscoder)
    services = services_of(path)
    check("the transcoder has every service", sorted(transcoder.services) == sorted(services))

    methods = [method for service in services.values() for method in service.methods]
    paths = [transcoded(method) for method in methods]
    check(f"{len(methods)} rpcs have an HTTP rule with fields of their requests", methods)
    twice = {path for path in paths if paths.count(path) > 1}
    check("no two of them have the same method and path", not twice)

    (host,) = manager.route_config.virtual_hosts
    prefixes = [route.match.prefix for route in host.routes]
    reachable = [any(f"/{name}/".startswith(it) for it in prefixes) for name in services]
    check("every service has a route", all(reachable))
    clusters = {cluster.name for cluster in resources.clusters}
    routed = {route.route.cluster for route in host.routes}
    check("every route leads to a cluster", routed <= clusters)
    retried = {route.route.retry_policy.retry_on for route in host.routes}
    check("only calls that no server has begun are retried", retried == {"connect-failure,refused-stream"})
    removed = set(host.request_headers_to_remove)
    check("callers cannot set the account", removed == {"x-account-id", "x-subject", "x-scopes"})
    largest = default_max_message_bytes()
    limits = (transcoder.max_request_body_size.value, transcoder.max_response_body_size.value)
    check("bodies may be as large as messages", limits == (largest, largest))


if __name__ == "__main__":
    main()
