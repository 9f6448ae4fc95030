"""pytest test_observer.py: needs temporalio, and no server."""

import threading
import time
from types import SimpleNamespace

import pytest
from temporalio.service import RPCError, RPCStatusCode

from acescope_observer import NullObserver, TemporalObserver, observer


class FakeClient:
    """Stands in for temporalio.client.Client; fail() raises what the next calls raise."""

    def __init__(self):
        self.started, self.signals, self.errors = [], [], []
        self.gate = threading.Event()
        self.gate.set()

    async def connect(self):
        return self

    def fail(self):
        self.gate.wait(5)
        if self.errors:
            raise self.errors.pop(0)

    async def start_workflow(self, name, task, **options):
        self.fail()
        self.started.append((name, task, options))
        self.signals.append((options["id"], options["start_signal_args"][0]))

    def get_workflow_handle(self, workflow_id, run_id=None):
        async def signal(name, events, **_):
            self.fail()
            assert name == "record_tool_event"
            self.signals.append((workflow_id, events))

        return SimpleNamespace(signal=signal)

    def events(self, workflow_id=None):
        return [e for w, events in self.signals for e in events if workflow_id in (None, w)]


@pytest.fixture
def client():
    return FakeClient()


def test_reports_a_run(client):
    with TemporalObserver(client.connect) as ace:
        run = ace.start({"task_id": "q-7", "prompt": "What?", "model": "m", "experiment_id": "e"})
        run.phase("skills")
        call = run.tool_use("look_up", {"q": 1})
        run.tool_result(call, {"known": 0}, duration_ms=12)
        run.tool_result(run.tool_use("rm"), accepted=False, error="denied")
        run.slash_command("/review")
        run.step("skills", {"invocations": [], "answer": "42"})
        run.finish(answer="42", correct=True)
        assert ace.close() == 0
    ((name, task, options),) = client.started
    assert (name, options["id"], options["task_queue"]) == ("AceTaskWorkflow", "ace/q-7", "ace")
    assert task["observed"] is True and task["prompt"] == "What?" and task["adapter"] == "online"
    values = {p.key.name: p.value for p in options["search_attributes"]}
    assert values["TaskId"] == "q-7" and values["ExperimentId"] == "e" and len(values) == 7
    events = client.events()
    assert [e["kind"] for e in events] == [
        "message",
        "phase",
        "tool_use",
        "tool_result",
        "tool_use",
        "tool_result",
        "slash_command",
        "step",
        "finish",
    ]
    assert (
        events[2]["event_id"] == events[3]["call_id"] == call
        and events[3]["ok"]
        and not events[5]["accepted"]
    )
    assert events[8]["result"] == {"answer": "42", "correct": True}
    assert len({e["event_id"] for e in events}) == 9
    assert [e["seq"] for e in events] == sorted({e["seq"] for e in events})


def test_retries_in_order_until_the_server_answers(client):
    client.errors = [
        ConnectionError("away"),
        RPCError("no namespace", RPCStatusCode.NOT_FOUND, b""),
        OSError(),
    ]
    with TemporalObserver(client.connect) as ace:
        run = ace.start({"task_id": "t"})
        for n in range(250):
            run.tool_use(str(n))
    assert [e["name"] for e in client.events()] == ["start", *map(str, range(250))]
    assert max(len(events) for _, events in client.signals) <= 100 and ace.dropped == 0


