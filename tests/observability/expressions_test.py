"""Every expression that is shipped or documented: its names are known, and it has
data on a Prometheus that scrapes a fleet with every feature."""

import json
import pathlib
import re
import tempfile
import textwrap

import monitoring
import observability

# Series of others, and what they are labelled with.
OTHERS = {
    "up": set(),
    "ALERTS": {"alertname", "alertstate", "severity"},
    "process_start_time_seconds": set(),
    "process_resident_memory_bytes": set(),
    "node_infiniband_port_data_transmitted_bytes_total": {"device", "port"},
    "node_infiniband_port_data_received_bytes_total": {"device", "port"},
}
OF_TARGETS = {"instance", "job", "node"}

VARIABLES = {
    "$__rate_interval": "10s",
    "$model": ".*",
    "$instance": ".*",
    "$engine": ".*",
    "$node": ".*",
    "$peak_tflops": "989",
    "$peak_gbytes": "3350",
}


class Panel:
    def __init__(self, dashboard, json_panel):
        self.name = f"{dashboard}: {json_panel['title']}"
        self.about = json_panel["description"]
        self.expressions = [target["expr"] for target in json_panel["targets"]]


def filled_in(expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


class Shipped(observability.ObservabilityTest):
    @classmethod
    def setUpClass(cls):
        cls.panels, cls.lists = [], []
        for file in sorted((cls.project.examples / "grafana").glob("*.json")):
            dashboard = json.loads(file.read_text("utf-8"))
            cls.panels += [
                Panel(file.stem, panel)
                for panel in dashboard["panels"]
                if panel["type"] != "row"
            ]
            for variable in dashboard["templating"]["list"]:
                if variable["type"] == "query":
                    found = re.fullmatch(
                        r"label_values\((.+), (\w+)\)", variable["query"]["query"]
                    )
                    cls.lists.append((found[1], found[2]))
        cls.documented = [
            (page.name, line)
            for page in sorted((cls.project.source_dir / "docs").glob("*.md"))
            for block in re.findall(
                r"^ *```promql\n(.*?)^ *```$", page.read_text("utf-8"), re.M | re.S
            )
            for line in textwrap.dedent(block).splitlines()
        ]

    def all_expressions(self):
        """(where, PromQL) of each."""
        for panel in self.panels:
            for expression in panel.expressions:
                yield panel.name, filled_in(expression)
        for rule in self.project.rules:
            yield rule.get("record") or rule["alert"], rule["expr"]
        yield from self.documented
        for query in self.project.autoscaler_queries:
            yield "autoscaler", query
        for series, label in self.lists:
            yield "variable", f"group by ({label}) ({filled_in(series)})"


class Names(Shipped):
    def known(self):
        known = dict(OTHERS)
        known |= self.project.catalogue
        for line in (monitoring.HERE / "hardware.prom").read_text("utf-8").split("\n"):
            if line.startswith("DCGM_"):
                known[line.split("{")[0]] = {"gpu", "modelName"}
        for rule in self.project.rules:
            if "record" in rule:
                of_rule = observability.Expression(rule["expr"])
                known[rule["record"]] = of_rule.grouping | {"model_name", "instance"}
        return known

    def test_each_metric_and_label_exists(self):
        known = self.known()
        checked = 0
        for where, expression in self.all_expressions():
            parsed = observability.Expression(expression)
            with self.subTest(where=where, expression=expression):
                self.assertLessEqual(parsed.metrics, set(known))
                labels = OF_TARGETS.union(*(known[name] for name in parsed.metrics))
                self.assertLessEqual(parsed.grouping, labels)
                for name, matched in parsed.selectors:
                    self.assertLessEqual(matched, known[name] | OF_TARGETS)
                checked += 1
        self.assertGreater(checked, 300)

    def test_legends_name_labels_that_are_left(self):
        for file in sorted((self.project.examples / "grafana").glob("*.json")):
            for panel in json.loads(file.read_text("utf-8"))["panels"]:
                for target in panel.get("targets", []):
                    expression = observability.Expression(target["expr"])
                    grouped = re.match(r".*?\bby \((.*?)\)", target["expr"])
                    if not grouped or target["expr"].startswith("rate("):
                        continue
                    used = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                    with self.subTest(file=file.name, panel=panel["title"]):
                        self.assertLessEqual(used, expression.grouping)


class Data(Shipped):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.monitoring = monitoring.Monitoring(cls.project, pathlib.Path(folder.name))
        cls.addClassCleanup(cls.monitoring.stop)

    def test_only_what_no_simulator_has_is_made_up(self):
        allowed = (
            "vllm:diffusion_", "vllm:kv_offload_", "vllm:mooncake_store_",
            "vllm:simple_kv_offload_", "vllm:mm_cache_",
            # Of a release after the one that the simulators show.
            "vllm:admission_rejections_",
            "vllm:nixl_num_notifications_after_expiry_",
            "vllm:num_requests_kv_fetch_by_stage",
            "vllm:prompt_tokens_cached_by_source_",
            "vllm:rl_weight_update_", "vllm:sleep_mode_operation_",
            # Of processes that share a page, and of exporters.
            "vllm_metrics_shared_", "vllm_metrics_torn_",
            "vllm_metrics_unmerged_", "vllm_metrics_unreadable_",
            "vllm_metrics_otlp_",
        )  # fmt: skip
        strange = sorted(
            name for name in self.monitoring.made_up if not name.startswith(allowed)
        )
        self.assertEqual(strange, [])

    def test_each_panel_has_data(self):
        of_panel = {
            panel.name: [filled_in(expression) for expression in panel.expressions]
            for panel in self.panels
        }
        everything = {e for expressions in of_panel.values() for e in expressions}
        empty = set(self.monitoring.without_data(everything))
        for panel, expressions in of_panel.items():
            with self.subTest(panel=panel):
                self.assertFalse(empty.intersection(expressions))

    def test_each_variable_has_choices(self):
        lists = {f"group by ({label}) ({filled_in(series)})" for series, label in self.lists}
        self.assertEqual(self.monitoring.without_data(lists), [])

    def test_each_query_of_an_autoscaler_has_data(self):
        queries = list(self.project.autoscaler_queries)
        self.assertEqual(len(queries), 4)
        self.assertEqual(self.monitoring.without_data(queries), [])

    def test_each_documented_query_has_data(self):
        queries = {query for _, query in self.documented}
        self.assertEqual(self.monitoring.without_data(queries), [])

    def test_each_recording_rule_has_data(self):
        records = [rule["record"] for rule in self.project.rules if "record" in rule]
        self.assertEqual(self.monitoring.without_data(records), [])

    def test_what_the_alerts_look_at_has_data(self):
        selectors = {
            name
            for alert in self.project.alerts
            for name in observability.Expression(alert["expr"]).metrics
        }
        self.assertEqual(self.monitoring.without_data(selectors), [])

    def test_prometheus_evaluates_all_rules(self):
        groups = self.monitoring.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        self.assertEqual(len(rules), len(self.project.rules))
        for rule in rules:
            with self.subTest(rule=rule["name"]):
                self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""))


if __name__ == "__main__":
    observability.main()
