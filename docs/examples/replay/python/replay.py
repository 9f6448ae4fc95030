"""Replays workflow histories for acescope with the Python SDK's own replayer.

    python replay.py [--plugin MODULE:NAME]... [--data-converter MODULE:NAME] [--unsandboxed] MODULE...

MODULE is imported; every class in it with @workflow.defn can be replayed. NAME of a plugin or a data converter is an
object, or a function without parameters that returns one. A line of standard input is a history, a line of standard
output its verdict; see docs/guides/replayers.md.
"""

import argparse
import asyncio
import importlib
import inspect
import json
import os
import sys
import threading

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner


def load(name):
    module, _, attribute = name.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    return value() if inspect.isroutine(value) or inspect.isclass(value) else value


def workflows_of(modules):
    classes = {c for m in modules for _, c in inspect.getmembers(m, inspect.isclass)}
    return [c for c in classes if hasattr(c, "__temporal_workflow_definition")]


def read(lines, queue, loop):
    for line in lines:
        loop.call_soon_threadsafe(queue.put_nowait, line)
    loop.call_soon_threadsafe(queue.put_nowait, None)


async def main(args, lines, answer):
    modules = [importlib.import_module(m) for m in args.module]
    workflows = workflows_of(modules)
    options = {"workflows": workflows, "plugins": [load(p) for p in args.plugin]}
    if args.data_converter:
        options["data_converter"] = load(args.data_converter)
    if args.unsandboxed:
        options["workflow_runner"] = UnsandboxedWorkflowRunner()
    replayer, queue = Replayer(**options), asyncio.Queue()
    known = {workflow._Definition.must_from_class(c).name for c in workflows}
    threading.Thread(target=read, args=(lines, queue, asyncio.get_running_loop()), daemon=True).start()

    async def histories():
        while (line := await queue.get()) is not None:
            ask = json.loads(line)
            start = ask["history"]["events"][0]["workflowExecutionStartedEventAttributes"]
            name = start["workflowType"]["name"]
            if name in known or None in known:  # None: a dynamic workflow
                yield WorkflowHistory.from_json(ask["workflow_id"], ask["history"])
                continue
            answer(ask["workflow_id"], ask["run_id"], "error",
                   f"workflow type {name!r} is not in {', '.join(args.module)}")

    async with replayer.workflow_replay_iterator(histories()) as results:
        async for r in results:
            verdict, message = "deterministic", None
            if r.replay_failure is not None:
                nondeterministic = isinstance(r.replay_failure, workflow.NondeterminismError)
                verdict, message = "nondeterministic" if nondeterministic else "error", str(r.replay_failure)
            answer(r.history.workflow_id, r.history.run_id, verdict, message)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", action="append", default=[])
    parser.add_argument("--data-converter")
    parser.add_argument("--unsandboxed", action="store_true")
    parser.add_argument("module", nargs="+")
    # Only answers may be on standard output: what workflows print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())

    def answer(workflow_id, run_id, verdict, message):
        print(json.dumps({"workflow_id": workflow_id, "run_id": run_id, "verdict": verdict, "message": message}),
              file=answers, flush=True)

    asyncio.run(main(parser.parse_args(), sys.stdin.buffer, answer))
