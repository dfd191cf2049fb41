"""Makes the guides of an account match a directory: sync.py ADDRESS ACCOUNT DIRECTORY [--dry-run]"""

import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grpc
from expertise.v1 import task_service_pb2 as api
from expertise.v1.resources_pb2 import TaskDocument
from expertise.v1.task_service_pb2_grpc import TaskServiceStub
from google.protobuf import json_format

PREFIX = "manual/"  # of the external IDs of this source
OWNED = ["task.dependencies", "steps.body", "steps.dependencies", "steps.tags"]
address, account, directory, *options = sys.argv[1:]
dry_run = "--dry-run" in options
channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
service, failures = TaskServiceStub(channel), []


def call(rpc, request, guide=None):
    try:
        return rpc(request, timeout=60, metadata=[("x-account-id", account)])
    except grpc.RpcError as error:
        if guide is None:
            raise
        failures.append(f"failed {guide}: {error.details()}")  # the other guides are not affected


texts = [file.read_text(encoding="utf-8") for file in sorted(Path(directory).glob("*.json"))]
documents = [json_format.Parse(text, TaskDocument()) for text in texts]
guides = {document.task.external_id: document for document in documents}
if not guides or "" in guides:
    sys.exit(f"{directory} has no guides, or a guide without an external ID")
targets = {
    guide: {step.subtask_external_id for step in document.steps} & guides.keys()
    for guide, document in guides.items()
}
for guide in TopologicalSorter(targets).static_order():  # each after the guides it refers to
    request = api.ImportTaskRequest(
        document=guides[guide], match_external_ids=True, absent_steps=api.ABSENT_STEPS_DELETE,
        reset_fields={"paths": OWNED}, keep_locked=True, validate_only=dry_run,
    )
    if result := call(service.ImportTask, request, guide):
        outcome = api.ImportOutcome.Name(result.outcome).removeprefix("IMPORT_OUTCOME_").lower()
        print(outcome, guide, *result.ignored_paths)

stored, token = [], None
while token != "":
    page = call(service.ListTasks, api.ListTasksRequest(page_size=500, page_token=token))
    stored, token = [*stored, *page.tasks], page.next_page_token
for task in reversed(stored):  # the newest first, because it may refer to older ones
    if task.external_id.startswith(PREFIX) and task.external_id not in guides:
        request = api.DeleteTaskRequest(guid=task.guid, force=True)
        if dry_run or call(service.DeleteTask, request, task.external_id):
            print("deleted", task.external_id)
sys.exit("\n".join(failures) or 0)
