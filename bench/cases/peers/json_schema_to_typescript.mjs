// json-schema-to-typescript over the schemas of a file: {name, schema} objects as JSON, each compiled on its own.
// Without prettier, which would take most of the time: what it would format is compared with text that isn't.
// With an argument `once` it does that and ends; otherwise it waits for orders as bench/node_peer.py gives them.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";

const [, , packages, file, once] = process.argv;
const { compile } = createRequire(`${packages}/`)("json-schema-to-typescript");
const schemas = JSON.parse(readFileSync(file, "utf8"));

async function compileAll() {
  let characters = 0;
  for (const { name, schema } of schemas)
    characters += (await compile(schema, name, { bannerComment: "", format: false })).length;
  if (characters < 1000) throw new Error("the peer wrote nothing");
}

if (once) {
  await compileAll();
} else {
  console.log(JSON.stringify({ ready: true }));
  for await (const line of createInterface({ input: process.stdin })) {
    const { times } = JSON.parse(line);
    const began = performance.now();
    for (let i = 0; i < times; i++) await compileAll();
    console.log(JSON.stringify({ seconds: (performance.now() - began) / 1000 / times }));
  }
}
