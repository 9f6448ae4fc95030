"""Report a run that happens outside Temporal: python report.py TASK-ID. acescope's worker must run."""

import sys

from acescope_observer import observer

with observer(enabled=True) as ace:  # enabled: from your configuration
    run = ace.start(
        {"task_id": sys.argv[1], "prompt": "What is 3 dozen?", "model": "lookup", "experiment_id": "report"}
    )
    run.step(
        "generator",
        {"plan": "multiply by 12", "prompt_tokens": 6, "completion_tokens": 4, "trajectory_id": "t1"},
    )
    call = run.tool_use("multiply", {"amount": 3, "factor": 12})
    run.tool_result(call, 36, duration_ms=0.1)
    run.slash_command("/review")
    run.step(
        "curator",
        {
            "accepted": [{"type": "ADD", "section": "CONVERSIONS", "content": "1 dozen = 12"}],
            "rejected": [],
            "rationale": "a new unit",
        },
    )
    run.finish(answer="36", correct=True)
