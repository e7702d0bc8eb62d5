"""Shipped configurations are such as their programs take, and fit each other."""

import pathlib
import re
import subprocess
import sys
import tempfile

import observability
import yaml

NO_KUBERNETES = "Debian's promtool is built without kubernetes_sd_configs"


def run(*command):
    return subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


class Configs(observability.ObservabilityTest):
    def load(self, name):
        return yaml.safe_load((self.project.examples / name).read_text("utf-8"))

    def check_with_promtool(self, content, folder):
        file = pathlib.Path(folder) / "prometheus.yml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        done = run("promtool", "check", "config", file)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_file_is_one_document_of_yaml(self):
        files = list(self.project.examples.rglob("*.yml"))
        self.assertGreaterEqual(len(files), 16)
        for file in files:
            with self.subTest(file=file.name):
                self.assertIsInstance(yaml.safe_load(file.read_text("utf-8")), dict)

    def test_prometheus_takes_its_configurations(self):
        for name in ("prometheus", "machines", "federation"):
            with self.subTest(name=name):
                file = self.project.examples / "prometheus" / f"{name}.yml"
                done = run("promtool", "check", "config", file)
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_prometheus_takes_that_of_kubernetes_but_for_the_discovery(self):
        content = self.load("prometheus/kubernetes.yml")
        for job in content["scrape_configs"]:
            for discovery in job.pop("kubernetes_sd_configs"):
                self.assertEqual(discovery["role"], "pod", NO_KUBERNETES)
                self.assertRegex(discovery["selectors"][0]["label"], r"^[\w./-]+=[\w-]+$")
        content["rule_files"] = [str(file) for file in self.project.rule_files]
        with tempfile.TemporaryDirectory() as folder:
            self.check_with_promtool(content, folder)

    def test_prometheus_keeps_classic_buckets_beside_native_ones(self):
        content = self.load("prometheus/native_histograms.yml")
        for job in content["scrape_configs"]:
            self.assertTrue(job.pop("scrape_classic_histograms"), "since 2.45")
        self.assertEqual(content, self.load("prometheus/prometheus.yml"))

    def test_prometheus_takes_what_the_collector_scrapes_with(self):
        content = self.load("opentelemetry/collector.yml")
        with tempfile.TemporaryDirectory() as folder:
            self.check_with_promtool(content["receivers"]["prometheus"]["config"], folder)
        for pipeline in content["service"]["pipelines"].values():
            for part, names in pipeline.items():
                self.assertLessEqual(set(names), set(content[part]))

    def test_engines_are_scraped_under_the_name_that_the_alerts_look_for(self):
        wanted = set(re.findall(r'job="(\w+)"', str(self.project.alerts)))
        for name in ("prometheus", "machines", "kubernetes"):
            jobs = self.load(f"prometheus/{name}.yml")["scrape_configs"]
            self.assertLessEqual(wanted, {job["job_name"] for job in jobs}, name)
        monitor = self.load("kubernetes/podmonitor.yml")
        relabelings = monitor["spec"]["podMetricsEndpoints"][0]["relabelings"]
        self.assertIn({"targetLabel": "job", "replacement": "vllm"}, relabelings)

    def test_federation_takes_each_roll_up_and_each_alert(self):
        job = self.load("prometheus/federation.yml")["scrape_configs"][0]
        matchers = " ".join(job["params"]["match[]"])
        records, alerts = re.findall(r'=~"(.+?)"', matchers)
        for rule in self.project.rules:
            if "record" in rule:
                self.assertRegex(rule["record"], f"^(?:{records})$")
            else:
                self.assertRegex(rule["alert"], f"^(?:{alerts})$")

    def test_alertmanager_routes_by_severity(self):
        file = self.project.examples / "alertmanager" / "alertmanager.yml"
        done = run("amtool", "check-config", file)
        self.assertEqual(done.returncode, 0, done.stdout)
        receivers = {"critical": "on-call", "warning": "chat", "info": "nobody"}
        for severity, receiver in receivers.items():
            done = run("amtool", "config", "routes", "test", f"--config.file={file}",
                       f"--verify.receivers={receiver}", f"severity={severity}")  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_inhibitions_name_alerts_that_exist(self):
        alerts = {alert["alert"] for alert in self.project.alerts}
        rules = self.load("alertmanager/alertmanager.yml")["inhibit_rules"]
        named = set(re.findall(r"\bVllm\w+", str(rules)))
        self.assertLessEqual(named, alerts)
        self.assertGreater(len(named), 4)

    def test_objects_of_kubernetes_are_whole(self):
        for name in ("podmonitor", "keda", "hpa"):
            content = self.load(f"kubernetes/{name}.yml")
            self.assertEqual(set(content), {"apiVersion", "kind", "metadata", "spec"})
            self.assertLessEqual({"name", "namespace"}, set(content["metadata"]))

    def test_the_operator_gets_the_same_rules(self):
        script = self.project.examples / "kubernetes" / "prometheusrule.py"
        done = run(sys.executable, script, "--label", "release=prometheus")
        objects = list(yaml.safe_load_all(done.stdout))
        self.assertEqual(
            [one["metadata"]["labels"] for one in objects],
            [{"release": "prometheus"}] * len(self.project.rule_files),
        )
        self.assertEqual(
            [one["spec"] for one in objects],
            [yaml.safe_load(f.read_text("utf-8")) for f in self.project.rule_files],
        )

    def test_both_autoscalers_scale_alike(self):
        keda = self.load("kubernetes/keda.yml")["spec"]
        hpa = self.load("kubernetes/hpa.yml")["spec"]
        of_keda = [float(t["metadata"]["threshold"]) for t in keda["triggers"]]
        of_hpa = [m["pods"]["target"]["averageValue"] for m in hpa["metrics"]]
        self.assertEqual(of_keda, [0.65, 3])
        self.assertEqual(of_hpa, ["650m", "3"])
        behavior = keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
        self.assertEqual(behavior, hpa["behavior"])
        adapter = self.load("kubernetes/prometheus-adapter.yml")["rules"]["custom"]
        self.assertEqual(
            [rule["name"]["as"] for rule in adapter],
            [metric["pods"]["metric"]["name"] for metric in hpa["metrics"]],
        )

    def test_compose_mounts_and_starts_what_is_there(self):
        services = self.load("compose.yml")["services"]
        mounts = {}
        for service in services.values():
            for volume in service["volumes"]:
                source, inside = volume.split(":")[:2]
                if source.startswith("."):
                    self.assertTrue((self.project.examples / source).is_dir(), source)
                    mounts[inside] = source
        help_text = run("prometheus", "--help").stdout
        flags = dict(word.split("=", 1) for word in services["prometheus"]["command"])
        for flag in flags:
            self.assertIn(f"{flag}=", help_text)
        self.assertIn(flags["--enable-feature"], help_text)
        folder, name = flags["--config.file"].rsplit("/", 1)
        self.assertTrue((self.project.examples / mounts[folder] / name).exists())

        source = self.load("grafana/provisioning/datasources/prometheus.yml")
        self.assertEqual(
            source["datasources"][0]["url"],
            "http://" + flags["--web.listen-address"],
        )
        provider = self.load("grafana/provisioning/dashboards/vllm.yml")["providers"][0]
        self.assertIn(provider["options"]["path"], mounts)


if __name__ == "__main__":
    observability.main()
