#!/usr/bin/env python3
"""Counts instructions under callgrind and holds them to a budget file.

    count_instructions.py PROGRAM BUDGET [--update]

PROGRAM is the bench's `instructions`. A line of BUDGET is

    NAME budget COUNT      fails above COUNT + 5 %
    NAME at_most COUNT     fails above COUNT
    NAME at_least COUNT    fails below COUNT

The last two hold the baselines to what makes them honest ones. --update writes
the measured counts into the budget lines.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 1.05


def measured(program):
    """Instructions of one time, by name, in the order of the program."""
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["valgrind", "--tool=callgrind",
             f"--callgrind-out-file={folder}/out", program],
            check=True, stderr=subprocess.PIPE, text=True)
        parts = [part for part in pathlib.Path(folder).iterdir()
                 if part.suffix[1:].isdigit()]
        for part in sorted(parts, key=lambda part: int(part.suffix[1:])):
            text = part.read_text(errors="replace")
            label = re.search(r"Client Request: (\S+) (\d+)", text)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
            if label and total:
                counts[label[1]] = round(int(total[1]) / int(label[2]))
    return counts


def limits(budget):
    """(name, rule, count) of each line that is not a comment."""
    for line in budget.read_text().splitlines():
        if line and not line.startswith("#"):
            name, rule, count = line.split()
            yield name, rule, int(count)


def updated(text, counts):
    """`text` with the measured counts in its budget lines."""
    def new_line(match):
        return f"{match[1]}{counts.get(match[2], match[4])}"
    return re.sub(r"^((\S+)( +)budget +)(\d+)$", new_line, text, flags=re.M)


def main():
    program, budget = sys.argv[1], pathlib.Path(sys.argv[2])
    counts = measured(program)
    if sys.argv[3:] == ["--update"]:
        budget.write_text(updated(budget.read_text(), counts))

    failed = []
    print(f"{'':32}{'instructions':>14}   allowed")
    for name, rule, count in limits(budget):
        value = counts.pop(name, None)
        allowed = int(count * TOLERANCE) if rule == "budget" else count
        sign = ">=" if rule == "at_least" else "<="
        met = value is not None and (
            value >= allowed if rule == "at_least" else value <= allowed)
        if not met:
            failed.append(name)
        shown = "not measured" if value is None else f"{value:,}"
        print(f"{name:32}{shown:>14}   {sign} {allowed:,}"
              f"{'' if met else '    FAILED'}")
    for name, value in counts.items():
        failed.append(name)
        print(f"{name:32}{value:>14,}   not in {budget}    FAILED")
    if failed:
        print(f"\n{len(failed)} out of budget. If the work is worth it, say so"
              " in the commit and\n  ./dev bench --instructions --update")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
