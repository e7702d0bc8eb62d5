"""Holds files of client_python's multiprocess mode against a page.

usage: compare_python_files.py FOLDER PAGE client|timestamps

client: as client_python's own collector merges them, which must be one whose
entries have no time. timestamps: read here, entry by entry. Exit status 0 when
every sample of the page is there with its value, and no other.
"""

import collections
import glob
import json
import os
import re
import struct
import sys


def page_samples(path):
    samples = {}
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            continue
        series, _, value = line.rstrip("\n").rpartition(" ")
        name, _, rest = series.partition("{")
        labels = {}
        for key, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', rest):
            labels[key] = re.sub(
                r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text
            )
        samples[name, tuple(sorted(labels.items()))] = float(value)
    return samples


def collector_samples(folder):
    from prometheus_client.multiprocess import MultiProcessCollector

    samples = {}
    for metric in MultiProcessCollector(None, folder).collect():
        for sample in metric.samples:
            # Older collectors know no mode mostrecent and show each process.
            labels = {k: v for k, v in sample.labels.items() if k != "pid"}
            samples[sample.name, tuple(sorted(labels.items()))] = sample.value
    return samples


def entries(path):
    data = open(path, "rb").read()
    (used,) = struct.unpack_from("i", data)
    assert used == len(data), "the used size is that of the file"
    at = 8
    while at < used:
        (size,) = struct.unpack_from("i", data, at)
        key = json.loads(data[at + 4 : at + 4 + size])
        at += 4 + size + (8 - (size + 4) % 8)
        value, time = struct.unpack_from("dd", data, at)
        at += 16
        yield key, value, time


def entry_samples(folder):
    samples = {}
    counts = collections.Counter()
    for path in glob.glob(os.path.join(folder, "*.db")):
        kind = os.path.basename(path).split("_")[0]
        cumulative = collections.Counter()
        for (_, name, labels, _), value, time in entries(path):
            assert time == (1000.0 if kind == "gauge" else 0.0), time
            if kind == "histogram" and "le" in labels:
                rest = {k: v for k, v in labels.items() if k != "le"}
                group = name, tuple(sorted(rest.items()))
                cumulative[group] += value
                value = cumulative[group]
                counts[name.replace("_bucket", "_count"), group[1]] = value
            samples[name, tuple(sorted(labels.items()))] = value
    samples.update(counts)
    return samples


def main():
    folder, page, form = sys.argv[1:]
    want = page_samples(page)
    got = collector_samples(folder) if form == "client" else entry_samples(folder)
    wrong = [
        f"{key}: {want.get(key)} on the page, {got.get(key)} in the files"
        for key in sorted(want.keys() | got.keys())
        if want.get(key) != got.get(key)
    ]
    for line in wrong[:20]:
        print(line)
    sys.exit(1 if wrong or len(want) < 100 else 0)


main()
