"""A proxy that fails the first attempt of each call, to check that clients retry.

Usage: flaky_proxy.py SERVER_ADDRESS

Prints its own address. A create or import is done before it fails, as when the answer is
lost; other calls are not done. The error asks for a pause, and a retry that comes sooner
fails with INTERNAL. A retry must be the same request, byte for byte. Ends with its
standard input.
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

PAUSE_SECONDS = 0.7
# Clocks and timers may differ by this much.
TOLERANCE_SECONDS = 0.05
MAX_MESSAGE_BYTES = 72 * 1024 * 1024
OPTIONS = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
# Metadata that gRPC adds by itself.
OWN_METADATA = ("user-agent", "grpc-")


class FlakyProxy(grpc.GenericRpcHandler):
    """Handles calls of any method, without knowing their messages."""

    def __init__(self, server: grpc.Channel) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._failed: dict[tuple, float] = {}

    def service(self, call: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        metadata = tuple(
            (name, value)
            for name, value in call.invocation_metadata
            if not name.startswith(OWN_METADATA)
        )

        def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
            return self._handle(call.method, metadata, request, context)

        return grpc.unary_unary_rpc_method_handler(handle)

    def _handle(self, method, metadata, request, context) -> bytes:
        attempt = (method, metadata, request)
        with self._lock:
            failed = self._failed.pop(attempt, None)
        if failed is not None:
            waited = time.monotonic() - failed
            if waited < PAUSE_SECONDS - TOLERANCE_SECONDS:
                context.abort(grpc.StatusCode.INTERNAL, f"retried after {waited:.3f} s")
            return self._forward(method, metadata, request, context)
        if method.endswith(("/CreateTask", "/CreateStep", "/ImportTask")):
            self._forward(method, metadata, request, context)
        with self._lock:
            self._failed[attempt] = time.monotonic()
        pause = str(round(PAUSE_SECONDS * 1000))
        context.set_trailing_metadata((("grpc-retry-pushback-ms", pause),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "the first attempt fails")

    def _forward(self, method, metadata, request, context) -> bytes:
        invoke = self._server.unary_unary(method)
        try:
            return invoke(request, metadata=metadata, timeout=context.time_remaining())
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata())
            context.abort(error.code(), error.details())


def main() -> None:
    (address,) = sys.argv[1:]
    server = grpc.server(ThreadPoolExecutor(4), options=OPTIONS)
    server.add_generic_rpc_handlers((FlakyProxy(grpc.insecure_channel(address, OPTIONS)),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
