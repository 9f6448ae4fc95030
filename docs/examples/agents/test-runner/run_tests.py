"""Runs a test suite in the working directory and counts what came of it.

The parameters are flags, the report is one JSON object on standard output; what the suite
says goes to standard error. The exit code is 0 where every test passed, 1 where one failed,
and 2 where the suite could not be run.
"""

import argparse
import collections
import json
import subprocess
import sys
import time

LINES = 40  # of the output of a failed test


def arguments():
    p = argparse.ArgumentParser(prog="test-runner", allow_abbrev=False)
    p.add_argument("--package", action="append", default=[])
    p.add_argument("--run", default="")
    p.add_argument("--short", action="store_true")
    p.add_argument("--command", action="append", default=[])
    p.add_argument("--failures", type=int, default=10)
    return p.parse_args()


def any_suite(a):
    """Runs a command; it is one test, which passes by its exit code."""
    code = subprocess.run(a.command, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode
    return {"command": a.command, "exit_code": code, "passed": int(code == 0), "failed": int(code != 0), "skipped": 0, "failures": []}


def go_suite(a):
    """Runs go test -json and counts its events."""
    command = ["go", "test", "-json"]
    command += ["-run=" + a.run] if a.run else []
    command += ["-short"] if a.short else []
    command += a.package or ["./..."]
    counts, packages = collections.Counter(), collections.Counter()
    output, failures = collections.defaultdict(lambda: collections.deque(maxlen=LINES)), []
    suite = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    for line in suite.stdout:
        try:
            e = json.loads(line)
        except ValueError:
            sys.stderr.write(line)
            continue
        test = (e.get("Package") or e.get("ImportPath", ""), e.get("Test", ""))
        what = e.get("Action")
        if what in ("output", "build-output"):
            sys.stderr.write(e.get("Output", ""))
            output[test].append(e.get("Output", ""))
        elif what in ("pass", "fail", "skip"):
            (counts if test[1] else packages)[what] += 1
            if what == "fail" and len(failures) < a.failures:
                failures.append({"package": test[0], "test": test[1], "output": "".join(output[test])})
            output.pop(test, None)
    code = suite.wait()
    return {"command": command, "exit_code": code, "passed": counts["pass"], "failed": counts["fail"], "skipped": counts["skip"],
            "packages": {"passed": packages["pass"], "failed": packages["fail"], "without_tests": packages["skip"]}, "failures": failures}


def main():
    a = arguments()
    begin = time.monotonic()
    try:
        report = any_suite(a) if a.command else go_suite(a)
    except OSError as e:
        print(f"test-runner: {e}", file=sys.stderr)
        sys.exit(2)
    report["seconds"] = round(time.monotonic() - begin, 3)
    json.dump(report, sys.stdout)
    print()
    sys.exit(0 if report["exit_code"] == 0 else 1)


main()
