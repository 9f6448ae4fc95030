"""Serves three steps of ACE's loop for tasks such as "Convert 3 furlongs to metres".

The step's input comes as one JSON object on standard input, its result goes as one JSON object
to standard output. What goes wrong is the last line on standard error, and an exit code.
"""
import json
import re
import sys
import time

TASK = re.compile(r"[Cc]onvert (-?\d+(?:\.\d+)?) ([a-z]+) to ([a-z]+)")
RULE = re.compile(r"1 ([a-z]+) = (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) ([a-z]+)")


def read_task(given):
    prompt = given.get("prompt")
    if prompt is None:  # above 32 KB it is in a file
        with open(given["prompt_ref"]["path"], encoding="utf-8") as f:
            prompt = f.read()
    found = TASK.search(prompt)
    if not found:
        sys.exit(f"the task is no conversion of units: {prompt[:80]!r}")
    return float(found[1]), found[2].rstrip("s"), found[3].rstrip("s")


def read_rules(playbook):
    """The conversions that the playbook knows: (from, to) -> (factor, bullet id)."""
    bullets = playbook.get("bullets")
    if bullets is None and "ref" in playbook:  # above 64 KB it is in a file
        with open(playbook["ref"]["path"], encoding="utf-8") as f:
            bullets = json.load(f)
    rules = {}
    for b in bullets or []:
        if b["harmful"] > b["helpful"]:
            continue
        for unit, factor, into in RULE.findall(b["content"]):
            rules[unit.rstrip("s"), into.rstrip("s")] = (float(factor), b["id"])
    return rules


def generator(given):
    amount, unit, into = read_task(given)
    rule = read_rules(given["playbook"]).get((unit, into))
    program = {"amount": amount, "unit": unit, "into": into}
    if rule is None:
        return {"plan": f"The playbook does not say how many {into}s a {unit} has: guess 1.", "program": program}
    program["factor"] = rule[0]
    return {"plan": f"1 {unit} = {rule[0]:.12g} {into}s: multiply.", "program": program, "bullet_ids": [rule[1]]}


def skills(given):
    program = given.get("program") or sys.exit("there is no program: another generator has served the task")
    args = {"a": program["amount"], "b": program.get("factor", 1)}
    started = time.perf_counter()
    value = args["a"] * args["b"]
    call = {"name": "multiply", "args": args, "result": value, "duration_ms": (time.perf_counter() - started) * 1000}
    return {"invocations": [call], "answer": f"{value:.12g}"}


def reflector(given):
    if given.get("label") is None:
        return {"insights": "Nobody says what is right, so there is nothing to learn."}
    amount, unit, into = read_task(given)
    label = float(given["label"])
    try:
        right = abs(float(given["answer"]) - label) <= 1e-9 * max(1, abs(label))
    except ValueError:
        right = False
    tags = [{"id": i, "tag": "helpful" if right else "harmful"} for i in given.get("bullet_ids", [])]
    if right:
        return {"insights": "The answer is right.", "bullet_tags": tags, "correct": True}
    insights = f'{given["answer"]} is wrong, {given["label"]} is right.'
    if amount:
        insights += f"\nLesson: 1 {unit} = {label / amount:.12g} {into}s"
    return {"insights": insights, "bullet_tags": tags, "correct": False}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    serve = {"generator": generator, "skills": skills, "reflector": reflector}[given["step"]]
    json.dump(serve(given), sys.stdout)
