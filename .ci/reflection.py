"""Reads errors by reflection alone, as grpcurl does.

Usage: reflection.py ADDRESS CALL REQUEST <REFUSAL

Makes the call with the request, both in JSON, and holds the details of its error
to those of REFUSAL, which is what `buf curl` prints for the same request.
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
    """What the server tells of its contract."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))

    def read(self, name: str, encoded: bytes):
        """The message of this type that these bytes are."""
        kind = GetMessageClass(self._pool.FindMessageTypeByName(name))
        return kind.FromString(encoded)

    def make(self, channel: grpc.Channel, call: str, request: str) -> None:
        """Makes a call with a request in JSON."""
        service, method = call.split("/")
        method = self._pool.FindServiceByName(service).FindMethodByName(method)
        message = json_format.Parse(request, GetMessageClass(method.input_type)())
        invoke = channel.unary_unary(
            f"/{call}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        invoke(message, timeout=10, metadata=(("x-account-id", "reflection"),))


def as_dict(message) -> dict:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def of_own_call(contract: Contract, channel: grpc.Channel, call: str, request: str) -> dict:
    """The details of the error that the call ends with, by their type."""
    try:
        contract.make(channel, call, request)
    except grpc.RpcError as error:
        [encoded] = [v for k, v in error.trailing_metadata() if k == "grpc-status-details-bin"]
        details = contract.read("google.rpc.Status", encoded).details
        typed = {detail.type_url.rpartition("/")[2]: detail.value for detail in details}
        return {n: as_dict(contract.read(n, v)) for n, v in typed.items()}
    raise SystemExit(f"accepted: {request}")


def of_buf(contract: Contract, refusal: str) -> dict:
    """The details of the error that buf printed, by their type."""
    details = json.loads(refusal)["details"]
    # It leaves the padding out, and more of it than needed does no harm.
    typed = {detail["type"]: base64.b64decode(detail["value"] + "==") for detail in details}
    return {n: as_dict(contract.read(n, v)) for n, v in typed.items()}


def main() -> None:
    address, call, request = sys.argv[1:]
    with grpc.insecure_channel(address) as channel:
        contract = Contract(channel)
        for tool, details in {
            "Python": of_own_call(contract, channel, call, request),
            "buf": of_buf(contract, sys.stdin.read()),
        }.items():
            if details != EXPECTED:
                raise SystemExit(f"{tool} reads {details} instead of {EXPECTED}")
            print(f"{tool}: read {', '.join(details)} by reflection")


if __name__ == "__main__":
    main()
