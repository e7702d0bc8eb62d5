// The simulator, and a browser that is about to open its page.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";

const kLongest = 60000; // ms; a hang guard

export async function openSandbox(program, driver, executablePath, flags) {
  const { chromium } = createRequire(join(driver, "x"))("playwright-core");
  const simulator = spawn(program, [
    "--listen", "127.0.0.1:0", "--log-interval", "0", ...flags]);
  let printed = "";
  while (!/sandbox is at \S+/.test(printed)) {
    printed += String((await once(simulator.stdout, "data"))[0]);
  }
  const address = /sandbox is at (\S+)/.exec(printed)[1];

  const browser = await chromium.launch({
    executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 } });
  const page = await context.newPage();
  page.setDefaultTimeout(kLongest);

  const faults = []; // no error in the console, no other host
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) {
      faults.push(`asked another host: ${request.url()}`);
    }
  });

  return {
    address, page, faults,
    // page.waitForFunction() would need eval, which the page's own policy forbids.
    until: async (condition, argument) => {
      const end = Date.now() + kLongest;
      while (!(await page.evaluate(condition, argument))) {
        assert.ok(Date.now() < end, `60 s without ${condition} of ${argument}`);
        await page.waitForTimeout(100);
      }
    },
    close: async () => {
      await browser.close();
      simulator.kill("SIGTERM");
    },
  };
}