def test_drops_what_a_closed_run_refuses(client):
    ace = TemporalObserver(client.connect)
    client.errors = [RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")]
    ace.attach("ace/old").tool_use("late")
    while ace.waiting:
        time.sleep(0.001)
    ace.attach("ace/new", "run").tool_use("next")
    assert ace.close() == 0 and ace.dropped == 1
    assert [e["name"] for e in client.events("ace/new")] == ["next"]


def test_never_blocks_and_counts_what_it_drops(client):
    client.gate.clear()  # the server hangs
    ace = TemporalObserver(client.connect, buffer=10)
    run = ace.attach("ace/t")
    began = time.monotonic()
    for n in range(1000):
        run.tool_use(str(n))
    assert ace.waiting == 10 and ace.dropped == 990
    assert ace.close(0.05) == 10
    assert time.monotonic() - began < 4  # the call in flight takes up to 5
    client.gate.set()


def test_never_raises(client):
    class Odd:
        def __eq__(self, other):
            raise ValueError

        def __repr__(self):
            raise ValueError

        __str__ = __bool__ = __repr__

    class NoClass:
        @property
        def __class__(self):
            raise ValueError

    class NoLength(str):
        def __len__(self):
            raise ValueError

    loop = []
    loop.append(loop)
    for ace in TemporalObserver(client.connect), NullObserver():
        run = ace.start({"task_id": 7, "prompt": Odd(), "label": float("nan")})
        ace.start(None).finish()
        run.tool_use("x", Odd())
        run.tool_use("y", loop)
        run.tool_use("z", {"big": "x" * 100_000, "bytes": b"\xff"})
        run.tool_use("n", float("nan"))
        run.step("skills", "x" * 100_000)
        run.record_tool_event("usage", None, nonsense={1: object()})
        ace.attach(Odd()).record_tool_event("message", event_id=Odd(), call_id=Odd())
        run.tool_result("c", accepted=Odd(), error=Odd())
        run.finish(answer=Odd(), correct=Odd())
        for value in NoClass(), NoLength("x"):
            other = ace.attach(value)
            other.record_tool_event("message", event_id=value, call_id=value)
            other.finish(answer=value, error=value)
        ace.close()
        assert ace.dropped == 0
    sent = {e.get("name"): e for e in client.events()}
    assert len(sent["z"]["args"]) < 300 and sent["z"]["args"].endswith("…")
    assert sent["skills"].get("result") is None and sent["n"]["args"] == "nan"


def test_an_event_is_sent_without_what_cannot_be_printed(client):
    class Odd:
        def __repr__(self):
            raise KeyError

    loop = [Odd()]
    loop.append(loop)
    with TemporalObserver(client.connect) as ace:
        run = ace.start({"task_id": "t", "prompt": Odd(), "model": "m"})
        run.tool_use("x", {"known": 1, "odd": Odd()})
        run.finish(exit_status="failed", answer=loop, correct=False, error=Odd())
    task, (_, call, end) = client.started[0][1], client.events()
    assert (task["prompt"], task["model"]) == ("", "m")
    assert call["name"] == "x" and "args" not in call
    assert end["kind"] == "finish" and end["result"] == {"exit_status": "failed", "correct": False}
    assert end["error"] == "an error that cannot be shown" and ace.dropped == 0


def test_a_task_is_sent_without_what_json_cannot_hold(client):
    with TemporalObserver(client.connect) as ace:
        ace.start({"task_id": "t", "label": object(), "prompt": "p" * 100_000})
    assert client.started[0][1]["task_id"] == "t" and client.started[0][1]["prompt"] == "p" * 256 + "…"


def test_null_observer_keeps_the_newest_events():
    ace = observer(enabled=False, address="ignored")
    assert isinstance(ace, NullObserver)
    ace = NullObserver(buffer=2)
    run = ace.start({"task_id": "t"})
    run.phase("skills")
    run.finish()
    assert [(w, e["kind"]) for w, e in ace.events] == [("ace/t", "phase"), ("ace/t", "finish")]
    assert ace.close() == 0


def test_an_observer_that_cannot_start_becomes_a_null_observer():
    assert isinstance(observer(no_such_option=1), NullObserver)


def test_many_threads_report_to_one_observer(client):
    with TemporalObserver(client.connect) as ace:
        runs = [ace.start({"task_id": str(n)}) for n in range(8)]
        threads = [
            threading.Thread(target=lambda r=r: [r.tool_use(str(i)) for i in range(100)]) for r in runs
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    for n in range(8):
        assert [e["name"] for e in client.events(f"ace/{n}")] == ["start", *map(str, range(100))]
    assert len(client.started) == 8
