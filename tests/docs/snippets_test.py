"""Configurations on the pages and the Dockerfile are such as their readers take."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pages

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

debian_python.needs("yaml")
import yaml  # noqa: E402


class Snippets(pages.PagesTest):
    def check_with_promtool(self, what, text, *options):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("promtool is not installed")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "snippet.yml"
            file.write_text(text, "utf-8")
            done = subprocess.run(
                [promtool, "check", what, *options, file],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
            )
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_prometheus_takes_them(self):
        checked = 0
        for page in self.project.pages():
            for _, text in page.blocks("yaml"):
                with self.subTest(page=page.name):
                    if "scrape_configs:" in text:
                        # The files that it names are the reader's.
                        self.check_with_promtool(
                            "config", text, "--syntax-only"
                        )
                        checked += 1
                    elif text.startswith("groups:"):
                        self.check_with_promtool("rules", text)
                        checked += 1
        self.assertGreaterEqual(checked, 1)

    def test_a_collector_has_what_its_pipelines_name(self):
        checked = 0
        for page in self.project.pages():
            for _, text in page.blocks("yaml"):
                if "pipelines:" not in text:
                    continue
                config = yaml.safe_load(text)
                for pipeline in config["service"]["pipelines"].values():
                    for role, names in pipeline.items():
                        checked += 1
                        self.assertLessEqual(set(names), set(config[role]))
        self.assertGreaterEqual(checked, 8)


class Dockerfile(pages.PagesTest):
    def setUp(self):
        self.file = self.project.source_dir / "examples" / "Dockerfile"
        text = self.file.read_text("utf-8")
        self.comments = [line for line in text.splitlines() if line.startswith("#")]
        code = [line for line in text.splitlines() if not line.startswith("#")]
        self.text = "\n".join(code).replace("\\\n", " ")

    def test_what_it_copies_from_the_sources_exists(self):
        copied = 0
        for line in re.findall(r"^COPY (?!--from)(.+)$", self.text, re.MULTILINE):
            for name in line.split()[:-1]:
                copied += 1
                self.assertTrue((self.project.source_dir / name).exists(), name)
        self.assertGreaterEqual(copied, 5)

    def test_it_builds_with_the_packages_of_dev(self):
        dev = (self.project.source_dir / "dev").read_text("utf-8")
        wanted = set(re.findall(r"^build +(\S+) ", dev, re.MULTILINE))
        first = re.search(r"apt-get install (.*?)&&", self.text, re.DOTALL)[1]
        installed = {word for word in first.split() if not word.startswith("-")}
        self.assertEqual(installed, wanted)

    def test_it_publishes_port_8000(self):
        self.assertIn("EXPOSE 8000", self.text)
        self.assertIn('"--listen", "0.0.0.0:8000"', self.text)
        self.assertIn("docker run --rm -p 8000:8000", "\n".join(self.comments))

    def test_its_flags_are_the_programs(self):
        program = self.project.program("vllm-metrics-sim")
        if program is None:
            self.skipTest("vllm-metrics-sim is not built")
        help_text = subprocess.run(
            [program, "--help"], capture_output=True, text=True, check=True
        ).stdout
        started = re.findall(r'^(?:ENTRYPOINT|CMD) .*$', self.text, re.MULTILINE)
        flags = re.findall(r"--[a-z-]+", " ".join(started + self.comments[-2:]))
        self.assertIn("--listen", flags)
        for flag in flags:
            self.assertIn(flag, help_text)


if __name__ == "__main__":
    pages.main()
