"""Report what an ACE run does to Temporal, where acescope shows it.

    with observer(enabled=True) as ace:                    # TemporalObserver; NullObserver if not enabled
        run = ace.start({"task_id": "q-7", "prompt": "What is ...", "model": "my-model"})
        run.phase("skills")
        call = run.tool_use("look_up", {"q": 1})
        run.tool_result(call, {"known": 0})
        run.finish(answer="42", correct=True)

No method but close waits, and none raises. A TemporalObserver keeps events in memory and delivers them from a
thread of its own, in order, again and again until the server has them. When the buffer is full, further events
are dropped and counted.
"""

from __future__ import annotations

import asyncio
import atexit
import getpass
import json
import logging
import socket
import threading
import time
import uuid
from collections import deque
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Mapping

from temporalio.client import Client
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDReusePolicy,
)
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

__all__ = ["NullObserver", "Observer", "Run", "TemporalObserver", "observer"]

BUFFER = 10_000  # events that wait
BATCH = 100  # events in a signal
BATCH_BYTES = 256 << 10
FIELD_BYTES = 16 << 10  # arguments or result of a tool call; a larger value becomes a preview
STEP_BYTES = 64 << 10  # result of a step; a larger one is left out
PREVIEW_BYTES = 256
INTERVAL = 0.05  # seconds between signals; the first event after a pause is sent at once
RETRY = (0.05, 5.0)  # seconds, first and longest
CALL = 5.0  # seconds

log = logging.getLogger("acescope_observer")


class Run:
    """A run that is reported. Its methods may be called from any thread."""

    def __init__(self, observer: Observer, workflow_id: str, run_id: str | None, task: dict[str, Any] | None):
        self.workflow_id, self.run_id = workflow_id, run_id
        self.task = task  # the input of a run that the observer starts, None for one that exists
        self._observer = observer

    def record_tool_event(self, kind: str, name: str = "", **fields: Any) -> str:
        """Record an event with fields of the contract, and return its call_id."""
        event_id = _id(fields.get("event_id")) or str(uuid.uuid4())
        self._observer._record(self, {**fields, "event_id": event_id, "kind": kind, "name": name})
        return _id(fields.get("call_id")) or event_id

    def tool_use(self, name: str, args: Any = None, call_id: str | None = None) -> str:
        """Record that a tool call began, and return its call_id."""
        return self.record_tool_event("tool_use", name, args=args, call_id=call_id)

    def tool_result(
        self,
        call_id: str,
        result: Any = None,
        *,
        name: str = "",
        error: str = "",
        accepted: bool = True,
        duration_ms: float | None = None,
    ) -> None:
        """Record the end of a tool call. accepted is False if it was denied."""
        self.record_tool_event(
            "tool_result",
            name,
            call_id=call_id,
            result=result,
            error=error,
            accepted=accepted,
            ok=_true(accepted) and not _true(error),
            duration_ms=duration_ms,
        )

    def slash_command(self, name: str) -> None:
        """Record a slash command."""
        self.record_tool_event("slash_command", name)

    def phase(self, phase: str) -> None:
        """Record that a phase begins: generator, skills, reflector, curator or persist."""
        self.record_tool_event("phase", phase)

    def step(self, phase: str, result: Any = None, error: str = "") -> None:
        """Record the result of a phase, or why it failed."""
        self.record_tool_event("step", phase, result=result, error=error)

    def finish(
        self,
        *,
        exit_status: str | None = None,
        answer: str = "",
        correct: bool | None = None,
        error: str = "",
    ) -> None:
        """Record the end of the run: success, wrong, failed, cancelled or timeout."""
        result = {"exit_status": exit_status, "answer": answer, "correct": correct}
        given = {k: v for k, v in result.items() if not _empty(v)}
        self.record_tool_event("finish", result=_fields(given, FIELD_BYTES), error=error)


