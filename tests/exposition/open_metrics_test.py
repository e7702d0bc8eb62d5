"""Pages of every golden trace, written as OpenMetrics: client_python's parser
reads from them every value that it reads from the text page."""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import debian_python  # noqa: E402

debian_python.needs("prometheus_client")
try:
    from prometheus_client.openmetrics import parser as open_metrics
    from prometheus_client import parser as text_format
except ImportError:
    open_metrics = text_format = None


def values(families):
    """Sample name and labels to value; NaN, which equals nothing, as text."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): (
            "NaN" if math.isnan(sample.value) else sample.value
        )
        for family in families
        for sample in family.samples
    }


@unittest.skipIf(open_metrics is None, "python3-prometheus-client is missing")
class GoldenPages(unittest.TestCase):
    reader = None
    golden = None
    maxDiff = None

    def rewritten(self, page):
        return subprocess.run(
            [self.reader, "--render-openmetrics", page],
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout.decode("utf-8")

    def test_every_value_is_that_of_the_text_page(self):
        pages = sorted(self.golden.glob("*.expected.prom"))
        self.assertGreaterEqual(len(pages), 3)
        for page in pages:
            with self.subTest(page.name):
                text = page.read_text("utf-8")
                expected = values(
                    text_format.text_string_to_metric_families(text))
                self.assertGreater(len(expected), 100)
                read = open_metrics.text_string_to_metric_families(
                    self.rewritten(page))
                self.assertEqual(values(read), expected)

    def test_a_page_is_read_and_written_again_to_the_byte(self):
        for page in sorted(self.golden.glob("*.expected.prom")):
            with self.subTest(page.name), tempfile.NamedTemporaryFile() as file:
                text = self.rewritten(page)
                file.write(text.encode("utf-8"))
                file.flush()
                self.assertEqual(self.rewritten(file.name), text)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build-dir", type=pathlib.Path, required=True)
    arguments.add_argument("--source-dir", type=pathlib.Path, required=True)
    options = arguments.parse_args()
    GoldenPages.reader = options.build_dir / "tests" / "read_page"
    GoldenPages.golden = options.source_dir / "tests" / "golden"
    unittest.main(argv=sys.argv[:1])
