// The TypeScript SDK's client, over stdio or HTTP: searches, runs a program, and says yes to whatever is asked.
// Usage: node typescript_client.mjs MODULES ERA (stdio COMMAND ARG… | http URL)
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, era, kind, target, ...words] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(`${modules}/x.js`).resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const client = new Client(
  { name: "typescript", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: era } },
);
let asked = 0;
client.setRequestHandler("elicitation/create", async () => {
  asked += 1;
  return { action: "accept", content: { agree: true } };
});
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args: words, env: process.env });
await client.connect(transport);
const { tools } = await client.listTools();
const found = await client.callTool({ name: "search_tools", arguments: { query: "forecast" } });
const code = 'require("host:mcp-weather").get_forecast({ location: "Oslo" }).location';
const run = await client.callTool({ name: "run_code", arguments: { code } });
console.log(
  JSON.stringify({
    version: client.getNegotiatedProtocolVersion(),
    tools: tools.length,
    hit: found.structuredContent.hits[0].function,
    value: run.structuredContent.value,
    asked,
  }),
);
await client.close();
