// Bundles the page and writes it as C++ for the program:
//   node build.mjs NODE_MODULES OUT.cc
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, "x"))("esbuild");

const bundled = await esbuild.build({
  entryPoints: [join(here, "main.ts"), join(here, "style.css")],
  bundle: true,
  minify: true,
  write: false,
  outdir: "/",
  target: ["es2020", "chrome90", "firefox90", "safari14"],
  nodePaths: [modules],
  legalComments: "inline",
  logLevel: "warning",
});
const made = Object.fromEntries(
  bundled.outputFiles.map((file) => [file.path, file.contents]));

const assets = [
  ["/", "text/html; charset=utf-8", readFileSync(join(here, "index.html"))],
  ["/sandbox.js", "text/javascript; charset=utf-8", made["/main.js"]],
  ["/sandbox.css", "text/css; charset=utf-8", made["/style.css"]],
  ["/licenses.txt", "text/plain; charset=utf-8", Buffer.concat([
    Buffer.from("The charts are drawn by uPlot, which is under this license:\n\n"),
    readFileSync(join(modules, "uplot", "LICENSE"))])],
];

let text = `// Written by build.mjs.
#include "src/tools/sandbox/asset.h"

#include <array>

namespace vllm_metrics::sandbox {
namespace {

`;
assets.forEach(([, , bytes], i) => {
  const numbers = [...bytes].map((b) => (b > 127 ? b - 256 : b));
  text += `constexpr char kBytes${i}[] = {`;
  for (let k = 0; k < numbers.length; k += 32) {
    text += `\n${numbers.slice(k, k + 32).join(",")},`;
  }
  text += "};\n";
});
text += "\nconstexpr std::array kAssets = {\n";
assets.forEach(([path, type], i) => {
  text += `    Asset{"${path}", "${type}", {kBytes${i}, sizeof kBytes${i}}},\n`;
});
text += `};

}  // namespace

std::span<const Asset> assets() { return kAssets; }

}  // namespace vllm_metrics::sandbox
`;
writeFileSync(out, text);
