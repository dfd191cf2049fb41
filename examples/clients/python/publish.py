"""Publishes a guide by an alias: readers ask for `live`, while authors go on editing.

Usage: publish.py ADDRESS ACCOUNT GUIDE
"""

import json
import sys
import uuid
from pathlib import Path

import grpc
from expertise.v1.resources_pb2 import TaskDocument
from expertise.v1.revision_service_pb2 import (
    CompareRevisionsRequest,
    CreateRevisionRequest,
    GetRevisionRequest,
    SetRevisionAliasRequest,
)
from expertise.v1.revision_service_pb2_grpc import RevisionServiceStub
from expertise.v1.task_service_pb2 import ExportTaskRequest, ImportTaskRequest
from expertise.v1.task_service_pb2_grpc import TaskServiceStub
from google.protobuf import json_format

# The time limit of a call with its retries, in seconds.
DEADLINE = 10
# Temporary failures are retried, because each of these calls can be sent twice.
SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "expertise.v1.TaskService"},
                {"service": "expertise.v1.RevisionService"},
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ]
}
OPTIONS = [
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    ("grpc.max_receive_message_length", 72 << 20),
    ("grpc.per_rpc_retry_buffer_size", 72 << 20),
]


def main(address: str, account: str, file: str) -> None:
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        tasks, revisions = TaskServiceStub(channel), RevisionServiceStub(channel)

        def call(rpc, request):
            return rpc(request, timeout=DEADLINE, metadata=[("x-account-id", account)])

        def live() -> str:
            """What a reader sees."""
            request = GetRevisionRequest(task=guide, revision="live")
            return call(revisions.GetRevision, request).document.task.name

        document = json_format.Parse(Path(file).read_text(encoding="utf-8"), TaskDocument())
        document.task.guid = ""
        request = ImportTaskRequest(document=document, request_id=str(uuid.uuid4()))
        guide = call(tasks.ImportTask, request).task.guid

        request = CreateRevisionRequest(
            task=guide, note="reviewed", alias="live", request_id=str(uuid.uuid4())
        )
        first = call(revisions.CreateRevision, request).revision
        print(f"published revision {first.revision}: {live()}")

        # An author edits the guide. The etag protects the changes of others.
        export = call(tasks.ExportTask, ExportTaskRequest(guid=guide))
        export.document.task.name = "Restart safely, second edition"
        request = ImportTaskRequest(
            document=export.document,
            guide_etag=export.guide_etag,
            request_id=str(uuid.uuid4()),
        )
        call(tasks.ImportTask, request)
        print(f"readers still see: {live()}")
        draft = call(revisions.CompareRevisions, CompareRevisionsRequest(task=guide, base="live"))
        print(f"the draft differs in: {', '.join(draft.task_paths)}")

        request = CreateRevisionRequest(task=guide, alias="live", request_id=str(uuid.uuid4()))
        second = call(revisions.CreateRevision, request).revision
        print(f"published revision {second.revision}: {live()}")

        # One call undoes it.
        request = SetRevisionAliasRequest(task=guide, alias="live", revision=str(first.revision))
        call(revisions.SetRevisionAlias, request)
        print(f"readers see again: {live()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
