"""The alerts fire, stay quiet and resolve as alert_cases.yml says."""

import pathlib
import re
import subprocess
import tempfile

import observability
import yaml

HERE = pathlib.Path(__file__).parent


def promtool(*arguments):
    return subprocess.run(
        ["promtool", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def unit_test(alert, case):
    """A case as promtool has it."""
    label = case.get("by", "instance")
    firing = f'count by ({label}) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    times = {time: [] for time in case["quiet"]}
    for time, who in case["firing"].items():
        times[time] = [{"labels": f'{{{label}="{who}"}}', "value": 1}]
    return {
        "name": alert,
        "interval": "1m",
        "input_series": [
            {"series": series, "values": values}
            for series, values in case["series"].items()
        ],
        "promql_expr_test": [
            {"expr": firing, "eval_time": time, "exp_samples": samples}
            for time, samples in times.items()
        ],
    }


class Rules(observability.ObservabilityTest):
    @classmethod
    def setUpClass(cls):
        cls.cases = yaml.safe_load((HERE / "alert_cases.yml").read_text("utf-8"))

    def test_promtool_takes_the_files(self):
        done = promtool("check", "rules", *self.project.rule_files)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_alert_has_a_case(self):
        self.assertEqual(
            sorted(self.cases), sorted(alert["alert"] for alert in self.project.alerts)
        )

    def test_every_case_fires_and_is_quiet_before_and_after(self):
        def minutes(times):
            return [int(time.removesuffix("m")) for time in times]

        for alert, case in self.cases.items():
            with self.subTest(alert=alert):
                firing, quiet = minutes(case["firing"]), minutes(case["quiet"])
                self.assertLess(min(quiet), min(firing))
                self.assertGreater(max(quiet), max(firing))

    def test_alerts_do_as_their_cases_say(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "cases.yml"
            content = {
                "rule_files": [str(path) for path in self.project.rule_files],
                "group_eval_order": self.project.rule_groups,
                "evaluation_interval": "1m",
                "tests": [unit_test(*item) for item in self.cases.items()],
            }
            file.write_text(yaml.safe_dump(content, width=1000), "utf-8")
            done = promtool("test", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_alerts_say_what_to_do(self):
        for alert in self.project.alerts:
            with self.subTest(alert=alert["alert"]):
                annotations = alert["annotations"]
                self.assertEqual(
                    set(annotations), {"summary", "description", "runbook_url"}
                )
                self.assertIn(
                    alert["labels"]["severity"], ("critical", "warning", "info")
                )
                self.assertRegex(
                    annotations["description"], r"^Likely: .+\. Lever: .+\.$"
                )

    def test_alerts_lead_into_the_run_book(self):
        page = (self.project.source_dir / "docs" / "operations.md").read_text("utf-8")
        headings = re.findall(r"^#+ (\w+)$", page, re.MULTILINE)
        for alert in self.project.alerts:
            with self.subTest(alert=alert["alert"]):
                self.assertEqual(
                    alert["annotations"]["runbook_url"],
                    f"docs/operations.md#{alert['alert'].lower()}",
                )
                self.assertIn(alert["alert"], headings)

    def test_annotations_name_labels_that_the_alert_has(self):
        levels = {
            "model": {"model_name"},
            "model_reason": {"model_name", "finished_reason"},
            "node": {"node"},
        }
        for alert in self.project.alerts:
            text = " ".join(alert["annotations"].values())
            expression = observability.Expression(alert["expr"])
            first = expression.selectors[0][0]
            grouped = re.match(r"[^{]*?\bby \((.*?)\)", alert["expr"])
            if first.split(":")[0] in levels:
                labels = levels[first.split(":")[0]]
            elif grouped:
                labels = set(grouped[1].replace(" ", "").split(","))
            else:
                labels = self.project.catalogue.get(first, {"gpu", "node"})
                labels = labels | {"instance", "job"}
            with self.subTest(alert=alert["alert"]):
                self.assertLessEqual(set(re.findall(r"\$labels\.(\w+)", text)), labels)


if __name__ == "__main__":
    observability.main()
