"""A proxy that fails the first attempt of each call, to check that clients retry.

Usage: flaky_proxy.py SERVER_ADDRESS

Prints its own address, and ends with its standard input. A create or import is done before it
fails, as when the response is lost; other calls are not done. A retry must be the same request,
byte for byte.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

OPTIONS = [("grpc.max_receive_message_length", 72 << 20)]


class FlakyProxy(grpc.GenericRpcHandler):
    """Handles calls of any method, without knowing their messages."""

    server = grpc.insecure_channel(sys.argv[1], OPTIONS)
    failed = set()

    def service(self, call):
        # gRPC adds the others by itself.
        metadata = tuple(it for it in call.invocation_metadata if not it[0].startswith(("user-agent", "grpc-")))

        def forward(request, context):
            try:
                return self.server.unary_unary(call.method)(request, metadata=metadata, timeout=context.time_remaining())
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                context.abort(error.code(), error.details())

        def handle(request, context):
            attempt = (call.method, metadata, request)
            if attempt in self.failed:
                self.failed.remove(attempt)
                return forward(request, context)
            if call.method.endswith(("/CreateTask", "/CreateStep", "/ImportTask")):
                forward(request, context)
            self.failed.add(attempt)
            context.abort(grpc.StatusCode.UNAVAILABLE, "the first attempt fails")

        return grpc.unary_unary_rpc_method_handler(handle)


proxy = grpc.server(ThreadPoolExecutor(4), options=OPTIONS)
proxy.add_generic_rpc_handlers((FlakyProxy(),))
port = proxy.add_insecure_port("127.0.0.1:0")
proxy.start()
print(f"127.0.0.1:{port}", flush=True)
sys.stdin.read()
