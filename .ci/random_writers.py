"""Checks examples/clients/python/synchronise.py: random writers change an account while the
synchroniser is killed and started again at random. Afterwards its copy must be what the
service lists and exports.

Usage: random_writers.py ADDRESS ACCOUNT SYNCHRONISE
"""

import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
from expertise.v1.resources_pb2 import Step, StepType, Task, TaskDocument
from expertise.v1.revision_service_pb2 import RestoreRevisionRequest
from expertise.v1.revision_service_pb2_grpc import RevisionServiceStub
from expertise.v1.step_service_pb2 import (
    CreateStepRequest,
    DeleteStepRequest,
    ListStepsRequest,
    UpdateStepRequest,
)
from expertise.v1.step_service_pb2_grpc import StepServiceStub
from expertise.v1.task_service_pb2 import (
    AbsentSteps,
    CreateTaskRequest,
    DeleteTaskRequest,
    ExportTaskRequest,
    ImportTaskRequest,
    ListTasksRequest,
    UpdateTaskRequest,
)
from expertise.v1.task_service_pb2_grpc import TaskServiceStub
from google.protobuf import json_format
from google.protobuf.field_mask_pb2 import FieldMask

WRITERS = 4
WRITES = 150
# The longest pause between two of them, in seconds.
PAUSE_MAX = 0.1
RESTARTS_MIN = 5
PRODUCT = 7
# Writers race: what one is about to change, another may have deleted or changed.
RACES = ("NOT_FOUND", "ABORTED", "FAILED_PRECONDITION")


class Writer:
    """Makes random writes."""

    def __init__(self, channel: grpc.Channel, account: str, seed: int) -> None:
        self.tasks = TaskServiceStub(channel)
        self.steps = StepServiceStub(channel)
        self.revisions = RevisionServiceStub(channel)
        self.metadata = [("x-account-id", account)]
        self.random = random.Random(seed)
        self.deleted: list[str] = []

    def call(self, rpc, request):
        return rpc(request, timeout=30, metadata=self.metadata)

    def write(self) -> None:
        tasks = all_tasks(self)
        kinds = [self.create, self.import_new]
        if len(tasks) > 2:
            kinds = [self.create_step] * 4 + [self.update_step] * 4 + [self.delete_step] * 2
            kinds += [self.rename, self.import_again, self.restore]
            kinds += [self.create if len(tasks) < 8 else self.delete]
        try:
            self.random.choice(kinds)(self.random.choice(tasks) if tasks else None)
        except grpc.RpcError as error:
            if error.code().name not in RACES:
                raise

    def text(self) -> str:
        return f"Text {self.random.randrange(1_000_000)}"

    def new_step(self, **fields) -> Step:
        return Step(product_id=PRODUCT, type=StepType.STEP_TYPE_END, title=self.text(), **fields)

    def create(self, _) -> None:
        task = Task(name=self.text(), product_id=PRODUCT)
        self.call(self.tasks.CreateTask, CreateTaskRequest(task=task))

    def import_new(self, _) -> None:
        task = Task(name=self.text(), product_id=PRODUCT)
        steps = [self.new_step() for _ in range(self.random.randrange(5))]
        document = TaskDocument(task=task, steps=steps)
        self.call(self.tasks.ImportTask, ImportTaskRequest(document=document))

    def import_again(self, task: Task) -> None:
        request = ExportTaskRequest(guid=task.guid)
        document = self.call(self.tasks.ExportTask, request).document
        kept = self.random.randrange(len(document.steps) + 1)
        steps = [*self.random.sample(list(document.steps), kept), self.new_step()]
        request = ImportTaskRequest(
            document=TaskDocument(task=document.task, steps=steps),
            absent_steps=AbsentSteps.ABSENT_STEPS_DELETE,
        )
        self.call(self.tasks.ImportTask, request)

    def rename(self, task: Task) -> None:
        request = UpdateTaskRequest(
            task=Task(guid=task.guid, name=self.text()), update_mask=FieldMask(paths=["name"])
        )
        self.call(self.tasks.UpdateTask, request)

    def delete(self, task: Task) -> None:
        self.call(self.tasks.DeleteTask, DeleteTaskRequest(guid=task.guid, force=True))
        self.deleted.append(task.guid)

    def restore(self, task: Task) -> None:
        guid = self.random.choice(self.deleted) if self.deleted else task.guid
        request = RestoreRevisionRequest(task=guid, revision="1")
        self.call(self.revisions.RestoreRevision, request)

    def create_step(self, task: Task) -> None:
        after = self.random.choice([*task.steps, ""])
        request = CreateStepRequest(step=self.new_step(task=task.guid), prevstep=after)
        self.call(self.steps.CreateStep, request)

    def update_step(self, task: Task) -> None:
        if task.steps:
            step = Step(guid=self.random.choice(task.steps), body=self.text())
            mask = FieldMask(paths=["body"])
            self.call(self.steps.UpdateStep, UpdateStepRequest(step=step, update_mask=mask))

    def delete_step(self, task: Task) -> None:
        if task.steps:
            request = DeleteStepRequest(guid=self.random.choice(task.steps))
            self.call(self.steps.DeleteStep, request)


