"""Decodes the details of errors by reflection, as grpcurl does.

Usage: reflection.py ADDRESS RPC REQUEST <REFUSAL

Makes the call with a request in JSON. The details of its error must be EXPECTED, and so
must those of REFUSAL, which `buf curl` printed for the same request.
"""

import base64
import json
import sys

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

EXPECTED = {
    "google.rpc.ErrorInfo": {"reason": "FIELD_REQUIRED", "domain": "expertise.v1"},
    "google.rpc.BadRequest": {
        "field_violations": [
            {"field": "step.task", "description": "is required", "reason": "FIELD_REQUIRED"},
            {
                "field": "step.product_id",
                "description": "must be greater than 0",
                "reason": "FIELD_OUT_OF_RANGE",
            },
            {"field": "step.title", "description": "is required", "reason": "FIELD_REQUIRED"},
        ]
    },
}


class Contract:
    """The contract, read from the server by reflection."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))

    def decode(self, name: str, encoded: bytes):
        """Decodes a message of the named type."""
        kind = GetMessageClass(self._pool.FindMessageTypeByName(name))
        return kind.FromString(encoded)

    def call(self, channel: grpc.Channel, rpc: str, request: str) -> None:
        """Makes a call with a request in JSON."""
        service, method = rpc.split("/")
        method = self._pool.FindServiceByName(service).FindMethodByName(method)
        message = json_format.Parse(request, GetMessageClass(method.input_type)())
        invoke = channel.unary_unary(
            f"/{rpc}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        invoke(message, timeout=10, metadata=(("x-account-id", "reflection"),))


def as_dict(message) -> dict:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def details_of_call(contract: Contract, channel: grpc.Channel, rpc: str, request: str) -> dict:
    """The details of the error of the call, by type."""
    try:
        contract.call(channel, rpc, request)
    except grpc.RpcError as error:
        [encoded] = [v for k, v in error.trailing_metadata() if k == "grpc-status-details-bin"]
        details = contract.decode("google.rpc.Status", encoded).details
        typed = {detail.type_url.rpartition("/")[2]: detail.value for detail in details}
        return {n: as_dict(contract.decode(n, v)) for n, v in typed.items()}
    raise SystemExit(f"accepted: {request}")


def details_of_buf(contract: Contract, refusal: str) -> dict:
    """The details of the error that buf printed, by type."""
    details = json.loads(refusal)["details"]
    # buf omits the padding of base64; Python ignores excess padding.
    typed = {detail["type"]: base64.b64decode(detail["value"] + "==") for detail in details}
    return {n: as_dict(contract.decode(n, v)) for n, v in typed.items()}


def main() -> None:
    address, rpc, request = sys.argv[1:]
    with grpc.insecure_channel(address) as channel:
        contract = Contract(channel)
        for tool, details in {
            "Python": details_of_call(contract, channel, rpc, request),
            "buf": details_of_buf(contract, sys.stdin.read()),
        }.items():
            if details != EXPECTED:
                raise SystemExit(f"{tool} decodes {details} instead of {EXPECTED}")
            print(f"{tool}: decoded {', '.join(details)} by reflection")


if __name__ == "__main__":
    main()
