"""Keeps a copy of the guides of an account in an SQLite file.

Usage: keep_copy.py ADDRESS ACCOUNT FILE [--once]

Follows the changes of the account until Ctrl-C; with --once, until it has caught up. It may be
ended and started again at any time: the cursor is stored in the transaction that stores what
was read up to it.
"""

import json
import sqlite3
import sys
import time
from collections.abc import Iterator

import grpc
from expertise.v1.change_service_pb2 import (
    Change,
    ChangeKind,
    ChangeStart,
    ListChangesRequest,
    ListChangesResponse,
)
from expertise.v1.change_service_pb2_grpc import ChangeServiceStub
from expertise.v1.resources_pb2 import Step, Task
from expertise.v1.step_service_pb2 import GetStepRequest, ListStepsRequest
from expertise.v1.step_service_pb2_grpc import StepServiceStub
from expertise.v1.task_service_pb2 import GetTaskRequest, ListTasksRequest
from expertise.v1.task_service_pb2_grpc import TaskServiceStub
from google.protobuf import json_format
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

# How long the server waits for changes, the same with --once, and the time limit of a call, in
# seconds.
WAIT = 30
WAIT_ONCE = 1
DEADLINE = 10
PAGE_SIZE = 500
# Every call is a read, so every temporary failure is retried: by gRPC, and after its last
# attempt by the loop below.
TRANSIENT = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")
PAUSE = 2
SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "expertise.v1.ChangeService"},
                {"service": "expertise.v1.TaskService"},
                {"service": "expertise.v1.StepService"},
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
]
CREATED = ChangeKind.CHANGE_KIND_TASK_CREATED
DELETED = ChangeKind.CHANGE_KIND_TASK_DELETED
SCHEMA = """
CREATE TABLE IF NOT EXISTS feed (cursor TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (guid TEXT PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps (
    guid TEXT PRIMARY KEY, task TEXT NOT NULL, etag TEXT NOT NULL, json TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS steps_of_task ON steps (task);
"""


class Service:
    """Calls of the service for one account."""

    def __init__(self, channel: grpc.Channel, account: str) -> None:
        self.changes = ChangeServiceStub(channel)
        self.tasks = TaskServiceStub(channel)
        self.steps = StepServiceStub(channel)
        self.metadata = [("x-account-id", account)]

    def call(self, rpc, request, timeout=DEADLINE):
        return rpc(request, timeout=timeout, metadata=self.metadata)

    def cursor_now(self) -> str:
        request = ListChangesRequest(start=ChangeStart.CHANGE_START_NOW)
        return self.call(self.changes.ListChanges, request).next_cursor

    def changes_after(self, cursor: str, wait: int) -> ListChangesResponse:
        request = ListChangesRequest(cursor=cursor, page_size=PAGE_SIZE)
        request.wait.FromSeconds(wait)
        return self.call(self.changes.ListChanges, request, DEADLINE + wait)

    def all_tasks(self) -> Iterator[Task]:
        request = ListTasksRequest(page_size=PAGE_SIZE)
        while True:
            page = self.call(self.tasks.ListTasks, request)
            yield from page.tasks
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def steps_of(self, task: str) -> list[Step]:
        """The steps with their bodies; none if the task does not exist any more."""
        while True:
            try:
                return list(self.pages_of_steps(task))
            except grpc.RpcError as error:
                # They were reordered meanwhile: start again from the first page.
                if reason(error) != "PAGE_TOKEN_INVALID":
                    raise

    def pages_of_steps(self, task: str) -> Iterator[Step]:
        request = ListStepsRequest(task=task, page_size=PAGE_SIZE, expand=["body"])
        while True:
            page = unless_missing(self.call, self.steps.ListSteps, request)
            if page is None:
                return
            yield from page.steps
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def task(self, guid: str) -> Task | None:
        answer = unless_missing(self.call, self.tasks.GetTask, GetTaskRequest(guid=guid))
        return answer and answer.task

    def step(self, guid: str) -> Step | None:
        answer = unless_missing(self.call, self.steps.GetStep, GetStepRequest(guid=guid))
        return answer and answer.step


def unless_missing(call, rpc, request):
    """The answer; None if there is no such task or step any more."""
    try:
        return call(rpc, request)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return None
        raise


def reason(error: grpc.RpcError) -> str:
    """The reason of the contract, such as CURSOR_EXPIRED."""
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info = ErrorInfo()
        if detail.Unpack(info):
            return info.reason
    return ""


