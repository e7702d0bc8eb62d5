"""What a page names is there: links, files, commands, flags, metrics."""

import re
import subprocess

import pages

PROGRAMS = (
    "vllm-metrics-sim",
    "vllm-metrics-replay",
    "vllm-metrics-docgen",
    "vllm-metrics-doctor",
)

OF_PROMETHEUS = {"--enable-feature"}


def flags_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


class Names(pages.PagesTest):
    def help_of(self, program):
        path = self.project.program(program)
        if path is None:
            self.skipTest(f"{program} is not built")
        return subprocess.run(
            [path, "--help"], capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def dev_help(self):
        return subprocess.run(
            [self.project.source_dir / "dev", "help"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    def source(self, *patterns):
        root = self.project.source_dir
        files = [path for pattern in patterns for path in sorted(root.glob(pattern))]
        return "\n".join(path.read_text("utf-8") for path in files)

    def code(self, pattern):
        """(page, match) for each piece of code that has `pattern`."""
        for page in self.project.pages():
            for piece in page.code():
                for match in re.finditer(pattern, piece):
                    yield page.name, match

    def test_relative_links_lead_somewhere(self):
        for page in self.project.pages():
            for link in page.links():
                if re.match(r"[a-z]+:", link):
                    continue
                with self.subTest(page=page.name, link=link):
                    file, _, anchor = link.partition("#")
                    target = (page.path.parent / file) if file else page.path
                    self.assertTrue(target.exists())
                    if anchor:
                        there = pages.Page(target.resolve(), self.project.source_dir)
                        self.assertIn(anchor, there.anchors())

    def test_files_exist(self):
        pattern = r"^(?:\./)?(?:examples|include|src|tests|cmake|docs|bench)/[\w./-]+$"
        for page, match in self.code(pattern):
            with self.subTest(page=page, file=match[0]):
                self.assertTrue((self.project.source_dir / match[0]).exists())

    def test_commands_of_dev_exist(self):
        known = set(re.findall(r"^\./dev (\w+)", self.dev_help(), re.MULTILINE))
        self.assertIn("demo", known)
        for page, match in self.code(r"(?:^|[ (])\./dev (\w+)"):
            with self.subTest(page=page, command=match[0]):
                self.assertIn(match[1], known)

    def test_presets_exist(self):
        known = set(re.findall(r'"name": "(\w+)"', self.source("CMakePresets.json")))
        for page, match in self.code(r"(?:--preset|\./dev build) (\w+)"):
            with self.subTest(page=page, preset=match[1]):
                self.assertIn(match[1], known)

    def test_options_and_targets_of_the_build_exist(self):
        build = self.source("CMakeLists.txt", "cmake/*.cmake")
        for page, match in self.code(r"-D(VLLM_METRICS_\w+)"):
            with self.subTest(page=page, option=match[1]):
                self.assertRegex(
                    build, rf"option\({match[1]}\s|set\({match[1]} \w+ CACHE "
                )
        components = set(
            re.findall(r"vllm_metrics_add_\w*component\((\w+)[ )]", build)
        )
        for page, match in self.code(r"vllm_metrics::([a-z_]+)\b(?!\()"):
            headers = self.source("include/**/*.h")
            with self.subTest(page=page, target=match[0]):
                self.assertTrue(
                    match[1] in components or f"namespace {match[0]}" in headers
                )

    def test_flags_exist(self):
        helps = {program: flags_in(self.help_of(program)) for program in PROGRAMS}
        of_dev = flags_in(self.dev_help())
        for page, match in self.code(r"^.+$"):
            piece = match[0].split("#")[0]
            first = piece.split()[0].rsplit("/", 1)[-1] if piece.split() else ""
            if first in helps:
                known = helps[first]
            elif piece.startswith("./dev demo"):
                known = helps["vllm-metrics-sim"] | of_dev
            elif piece.startswith("--"):
                known = set().union(of_dev, OF_PROMETHEUS, *helps.values())
            else:
                continue
            with self.subTest(page=page, code=piece):
                self.assertLessEqual(flags_in(piece), known)

    def test_metrics_exist(self):
        sources = self.source("src/catalogue/*", "src/tools/sim/*")
        known = set(re.findall(r'"(vllm(?::|_metrics_)\w+)"', sources))
        suffix = r"_(total|bucket|count|sum|created)$"
        for page, match in self.code(r"\bvllm(?::|_metrics_(?!static))[a-z0-9_]+"):
            name = match[0]
            if name.endswith("_") or "/" in match.string or "CMake" in page:
                continue
            with self.subTest(page=page, metric=name):
                self.assertTrue(name in known or re.sub(suffix, "", name) in known)

    def test_names_of_the_api_exist(self):
        headers = self.source("include/**/*.h", "examples/*.h", "examples/*.cc")
        for page, match in self.code(r"^([A-Z]\w+)::(\w+)(?:\(\))?$"):
            with self.subTest(page=page, name=match[0]):
                self.assertTrue(re.search(rf"\b{match[1]}\b", headers))
                self.assertTrue(re.search(rf"\b{match[2]}\b", headers))
        for page, match in self.code(r"^((?!histogram_quantile|rate)[a-z]\w+)\(\)$"):
            with self.subTest(page=page, name=match[0]):
                self.assertTrue(re.search(rf"\b{match[1]}\(", headers))


if __name__ == "__main__":
    pages.main()
