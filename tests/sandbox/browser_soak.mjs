// The page after one and after two hours of engine time, its timers hurried:
//   node browser_soak.mjs SIMULATOR NODE_MODULES_FOLDER CHROMIUM
import assert from "node:assert/strict";
import { openSandbox } from "./sandbox_page.mjs";

const [program, driver, executablePath] = process.argv.slice(2);
const { address, page, faults, close } = await openSandbox(
  program, driver, executablePath, ["--speed", "100", "--enable-mfu-metrics"]);
const devtools = await page.context().newCDPSession(page);

const minutes = () => page.evaluate(
  () => Number(document.getElementById("clock").textContent.split(":")[0]));

async function held() {
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await devtools.send("Memory.getDOMCounters");
  return { kilobytes: usedSize / 1024, nodes, jsEventListeners };
}

await page.clock.install();
await page.goto(address);
const after = {};
let polls = 0;
for (const wanted of [60, 120]) {
  while (await minutes() < wanted) {
    await page.clock.runFor(500);
    ++polls;
  }
  after[wanted] = await held();
  console.log(`${wanted} minutes, ${polls} polls:`, after[wanted]);
}
await close();
assert.deepEqual(faults, []);
assert.ok(after[120].kilobytes < after[60].kilobytes + 256, "the heap grows");
assert.ok(after[120].nodes < after[60].nodes + 100, "the document grows");
assert.ok(after[120].jsEventListeners <= after[60].jsEventListeners + 10, "listeners are left");
