#!/usr/bin/env python3
"""Writes the dashboards that dashboards.py describes, as Grafana's JSON.

  generate.py           write the *.json beside this file
  generate.py --check   write nothing; exit with 1 when one of them is stale
"""

import json
import pathlib
import sys

import dashboards


def main(check):
    stale = []
    for dashboard in dashboards.ALL:
        file = pathlib.Path(__file__).parent / f"{dashboard.name}.json"
        text = json.dumps(dashboard.json(), indent=2) + "\n"
        if not check:
            file.write_text(text, "utf-8")
        elif not file.exists() or file.read_text("utf-8") != text:
            stale.append(file.name)
    if stale:
        print(f"stale: {', '.join(stale)}; write them anew: {__file__}")
    return 1 if stale else 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(main(check=len(sys.argv) > 1))