class Copy:
    """The copy. Every method belongs to the transaction of its caller."""

    def __init__(self, database: sqlite3.Connection, service: Service) -> None:
        self.database = database
        self.service = service

    def cursor(self) -> str | None:
        row = self.database.execute("SELECT cursor FROM feed").fetchone()
        return row and row[0]

    def set_cursor(self, cursor: str) -> None:
        self.database.execute("DELETE FROM feed")
        self.database.execute("INSERT INTO feed VALUES (?)", (cursor,))

    def read_everything(self) -> None:
        """Makes the copy anew. The cursor comes first, so that no change is missed."""
        cursor = self.service.cursor_now()
        self.database.execute("DELETE FROM tasks")
        self.database.execute("DELETE FROM steps")
        for task in self.service.all_tasks():
            self.put_task(task)
            self.read_steps(task.guid)
        self.set_cursor(cursor)

    def apply(self, changes: list[Change]) -> None:
        """Reads what the changes name, once each, as it is now."""
        tasks: dict[str, ChangeKind] = {}
        steps: dict[str, str] = {}
        for change in changes:
            if change.kind in (CREATED, DELETED):
                tasks[change.task] = change.kind
            elif change.kind != ChangeKind.CHANGE_KIND_STEP_UPDATED:
                # The task was updated, or its list of steps.
                tasks.setdefault(change.task, ChangeKind.CHANGE_KIND_TASK_UPDATED)
            if change.step:
                steps[change.step] = change.etag
        for guid, kind in tasks.items():
            task = None if kind == DELETED else self.service.task(guid)
            if task is None:
                self.database.execute("DELETE FROM tasks WHERE guid = ?", (guid,))
                self.database.execute("DELETE FROM steps WHERE task = ?", (guid,))
                continue
            self.put_task(task)
            if kind == CREATED:
                self.read_steps(guid)
        for guid, etag in steps.items():
            row = self.database.execute("SELECT etag FROM steps WHERE guid = ?", (guid,)).fetchone()
            if row and row[0] == etag:
                continue
            # A deleted step may have been restored with its task.
            step = self.service.step(guid)
            if step:
                self.put_step(step)
            else:
                self.database.execute("DELETE FROM steps WHERE guid = ?", (guid,))

    def read_steps(self, task: str) -> None:
        self.database.execute("DELETE FROM steps WHERE task = ?", (task,))
        for step in self.service.steps_of(task):
            self.put_step(step)

    def put_task(self, task: Task) -> None:
        self.database.execute("REPLACE INTO tasks VALUES (?, ?)", (task.guid, as_json(task)))

    def put_step(self, step: Step) -> None:
        row = (step.guid, step.task, step.etag, as_json(step))
        self.database.execute("REPLACE INTO steps VALUES (?, ?, ?, ?)", row)


def as_json(message: Task | Step) -> str:
    return json_format.MessageToJson(message, preserving_proto_field_name=True, indent=None)


def synchronize(copy: Copy, once: bool) -> bool:
    """Stores the next page of changes. Returns whether there may be more."""
    cursor = copy.cursor()
    if cursor is None:
        copy.read_everything()
        return True
    try:
        page = copy.service.changes_after(cursor, WAIT_ONCE if once else WAIT)
    except grpc.RpcError as error:
        if reason(error) == "CURSOR_INVALID":
            # The account may be wrong, so the copy is not replaced without asking.
            sys.exit("the copy is of another account or database: remove its file to start again")
        if reason(error) != "CURSOR_EXPIRED":
            raise
        print("the changes after the cursor are no longer kept: reading everything again", file=sys.stderr)
        copy.read_everything()
        return True
    copy.apply(page.changes)
    copy.set_cursor(page.next_cursor)
    return not (once and page.caught_up)


def main(address: str, account: str, file: str, once: str = "") -> None:
    database = sqlite3.connect(file)
    database.executescript(SCHEMA)
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        copy = Copy(database, Service(channel, account))
        more = True
        while more:
            try:
                # One transaction: committed at its end, rolled back after an error.
                with database:
                    more = synchronize(copy, once == "--once")
            except grpc.RpcError as error:
                if error.code().name not in TRANSIENT:
                    raise
                print(f"{error.code().name}: {error.details()}", file=sys.stderr)
                time.sleep(PAUSE)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        pass
