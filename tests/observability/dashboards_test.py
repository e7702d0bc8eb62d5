"""The dashboards are those of their description, and well formed."""

import json
import subprocess
import sys

import observability

# Grafana's names for the units that are used.
UNITS = {
    "none", "short", "percent", "percentunit", "s", "ops", "reqps", "bytes", "mbytes",
    "Bps", "flops", "hertz", "watt", "joule", "celsius", "dateTimeAsIso",
}  # fmt: skip


class Dashboards(observability.ObservabilityTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.project.examples / "grafana"
        cls.dashboards = {
            file.stem: json.loads(file.read_text("utf-8"))
            for file in sorted(cls.folder.glob("*.json"))
        }
        cls.panels = [
            (name, panel)
            for name, dashboard in cls.dashboards.items()
            for panel in dashboard["panels"]
            if panel["type"] != "row"
        ]

    def test_they_are_those_of_the_description(self):
        done = subprocess.run(
            [sys.executable, self.folder / "generate.py", "--check"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_names_and_numbers_are_given_once(self):
        uids = [dashboard["uid"] for dashboard in self.dashboards.values()]
        self.assertEqual(len(uids), len(set(uids)))
        for name, dashboard in self.dashboards.items():
            ids = [panel["id"] for panel in dashboard["panels"]]
            titles = [panel["title"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            self.assertEqual(len(titles), len(set(titles)), name)

    def test_panels_fill_the_grid_and_do_not_overlap(self):
        for name, dashboard in self.dashboards.items():
            taken = set()
            for panel in dashboard["panels"]:
                at = panel["gridPos"]
                cells = {
                    (x, y)
                    for x in range(at["x"], at["x"] + at["w"])
                    for y in range(at["y"], at["y"] + at["h"])
                }
                with self.subTest(dashboard=name, panel=panel["title"]):
                    self.assertLessEqual(at["x"] + at["w"], 24)
                    self.assertFalse(cells & taken)
                taken |= cells
            height = 1 + max(y for _, y in taken)
            self.assertEqual(len(taken), 24 * height, name)

    def test_each_panel_says_what_it_is_and_in_which_unit(self):
        for name, panel in self.panels:
            with self.subTest(dashboard=name, panel=panel["title"]):
                self.assertRegex(panel["description"], r"\.$")
                unit = panel["fieldConfig"]["defaults"]["unit"]
                self.assertTrue(unit in UNITS or unit.startswith("suffix: "), unit)
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")
                    self.assertNotIn("{}", target["expr"])

    def test_a_panel_of_an_optional_family_says_when_it_is_empty(self):
        optional = {
            metric["name"]
            for metric in self.project.metrics
            if metric["condition"] != "always"
            and metric["name"] != "vllm:cache_config_info"
        }
        for name, panel in self.panels:
            metrics = observability.Expression(panel["targets"][0]["expr"]).metrics
            families = {metric.removesuffix("_bucket") for metric in metrics}
            if optional & families or any(m.startswith("DCGM") for m in metrics):
                with self.subTest(dashboard=name, panel=panel["title"]):
                    self.assertIn("Empty", panel["description"])

    def test_only_metrics_that_vllm_has_too(self):
        for name, panel in self.panels:
            for target in panel["targets"]:
                metrics = observability.Expression(target["expr"]).metrics
                with self.subTest(dashboard=name, panel=panel["title"]):
                    self.assertFalse(
                        [m for m in metrics if m.startswith("vllm_metrics_")]
                    )


if __name__ == "__main__":
    observability.main()
