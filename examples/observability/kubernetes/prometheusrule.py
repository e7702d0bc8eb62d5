#!/usr/bin/env python3
"""Prints the rules as objects of the Prometheus operator:

  prometheusrule.py [--label NAME=VALUE ...] | kubectl apply -n monitoring -f -

Labels are those that your Prometheus selects rules by, e.g. release=prometheus.
Needs PyYAML (Debian: python3-yaml).
"""

import argparse
import pathlib

import yaml


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE")
    labels = dict(label.split("=", 1) for label in parser.parse_args().label)
    folder = pathlib.Path(__file__).resolve().parent.parent / "prometheus"
    objects = [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": f"vllm-{name}", "labels": labels},
            "spec": yaml.safe_load((folder / f"{name}.yml").read_text("utf-8")),
        }
        for name in ("recording", "alerts", "hardware")
    ]
    print(yaml.safe_dump_all(objects, sort_keys=False, width=10**6), end="")


if __name__ == "__main__":
    main()
