"""Writes and reads guides, like a program for authors.

Usage: client.py ADDRESS ACCOUNT GUIDE
"""

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc
from expertise.v1.resources_pb2 import (
    AccessLevel,
    FeedbackConfig,
    FeedbackValue,
    Step,
    StepType,
    Task,
    TaskDocument,
)
from expertise.v1.step_service_pb2 import (
    CreateStepRequest,
    CreateStepResponse,
    ListStepsRequest,
    Placement,
    UpdateStepRequest,
)
from expertise.v1.step_service_pb2_grpc import StepServiceStub
from expertise.v1.task_service_pb2 import CreateTaskRequest, ImportTaskRequest
from expertise.v1.task_service_pb2_grpc import TaskServiceStub
from google.protobuf import json_format
from google.protobuf.field_mask_pb2 import FieldMask
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_status import rpc_status

# The time limit of a call with its retries, in seconds. By default, gRPC waits forever.
DEADLINE = 10

# gRPC retries calls that fail with these codes. It waits as long as the server says, or else as
# this policy says, and does not retry if the server says that a retry does not help. This is
# safe: reads, updates with an etag and creates with a request_id can be sent twice.
SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "expertise.v1.TaskService"},
                {"service": "expertise.v1.StepService"},
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"],
            },
        }
    ]
}

OPTIONS = [
    # The body of a step may be larger than the 4 MB that gRPC accepts by default.
    ("grpc.max_receive_message_length", 72 * 1024 * 1024),
    # gRPC does not retry requests larger than this buffer, by default 256 KiB.
    ("grpc.per_rpc_retry_buffer_size", 80 * 1024 * 1024),
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
]

PRODUCT = 1204


class Author:
    """The service for one account."""

    def __init__(self, channel: grpc.Channel, account: str) -> None:
        self.tasks = TaskServiceStub(channel)
        self.steps = StepServiceStub(channel)
        self._metadata = (("x-account-id", account),)

    def call(self, method, request):
        """Calls a method of one of the stubs."""
        return method(request, timeout=DEADLINE, metadata=self._metadata)

    def create_guide(self, name: str, roles: list[AccessLevel]) -> Task:
        task = Task(name=name, product_id=PRODUCT, roles=roles)
        # A request_id makes it safe to retry a create.
        request = CreateTaskRequest(task=task, request_id=str(uuid.uuid4()))
        return self.call(self.tasks.CreateTask, request).task

    def insert(self, step: Step, prevstep: str = "", request_id: str = "") -> CreateStepResponse:
        """Inserts a step after another one of its guide, or at the end."""
        request = CreateStepRequest(
            step=step,
            prevstep=prevstep,
            request_id=request_id or str(uuid.uuid4()),
        )
        return self.call(self.steps.CreateStep, request)

    def list_steps(self, task: str) -> Iterator[Step]:
        """All steps of a guide with their bodies, page after page."""
        request = ListStepsRequest(task=task, expand=["body"], page_size=4)
        while True:
            response = self.call(self.steps.ListSteps, request)
            yield from response.steps
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token


def build_a_guide(author: Author) -> Task:
    """Creates a guide step by step."""
    guide = author.create_guide("Laptop will not start", [AccessLevel.ACCESS_LEVEL_USER])
    print(f'Created "{guide.name}" for {AccessLevel.Name(guide.roles[0])}')

    question = FeedbackConfig(
        name="charge_light",
        type="enum",
        values=[FeedbackValue(key="on", value="Yes"), FeedbackValue(key="off", value="No")],
    )
    lamp = author.insert(
        Step(
            task=guide.guid,
            product_id=PRODUCT,
            type=StepType.STEP_TYPE_OBSERVATION,
            title="Is the charging lamp lit?",
            feedback_config=[question],
        )
    )
    show_placement(lamp)
    end = author.insert(
        Step(
            task=guide.guid,
            product_id=PRODUCT,
            type=StepType.STEP_TYPE_END,
            title="Call the service desk",
        )
    )
    show_placement(end)
    outlet = author.insert(
        Step(
            task=guide.guid,
            product_id=PRODUCT,
            type=StepType.STEP_TYPE_SOLUTION,
            title="Try another outlet",
            body="<p>Without a power strip.</p>",
            cost=2,
            dependency_shorthand="components.1204.charge_light = off",
        ),
        prevstep=lamp.step.guid,
    )
    show_placement(outlet)

    updated = author.call(
        author.steps.UpdateStep,
        UpdateStepRequest(
            # With the etag, the update fails if the step has changed since. The cost
            # is not in the mask and stays; the type cannot be changed.
            step=Step(
                guid=outlet.step.guid,
                etag=outlet.step.etag,
                title="Try an outlet in another room",
                cost=99,
                type=StepType.STEP_TYPE_IDP,
            ),
            update_mask=FieldMask(paths=["title", "type"]),
        ),
    )
    print(f'Updated: "{updated.step.title}", cost {updated.step.cost}')
    print(f"Ignored: {', '.join(updated.ignored_paths)}")
    return guide


