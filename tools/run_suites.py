#!/usr/bin/env python3
"""Runs each test suite of a GoogleTest program in a process of its own, several side by side, so
that one that crashes, hangs or breaks the device hides nothing of the others. Prints what failed,
what compute-sanitizer found and a JSON line; everything the tests said goes to --log. Exits 1 if
anything failed.

usage: tools/run_suites.py bin/gradstone_tests --log tests.log
       tools/run_suites.py bin/gradstone_tests --log racecheck.log --filter '*Cuda*' \\
           --wrapper compute-sanitizer --tool racecheck --error-exitcode 9
       tools/run_suites.py --self-test   proves it on a made-up program
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RESULT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:,| \(|$)", re.MULTILINE)
# Of compute-sanitizer: the first two lines of what it found, neither its title nor its sums.
FINDING = re.compile(r"^========= (?!COMPUTE-SANITIZER|\w+ SUMMARY)(\S.*)(?:\n=========  +(\S.*))?", re.MULTILINE)


def suites(program, pattern):
    """{suite: its tests}"""
    try:
        done = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"],
                              capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"run_suites: {program} does not run: {error.strerror}")
    if done.returncode != 0:
        sys.exit(f"run_suites: {program} does not run: {(done.stderr or done.stdout).strip()[-500:]}")
    found, suite = {}, None
    for line in done.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            found[suite].append(suite + name.strip())
        elif name.endswith("."):
            suite = name
            found[suite] = []
    return found


def run_suite(arguments, suite, tests, deadline):
    """(suite, {test: how it ended}, output)"""
    if time.monotonic() >= deadline:
        return suite, dict.fromkeys(tests, "not reached"), ""
    limit = min(arguments.timeout, max(1, deadline - time.monotonic()))
    # `timeout` ends what the wrapper and the tests have started, too; ours is for what does not end.
    command = ["timeout", "-k", "1", f"{limit:.1f}", *arguments.wrapper, arguments.program,
               f"--gtest_filter={':'.join(tests)}"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit + 4)
        output, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        parts = [part.decode(errors="replace") for part in (error.stdout, error.stderr) if part]
        output, status = "".join(parts), "timeout"
    if status != 0 and time.monotonic() - start >= limit:
        output, status = output + f"\nno end after {limit:.0f} s\n", "timeout"
    ended = {name: how.lower() for how, name in RESULT.findall(output)}
    lost = {"timeout": "timed out"}.get(status, f"crashed ({status})")
    results = {test: ended.get(test, lost) for test in tests}
    if status not in (0, "timeout") and all(how in ("ok", "skipped") for how in results.values()):
        results[suite + "*"] = f"ended with {status}"  # what the wrapper found
    return suite, results, output


PROGRAM = """#!/bin/sh
case "$*" in
  *list_tests*) printf 'Good.\\n  One\\n  Two\\nBad/0.  # TypeParam = float\\n  One\\n  Two\\nSlow.\\n  One  # GetParam() = 3\\n' ;;
  *Good.One:Good.Two*) printf '[       OK ] Good.One (0 ms)\\n[  SKIPPED ] Good.Two (0 ms)\\n' ;;
  *Bad/0.One*) printf '[       OK ] Bad/0.One (0 ms)\\n'; kill -SEGV $$ ;;
  *) exec sleep 9 ;;
esac
"""


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        program, log = Path(folder) / "program", Path(folder) / "log"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        command = [sys.executable, __file__, program, "--log", log, "--timeout", "1"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1, done
        *failures, counts = done.stdout.splitlines()
        assert failures == ["Bad/0.Two: crashed (-11)", "Slow.One: timed out"], done.stdout
        assert json.loads(counts) == {"part": "tests", "program": str(program), "ok": 2, "skipped": 1,
                                      "crashed": 1, "timed out": 1}, counts
        assert "==== Slow.\n\nno end after 1 s" in log.read_text()
        found = [*command, "--deadline", "5", "--wrapper", "sh", "-c", '"$0" "$@" || true; exit 9']
        done = subprocess.run(found, capture_output=True, text=True)
        assert done.returncode == 1 and "Good.*: ended with 9" in done.stdout, done
        says = "========= COMPUTE-SANITIZER\n========= Invalid read\n=========     at kernel\n========= ERROR SUMMARY: 1 error\n"
        found[-1] = f'printf "{says}"; "$0" "$@"'.replace("\n", "\\n")
        done = subprocess.run(found, capture_output=True, text=True)
        assert done.stdout.count("Invalid read at kernel") == 1 and '"findings": 3' in done.stdout, done
        unreached = subprocess.run([*command, "--deadline", "0"], capture_output=True, text=True)
        assert unreached.returncode == 1 and '"not reached": 5' in unreached.stdout, unreached
    print("4 runs right")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--filter", default="*", help="as --gtest_filter takes it")
    parser.add_argument("--log", required=True)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=60, help="seconds of a suite")
    parser.add_argument("--deadline", type=float, default=1e9, help="seconds after which none begins")
    parser.add_argument("--part", default="tests", help="the name in the JSON line")
    parser.add_argument("--wrapper", nargs=argparse.REMAINDER, default=[],
                        help="a command to run the program under; last")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.deadline
    found = suites(arguments.program, arguments.filter)
    if not found:
        sys.exit(f"run_suites: no test of {arguments.program} matches {arguments.filter}")
    counts, findings = {}, Counter()
    with open(arguments.log, "w") as log, ThreadPoolExecutor(arguments.jobs) as pool:
        for suite, results, output in pool.map(
                lambda item: run_suite(arguments, *item, deadline), found.items()):
            log.write(f"==== {suite}\n{output}\n")
            findings.update(" ".join(filter(None, lines)) for lines in FINDING.findall(output))
            for test, how in results.items():
                kind = how.split(" (")[0] if how.startswith("crashed") else how.split(" with")[0]
                counts[kind] = counts.get(kind, 0) + 1
                if how not in ("ok", "skipped", "not reached"):
                    print(f"{test}: {how}", flush=True)
    for finding, times in findings.most_common(10):
        print(f"{times} x {finding}")
    if findings:
        counts["findings"] = findings.total()
    print(json.dumps({"part": arguments.part, "program": arguments.program, **counts}))
    sys.exit(any(kind not in ("ok", "skipped", "findings") for kind in counts))


if __name__ == "__main__":
    main()
