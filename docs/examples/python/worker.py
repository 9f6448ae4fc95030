"""A worker that runs ACE tasks such as "What is 3 dozen?" and learns how many a dozen is.

python worker.py            # polls task queue ace-python; acescope polls ace
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from acescope_observer import Observer, TemporalObserver
    from temporalio.client import Client
    from temporalio.envconfig import ClientConfig
    from temporalio.worker import Worker

TASK_QUEUE = "ace-python"
ACESCOPE = "ace"  # acescope's task queue: its activities keep the playbooks
STEPS = {
    "generator": "run_generator",
    "skills": "run_skills_session",
    "reflector": "run_reflector",
    "curator": "run_curator",
    "persist": "persist_results",
}


@workflow.defn(name="AceTaskWorkflow")
class AceTask:
    def __init__(self) -> None:
        self.phase, self.status = "generator", "running"
        self.steps = {phase: "pending" for phase in STEPS}
        self.calls: dict[str, dict[str, Any]] = {}
        self.curated: dict[str, Any] = {}
        self.merged: dict[str, Any] = {}

    @workflow.run
    async def run(self, task: dict[str, Any]) -> dict[str, Any]:
        info, branch = workflow.info(), task.get("branch", "")
        about = {
            k: task.get(k, "") for k in ("task_id", "experiment_id", "playbook_hash", "provider", "model")
        }
        about |= {
            "workflow_id": info.workflow_id,
            "run_id": info.run_id,
            "skills_config": task.get("skills_config", {}),
        }
        if branch:
            head = await self.call(
                "playbook_head", {"branch": branch, "initial": about["playbook_hash"]}, ACESCOPE
            )
            about["playbook_hash"] = head["playbook_hash"]
        book = await self.call("read_playbook", {"playbook_hash": about["playbook_hash"]}, ACESCOPE)

        plan = await self.step(
            "generator", {"task": about, "prompt": task["prompt"], "bullets": book.get("bullets", [])}
        )
        session = await self.step(
            "skills",
            {
                "task": about,
                "prompt": task["prompt"],
                "plan": plan["plan"],
                "program": plan["program"],
                "bullet_ids": plan["bullet_ids"],
            },
        )
        insight = await self.step(
            "reflector",
            {
                "task": about,
                "prompt": task["prompt"],
                "plan": plan["plan"],
                "program": plan["program"],
                "bullet_ids": plan["bullet_ids"],
                "answer": session["answer"],
                "label": task.get("label"),
            },
        )
        self.curated = await self.step("curator", {"task": about, **insight})
        self.merged = await self.step(
            "persist",
            {
                "task": about,
                "branch": branch,
                "operations": self.curated["accepted"],
                "rationale": self.curated["rationale"],
            },
            ACESCOPE,
        )
        return self.finish(task, session, insight.get("correct"))

    async def call(self, name: str, argument: Any, queue: str | None = None) -> Any:
        return await workflow.execute_activity(
            name,
            argument,
            task_queue=queue,
            start_to_close_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(maximum_attempts=5),
        )

    async def step(self, phase: str, argument: Any, queue: str | None = None) -> Any:
        self.phase, self.steps[phase] = phase, "running"
        try:
            result = await self.call(STEPS[phase], argument, queue)
        except Exception:
            self.steps[phase], self.status = "failed", "failed"
            raise  # a run that did not do its work fails its workflow
        self.steps[phase] = "done"
        return result

    def finish(self, task: dict[str, Any], session: dict[str, Any], correct: bool | None) -> dict[str, Any]:
        self.phase, self.status = "done", "completed"
        exit_status = "wrong" if correct is False else "success"
        verdict = {True: "correct", False: "wrong", None: "ungraded" if "label" in task else "unlabeled"}[
            correct
        ]
        accepted = [o["type"] for o in self.merged["operations"] if o["fate"] == "accepted"]
        summary = {
            "verdict": verdict,
            "skills": len(session["invocations"]),
            "skills_ok": sum(i["accepted"] and i["ok"] for i in session["invocations"]),
            "added": accepted.count("ADD"),
            "updated": accepted.count("UPDATE"),
            "removed": accepted.count("REMOVE"),
            "tagged": accepted.count("TAG"),
            "rejected": len(self.merged["operations"]) - len(accepted),
            "usage": {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0},
        }
        workflow.upsert_memo({"ace_summary": summary})
        # An attribute that the namespace lacks would block the run: set only those that it started with.
        values = {"Phase": "done", "ExitStatus": exit_status}
        given = {pair.key.name for pair in workflow.info().typed_search_attributes}
        workflow.upsert_search_attributes(
            [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in values.items() if k in given]
        )
        return {
            "task_id": task["task_id"],
            "exit_status": exit_status,
            "answer": session["answer"],
            "correct": correct,
            "verdict": verdict,
            "playbook_hash": self.merged["playbook_after"],
            "bullets": self.merged["bullets"],
            "seq": self.merged.get("seq", 0),
            "index": task.get("index", 0),
            "summary": summary,
        }

    @workflow.signal
    def record_tool_event(self, events: Any) -> None:
        for e in events if isinstance(events, list) else [events]:
            call = self.calls.setdefault(e.get("call_id", e["event_id"]), {})
            call |= {k: e[k] for k in ("name", "kind", "ok", "accepted", "error") if k in e}

    @workflow.query
    def get_current_phase(self) -> dict[str, Any]:
        steps = [{"phase": phase, "status": status} for phase, status in self.steps.items()]
        return {
            "phase": self.phase,
            "status": self.status,
            "steps": steps,
            "usage": {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0},
        }

    @workflow.query
    def get_skill_usage(self) -> dict[str, Any]:
        skills: dict[str, dict[str, Any]] = {}
        for call in self.calls.values():
            s = skills.setdefault(
                call["name"],
                {
                    "name": call["name"],
                    "calls": 0,
                    "ok": 0,
                    "failed": 0,
                    "denied": 0,
                    "pending": 0,
                    "p50_ms": 0,
                    "p95_ms": 0,
                },
            )
            s["calls"] += 1
            s[
                "pending"
                if call["kind"] == "tool_use"
                else "denied"
                if not call.get("accepted", True)
                else "ok"
                if call.get("ok", True)
                else "failed"
            ] += 1
        return {"skills": list(skills.values()), "total": len(self.calls), "recent": []}

    @workflow.query
    def get_playbook_delta(self) -> dict[str, Any]:
        return {
            "playbook_before": self.merged.get("playbook_before", ""),
            "playbook_after": self.merged.get("playbook_after", ""),
            "operations": self.merged.get("operations", self.curated.get("accepted", [])),
            "rationale": self.curated.get("rationale", ""),
        }


class Solver:
    """The activities: replace them by calls of your models."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    @activity.defn
    def run_generator(self, request: dict[str, Any]) -> dict[str, Any]:
        found = re.search(r"(\d+) (\w+)", request["prompt"])
        if not found:  # another attempt would not find one either
            raise ApplicationError("no amount and unit in the prompt", type="BadPrompt", non_retryable=True)
        amount, unit = found.groups()
        known = [b for b in request["bullets"] if b["content"].startswith(f"1 {unit} = ")]
        factor = int(known[0]["content"].split("= ")[1]) if known else 1
        return {
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "trajectory_id": request["task"]["task_id"],
            "plan": f"multiply by {factor}" + ("" if known else ", a guess"),
            "program": {"amount": int(amount), "unit": unit, "factor": factor},
            "bullet_ids": [b["id"] for b in known],
        }

    @activity.defn
    def run_skills_session(self, request: dict[str, Any]) -> dict[str, Any]:
        info = activity.info()
        run = self.observer.attach(info.workflow_id, info.workflow_run_id)
        args = {k: request["program"][k] for k in ("amount", "factor")}
        call = run.tool_use("multiply", args, call_id=f"skills-{info.attempt}.1")
        product = args["amount"] * args["factor"]
        run.tool_result(call, product, name="multiply")
        return {
            "invocations": [
                {
                    "id": call,
                    "name": "multiply",
                    "args": args,
                    "result": product,
                    "accepted": True,
                    "ok": True,
                    "duration_ms": 0,
                }
            ],
            "answer": str(product),
        }

    @activity.defn
    def run_reflector(self, request: dict[str, Any]) -> dict[str, Any]:
        label = request.get("label")
        if label is None:
            return {"insights": "There is no label."}
        correct = request["answer"] == label
        tag = "helpful" if correct else "harmful"
        program = request["program"]
        return {
            "insights": "The answer is right."
            if correct
            else f"{request['answer']} is wrong, {label} is right.",
            "bullet_tags": [{"id": i, "tag": tag} for i in request["bullet_ids"]],
            "correct": correct,
            "findings": {"unit": program["unit"], "factor": int(label) // program["amount"]},
        }

    @activity.defn
    def run_curator(self, request: dict[str, Any]) -> dict[str, Any]:
        accepted = [
            {"type": "TAG", "bullet_id": t["id"], "metadata": {t["tag"]: 1}}
            for t in request.get("bullet_tags", [])
        ]
        if request.get("correct") is False:
            lesson = request["findings"]
            accepted.append(
                {
                    "type": "ADD",
                    "section": "CONVERSIONS",
                    "content": f"1 {lesson['unit']} = {lesson['factor']}",
                }
            )
        return {"accepted": accepted, "rejected": [], "rationale": request["insights"]}


async def main() -> None:
    from concurrent.futures import ThreadPoolExecutor

    client = await Client.connect(**ClientConfig.load_client_connect_config())
    with TemporalObserver() as observer, ThreadPoolExecutor(16) as threads:
        solver = Solver(observer)
        await Worker(
            client,
            task_queue=TASK_QUEUE,
            workflows=[AceTask],
            activity_executor=threads,
            activities=[
                solver.run_generator,
                solver.run_skills_session,
                solver.run_reflector,
                solver.run_curator,
            ],
        ).run()


if __name__ == "__main__":
    asyncio.run(main())