def import_a_guide(author: Author, file: Path) -> None:
    """Imports a guide with one call, and lists its steps."""
    document = json_format.Parse(file.read_text(encoding="utf-8"), TaskDocument())
    request = ImportTaskRequest(document=document, request_id=str(uuid.uuid4()))
    guide = author.call(author.tasks.ImportTask, request).task
    print(f'Imported "{guide.name}": {len(guide.steps)} steps')
    for number, step in enumerate(author.list_steps(guide.guid), start=1):
        print(f"{number}. {StepType.Name(step.type)}, cost {step.cost}: {step.title}")
        print(f"   {step.body if step.HasField('body') else '(no body)'}")
        print(f"   de: {step.translations['de'].title}")


def send_invalid_request(author: Author, guide: Task) -> None:
    """Sends a request with four violations; the error lists all of them."""
    step = Step(
        task=guide.guid,
        product_id=0,
        type=StepType.STEP_TYPE_OBSERVATION,
        title=" ",
        dependency_shorthand="components.1204.charge_light is off",
    )
    try:
        author.insert(step)
    except grpc.RpcError as error:
        print(f"Error: {explain(error)}")
        for violation in violations(error):
            print(f"- {violation.field}: {violation.description} ({violation.reason})")


def repeat(author: Author, guide: Task) -> None:
    """Repeats a create, as after a lost response."""
    step = Step(
        task=guide.guid,
        product_id=PRODUCT,
        type=StepType.STEP_TYPE_INFORMATION,
        title="Keep the receipt",
    )
    request_id = str(uuid.uuid4())
    first = author.insert(step, request_id=request_id)
    again = author.insert(step, request_id=request_id)
    same = first.step.guid == again.step.guid
    print(f"Repeated: {'the same step' if same else 'a second step'}")

    step.title = "Keep the box"
    try:
        author.insert(step, request_id=request_id)
    except grpc.RpcError as error:
        print(f"Changed and repeated: {explain(error)}")

    print(f'Steps of "{guide.name}":')
    for number, step in enumerate(author.list_steps(guide.guid), start=1):
        print(f"{number}. {step.title}")


def show_placement(inserted: CreateStepResponse) -> None:
    print(f'Inserted "{inserted.step.title}": {Placement.Name(inserted.placement)}')


def explain(error: grpc.RpcError) -> str:
    """The code of an error and its reason."""
    info = ErrorInfo()
    unpack(error, info)
    return f"{error.code().name}, {info.reason or error.details()}"


def violations(error: grpc.RpcError) -> list[BadRequest.FieldViolation]:
    """The violations of the request."""
    bad_request = BadRequest()
    unpack(error, bad_request)
    return list(bad_request.field_violations)


def unpack(error: grpc.RpcError, into: ErrorInfo | BadRequest) -> None:
    """Copies the detail of this type from an error, if it has one."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        if detail.Unpack(into):
            return


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    address, account, file = sys.argv[1:]
    try:
        with grpc.insecure_channel(address, options=OPTIONS) as channel:
            author = Author(channel, account)
            guide = build_a_guide(author)
            import_a_guide(author, Path(file))
            send_invalid_request(author, guide)
            repeat(author, guide)
    except grpc.RpcError as error:
        print(f"The call failed: {explain(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
