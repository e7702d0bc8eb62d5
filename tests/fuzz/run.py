"""Runs the fuzz targets: `./dev fuzz` is how to call it.

  run.py BUILD_DIR --seconds N   each target N seconds; its finds stay in the
                                 build folder and are where it begins next time
  run.py BUILD_DIR --planted     each target has to find the fault planted in
                                 what it tests
  run.py BUILD_DIR --coverage    which lines the kept inputs reach, of the files
                                 that a target names behind `Covers:`

Exit status 1 for a crash, a planted fault that is not found, and a target one of
whose files has less than 90 % of its lines covered.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLANTED_SECONDS = 120
LEAST_COVERAGE = 90.0


class Target:
    def __init__(self, source, build):
        self.name = source.stem.removesuffix("_fuzz")
        self.program = build / "tests" / "fuzz" / source.stem
        lines = re.findall(r"^// Covers: (.+)$", source.read_text("utf-8"), re.MULTILINE)
        self.covers = [ROOT / name for line in lines for name in line.split()]
        self.seeds = HERE / "corpus" / self.name
        self.work = build / "fuzz" / self.name
        self.kept = self.work / "corpus"
        self.kept.mkdir(parents=True, exist_ok=True)

    def run(self, *flags, corpus=None, env=None):
        """Exit status, and everything it printed."""
        done = subprocess.run(
            [self.program, f"-artifact_prefix={self.work}/", *flags]
            + [corpus or self.kept, self.seeds],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")


def limits(seconds):
    return (
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
    )


def fuzz(target, seconds):
    status, text = target.run(*limits(seconds))
    count = re.search(r"number_of_executed_units: (\d+)", text)
    print(f"{target.name:24} {count[1] if count else '?':>12} inputs", flush=True)
    if status:
        print(text[-6000:])
    return status == 0


def find_planted(target):
    """Its finds are not kept: the next run has to find it again."""
    empty = target.work / "planted"
    empty.mkdir(exist_ok=True)
    status, text = target.run(*limits(PLANTED_SECONDS), corpus=empty)
    found = status != 0 and "SUMMARY" in text
    for kept in [*empty.iterdir(), *target.work.glob("crash-*")]:
        kept.unlink()
    print(f"{target.name:24} planted fault {'found' if found else 'NOT FOUND'}")
    return found


def cover(target):
    raw, data = target.work / "profraw", target.work / "profdata"
    status, text = target.run(
        "-runs=0", env={**os.environ, "LLVM_PROFILE_FILE": str(raw)}
    )
    if status:
        print(text[-6000:])
        return False
    subprocess.run(["llvm-profdata", "merge", "-o", data, raw], check=True)
    shown = subprocess.run(
        ["llvm-cov", "export", "-summary-only", f"-instr-profile={data}"]
        + [target.program, *target.covers],
        check=True,
        capture_output=True,
    ).stdout
    print(target.name)
    found = {}
    for file in json.loads(shown)["data"][0]["files"]:
        lines = file["summary"]["lines"]
        # A compiler called with ../.. leaves it in the name.
        name = pathlib.Path(os.path.normpath(file["filename"]))
        found[name] = lines["percent"]
        print(f"  {os.path.relpath(file['filename'], ROOT):44}"
              f" {lines['covered']:4} of {lines['count']:4} lines"
              f" {lines['percent']:6.1f} %")
    return all(found.get(file, 0.0) >= LEAST_COVERAGE for file in target.covers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build_dir", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seconds", type=int)
    what.add_argument("--planted", action="store_true")
    what.add_argument("--coverage", action="store_true")
    arguments = parser.parse_args()
    sources = sorted(HERE.glob("*_fuzz.cc"))
    targets = [Target(s, arguments.build_dir.resolve()) for s in sources]
    if arguments.coverage:
        good = [cover(target) for target in targets]
    elif arguments.planted:
        good = [find_planted(target) for target in targets]
    else:
        good = [fuzz(target, arguments.seconds) for target in targets]
    return 0 if all(good) and good else 1


if __name__ == "__main__":
    sys.exit(main())