def all_tasks(writer: Writer) -> list[Task]:
    request = ListTasksRequest(page_size=500)
    return list(writer.call(writer.tasks.ListTasks, request).tasks)


def as_object(message) -> dict:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def read_service(reader: Writer) -> tuple[dict, dict]:
    """The tasks, and the steps of each in their order."""
    tasks, steps = {}, {}
    for task in all_tasks(reader):
        request = ListStepsRequest(task=task.guid, page_size=500, expand=["body"])
        listed = reader.call(reader.steps.ListSteps, request).steps
        tasks[task.guid] = as_object(task)
        steps[task.guid] = [as_object(step) for step in listed]
    return tasks, steps


def read_copy(file: Path) -> tuple[dict, dict]:
    with sqlite3.connect(file) as database:
        rows = database.execute("SELECT guid, json FROM tasks").fetchall()
        tasks = {guid: json.loads(text) for guid, text in rows}
        rows = database.execute("SELECT guid, json FROM steps").fetchall()
        steps = {guid: json.loads(text) for guid, text in rows}
    in_order = {
        guid: [steps.pop(step) for step in task.get("steps", [])] for guid, task in tasks.items()
    }
    assert not steps, f"steps of no task: {list(steps)}"
    return tasks, in_order


def check_exports(reader: Writer, copied: dict) -> None:
    """Every field that an export has is as in the copy."""
    for guid, steps in copied.items():
        document = reader.call(reader.tasks.ExportTask, ExportTaskRequest(guid=guid)).document
        exported = [as_object(step) for step in document.steps]
        assert [step["guid"] for step in exported] == [step["guid"] for step in steps], guid
        for mine, theirs in zip(steps, exported):
            shared = theirs.keys() & mine.keys()
            assert {"title", "type"} <= shared, shared
            assert {key: mine[key] for key in shared} == {key: theirs[key] for key in shared}


def main(address: str, account: str, synchronise: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory, grpc.insecure_channel(address) as channel:
        file = Path(directory) / "copy.db"
        command = [sys.executable, synchronise, address, account, str(file)]
        failures: list[BaseException] = []

        def run(writer: Writer) -> None:
            try:
                for _ in range(WRITES):
                    writer.write()
                    time.sleep(writer.random.uniform(0, PAUSE_MAX))
            except BaseException as error:
                failures.append(error)

        writers = [Writer(channel, account, seed + number) for number in range(WRITERS)]
        threads = [threading.Thread(target=run, args=[writer]) for writer in writers]
        for thread in threads:
            thread.start()
        restarts = 0
        while any(thread.is_alive() for thread in threads) or restarts < RESTARTS_MIN:
            follower = subprocess.Popen(command)
            time.sleep(moments.uniform(0.3, 2))
            assert follower.poll() is None, "the synchroniser ended"
            follower.kill()
            follower.wait()
            restarts += 1
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        subprocess.run([*command, "--once"], check=True, timeout=60)
        tasks, steps = read_copy(file)
        expected_tasks, expected_steps = read_service(writers[0])
        assert tasks == expected_tasks
        assert steps == expected_steps
        check_exports(writers[0], steps)
        count = sum(map(len, steps.values()))
        print(f"{len(tasks)} tasks and {count} steps after {restarts} restarts")


if __name__ == "__main__":
    main(*sys.argv[1:])
