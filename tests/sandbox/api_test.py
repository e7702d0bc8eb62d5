"""The control interface: what it takes, what it refuses, and that nothing that
it is sent stops the engine."""

import gzip
import json
import time

import sandbox_program


class Api(sandbox_program.SandboxTest):
    def setUp(self):
        super().setUp()
        self.start()

    def test_an_order_is_carried_out_between_two_steps(self):
        state = self.order(parameters={"rate": 3, "max-num-seqs": 7})
        self.assertEqual(state["parameters"]["rate"], 3)
        self.assertEqual(state["message"], "")
        page = self.after(5)
        self.assertLessEqual(page.sum("vllm:num_requests_running"), 7)

    def test_what_is_not_allowed_is_named(self):
        before = self.state()
        for text, field, value in (
                ('{"parameters": {"rate": 1e9}}', "rate", "1000000000.0"),
                ('{"parameters": {"rate": "a"}}', "rate", '"a"'),
                ('{"parameters": {"x": 1}}', "parameters", '"x"'),
                ('{"parameters": []}', "parameters", "[]"),
                ('{"x": 1}', "field", '"x"'),
                ('{"speed": 0}', "speed", "0"),
                ('{"paused": 1}', "paused", "1"),
                ('{"seed": 1.5}', "seed", "1.5"),
                ('{"scenario": "none"}', "scenario", '"none"'),
                ('[]', "body", "[]")):
            status, error = self.refused(text)
            self.assertEqual((status, error["field"], error["value"]),
                             (400, field, value))
            self.assertTrue(error["allowed"])
        self.assertEqual(self.state(), before)

    def test_nothing_hostile_stops_the_engine(self):
        for text in ("", "{", "\0", "[" * 16000, '{"a":' * 3000,
                     '"' + "x" * 16000, "9" * 16000, '{"seed": 1e999}'):
            self.assertEqual(self.refused(text)[0], 400, text[:20])
        status, _ = self.request("api/state", b"x" * 20000,
                                 Content_Type="application/json")
        self.assertEqual(status, 413)
        self.after(5)

    def test_other_sites_are_refused(self):
        order = '{"reset": true}'
        for headers in ({"Origin": "http://a.example"}, {"Origin": "null"},
                        {"Host": "a.example"}):
            self.assertEqual(self.refused(order, **headers)[0], 403)
        for kind in ("text/plain", "application/x-www-form-urlencoded",
                     "application/jsonx"):
            self.assertEqual(self.refused(order, kind)[0], 415)
        self.assertEqual(self.state()["revision"], 0)

    def test_pause_and_speed(self):
        self.order(paused=True)
        first = self.page()
        time.sleep(0.2)  # real time passes, virtual time must not
        self.assertEqual(self.seconds(self.page()), self.seconds(first))
        self.order(paused=False)
        self.after(1)

    def test_one_seed_gives_one_run(self):
        arrived = []
        for _ in range(2):
            self.order(seed=7, paused=False, speed=100)
            self.after(5)
            self.order(paused=True)
            page = self.page()
            arrived.append((self.seconds(page), page.sum(
                "vllm_metrics_sim_requests_arrived_total")))
        # Paused at another moment, but on the same path.
        slower, faster = sorted(arrived)
        self.assertLessEqual(slower[1], faster[1])

    def test_a_scenario_begins_anew(self):
        self.after(20)
        self.order(scenario="preemption-storm", speed=1)
        self.assertLess(self.seconds(self.page()), 20)
        self.assertEqual(self.state()["scenario"], "preemption-storm")

    def test_a_queue_without_end_pauses_the_run(self):
        self.order(speed=100, parameters={"rate": 100, "max-num-seqs": 1,
                                          "output-tokens": 4000})
        end = time.monotonic() + sandbox_program.LONGEST
        while not self.state()["paused"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertIn("Paused: 200", self.state()["message"])

    def test_the_doctor_names_each_case(self):
        for scenario in json.loads(self.request("api/scenarios")[1])[1:]:
            name, named = scenario["name"], []
            self.order(scenario=name, speed=100)
            while name not in named:
                report = json.loads(self.request("api/doctor")[1])
                named = [finding["id"] for model in report["models"]
                         for finding in model["findings"]]
                named += [model["state"] for model in report["models"]]
                self.assertLess(self.seconds(self.page()), 300,
                                f"{name}: {named}")
                time.sleep(0.02)

    def test_the_page_is_small_and_asks_no_other_host(self):
        size = 0
        for path in ("", "sandbox.js", "sandbox.css"):
            status, text = self.request(path)
            self.assertEqual(status, 200)
            size += len(gzip.compress(text))
            for scheme in (b"https://", b"//cdn"):
                self.assertNotIn(scheme, text)
        self.assertLess(size, 200_000)

    def test_the_license_of_what_is_in_the_page_is_served(self):
        status, text = self.request("licenses.txt")
        self.assertEqual(status, 200)
        self.assertIn(b"uPlot", text)
        self.assertIn(b"Permission is hereby granted", text)


if __name__ == "__main__":
    sandbox_program.main()