class Observer:
    """What NullObserver and TemporalObserver share. dropped counts events that will not be delivered."""

    def __init__(self, source: str = "python") -> None:
        self.dropped = 0
        self._source = source
        self._lock = threading.Condition()
        self._seq = 0

    def start(self, task: Mapping[str, Any]) -> Run:
        """Start a run of a task: the task input of the contract, of which only task_id is needed."""
        try:
            given = _fields(task, STEP_BYTES)
        except Exception:
            given = {}
        given["task_id"] = str(given.get("task_id") or uuid.uuid4())
        about = {
            "prompt": "",
            "adapter": "online",
            "playbook_hash": "",
            "skills_config": {},
            "experiment_id": "",
            "dataset_id": "",
            "model": "",
            "by": _user(),
            **given,
            "observed": True,
            "source": self._source,
            "revision": 1,
        }
        run = Run(self, "ace/" + about["task_id"], None, about)
        run.record_tool_event("message", "start")
        return run

    def attach(self, workflow_id: str | None, run_id: str | None = None) -> Run:
        """Return a run that exists, such as that of the activity that calls this."""
        return Run(self, _id(workflow_id), run_id, None)

    def close(self, timeout: float = 5.0) -> int:
        """Deliver what waits, for at most so many seconds; return the number of events that still wait."""
        return 0

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _record(self, run: Run, fields: dict[str, Any]) -> None:
        try:
            limit = STEP_BYTES if fields["kind"] == "step" else FIELD_BYTES
            given = {k: v for k, v in fields.items() if not _empty(v)}
            event = _fields(given, limit, fields["kind"] != "step")
            if "error" in given:  # the call or the run has failed
                event.setdefault("error", "an error that cannot be shown")
            event.setdefault("at", datetime.now(timezone.utc).isoformat())
            event.setdefault("source", self._source)
            with self._lock:
                self._seq = max(time.time_ns() // 1000, self._seq + 1)
                event.setdefault("seq", self._seq)
                self._keep(run, event)
        except Exception as e:  # an observer never harms the run that it observes
            self.dropped += 1
            log.debug("event not recorded: %s", e)

    def _keep(self, run: Run, event: dict[str, Any]) -> None:
        raise NotImplementedError


class NullObserver(Observer):
    """Sends nothing. It keeps the newest events in memory, as (workflow id, event)."""

    def __init__(self, buffer: int = BUFFER, source: str = "python") -> None:
        super().__init__(source)
        self.events: deque[tuple[str, dict[str, Any]]] = deque(maxlen=buffer)

    def _keep(self, run: Run, event: dict[str, Any]) -> None:
        self.events.append((run.workflow_id, event))


class TemporalObserver(Observer):
    """Delivers events to the workflows of runs. failure says why the last attempt failed, "" if it did not.

    connect returns a client; the default reads TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and so on. task_queue is
    that of the workers that execute observed runs: acescope's own.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Client]] | None = None,
        *,
        task_queue: str = "ace",
        buffer: int = BUFFER,
        source: str = "python",
    ) -> None:
        super().__init__(source)
        self.failure = ""
        self._connect = connect or _connect
        self._task_queue, self._buffer = task_queue, buffer
        self._waiting: deque[tuple[Run, dict[str, Any], int]] = deque()
        self._client: Client | None = None
        self._sent = 0.0
        self._deadline: float | None = None  # monotonic time at which a closed observer gives up
        self._thread = threading.Thread(target=self._deliver, name="acescope-observer", daemon=True)
        self._thread.start()
        atexit.register(self.close, 2.0)

    @property
    def waiting(self) -> int:
        """The number of events that are not delivered yet."""
        return len(self._waiting)

    def close(self, timeout: float = 5.0) -> int:
        with self._lock:
            self._deadline = time.monotonic() + timeout
            self._lock.notify_all()
        self._thread.join(timeout)
        return len(self._waiting)

    def _keep(self, run: Run, event: dict[str, Any]) -> None:
        if len(self._waiting) >= self._buffer or self._deadline is not None:
            self.dropped += 1
            return
        self._waiting.append((run, event, len(json.dumps(event))))
        self._lock.notify_all()

    def _deliver(self) -> None:
        loop, delay = asyncio.new_event_loop(), RETRY[0]
        while batch := self._next():
            run, events = batch[0][0], [event for _, event, _ in batch]
            try:
                loop.run_until_complete(asyncio.wait_for(self._send(run, events), CALL))
                self.failure = ""
            except Exception as e:
                self.failure = str(e) or type(e).__name__
                if not _refused(e, starting=run.task is not None):
                    self._rest(delay)
                    delay = min(2 * delay, RETRY[1])
                    continue
                self.dropped += len(batch)
                log.info("%d events of %s are refused: %s", len(batch), run.workflow_id, self.failure)
            delay = RETRY[0]
            with self._lock:
                for _ in batch:
                    self._waiting.popleft()
        loop.close()

    def _next(self) -> list[tuple[Run, dict[str, Any], int]]:
        """Wait for events, and return the first ones of one run; none if the observer is closed."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._deadline is not None)
            soon = max(0.0, self._sent + INTERVAL - time.monotonic())
            self._lock.wait_for(lambda: len(self._waiting) >= BATCH or self._deadline is not None, soon)
            self._sent = time.monotonic()
            if self._deadline is not None and time.monotonic() > self._deadline:
                return []
            batch: list[tuple[Run, dict[str, Any], int]] = []
            size = 0
            for entry in self._waiting:
                size += entry[2]
                if batch and (entry[0] is not batch[0][0] or len(batch) == BATCH or size > BATCH_BYTES):
                    break
                batch.append(entry)
            return batch

    def _rest(self, seconds: float) -> None:
        with self._lock:
            closing = self._deadline is not None
            self._lock.wait_for(lambda: not closing and self._deadline is not None, seconds)

    async def _send(self, run: Run, events: list[dict[str, Any]]) -> None:
        if self._client is None:
            self._client = await self._connect()
        if run.task is None:
            handle = self._client.get_workflow_handle(run.workflow_id, run_id=run.run_id)
            await handle.signal("record_tool_event", events)
            return
        keywords = {
            "ExperimentId": run.task["experiment_id"],
            "DatasetId": run.task["dataset_id"],
            "ModelName": run.task["model"],
            "AdapterType": run.task["adapter"],
            "ExitStatus": "running",
            "TaskId": run.task["task_id"],
            "Phase": "generator",
        }
        pairs = [SearchAttributePair(SearchAttributeKey.for_keyword(k), str(v)) for k, v in keywords.items()]
        await self._client.start_workflow(
            "AceTaskWorkflow",
            run.task,
            id=run.workflow_id,
            task_queue=self._task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            search_attributes=TypedSearchAttributes(pairs),
            memo={
                "ace_observed": {
                    "start": events[0]["event_id"],
                    "source": self._source,
                    "at": events[0]["at"],
                },
                "ace_by": run.task["by"],
            },
            start_signal="record_tool_event",
            start_signal_args=[events],
        )
        run.task = None


def _user() -> str:
    """Return the user and the machine of this process as user@host."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except Exception:  # a process in a container may have no user
        return ""


def observer(enabled: bool = True, **options: Any) -> Observer:
    """Return a TemporalObserver with the options, or a NullObserver if it is not enabled."""
    try:
        return TemporalObserver(**options) if enabled else NullObserver()
    except Exception as e:
        log.warning("runs are not reported: %s", e)
        return NullObserver()


async def _connect() -> Client:
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    return await Client.connect(**config, lazy=True)


def _refused(e: Exception, starting: bool) -> bool:
    """Whether the server will never accept the events: the run has closed, or they are not valid."""
    if isinstance(e, RPCError):
        closed = e.status == RPCStatusCode.NOT_FOUND and not starting  # otherwise the namespace is missing
        return closed or e.status == RPCStatusCode.INVALID_ARGUMENT
    return isinstance(e, WorkflowAlreadyStartedError)


def _empty(value: Any) -> bool:
    return value is None or type(value) is str and not value


def _true(value: Any) -> bool:
    """Return whether the value is true, and False for a value without truth, such as an array."""
    try:
        return bool(value)
    except Exception:
        return False


def _id(value: Any) -> str:
    """Return the text of an ID, "" if it is none."""
    try:
        return str(value) if isinstance(value, (str, int, uuid.UUID)) else ""
    except Exception:  # isinstance reads the attribute __class__
        return ""


def _fields(fields: Mapping[str, Any], limit: int, preview: bool = True) -> dict[str, Any]:
    """Return the fields as JSON can hold them, without those of which nothing is known."""
    plain = {k: _plain(v, limit, preview) for k, v in dict(fields).items()}
    return {k: v for k, v in plain.items() if v is not None}


def _plain(value: Any, limit: int, preview: bool = True) -> Any:
    """Return the value as JSON can hold it, or None if it can neither be encoded nor printed. If it is too
    large, return a preview of its JSON, or None."""
    try:
        text = json.dumps(value, allow_nan=False, default=str)
    except Exception:
        try:
            text = json.dumps(repr(value))
        except Exception:
            return None
    if len(text) <= limit:
        return json.loads(text)
    if not preview:
        return None
    return (value if type(value) is str else text)[:PREVIEW_BYTES] + "…"
