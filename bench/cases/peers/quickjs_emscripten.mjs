// quickjs-emscripten, measured in a process that waits for orders: one JSON object per line,
// {work, times}, answered by {seconds} for one time. Started by bench/node_peer.py.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , packages] = process.argv;
const { getQuickJS, newQuickJSWASMModule } = createRequire(`${packages}/`)("quickjs-emscripten");
const shared = await getQuickJS();

function evaluate(context, source) {
  const handle = context.unwrapResult(context.evalCode(source));
  const value = context.dump(handle);
  handle.dispose();
  return value;
}

function check(condition) {
  if (!condition) throw new Error("the peer gave a wrong answer");
}

function onePlusOne(quickjs) {
  const context = quickjs.newContext(); // with a runtime of its own, in the module's one memory
  check(evaluate(context, "1+1") === 2);
  context.dispose();
}

const works = {
  async freshContext(times) {
    const began = performance.now();
    for (let i = 0; i < times; i++) onePlusOne(shared);
    return performance.now() - began;
  },

  async freshModule(times) {
    const began = performance.now();
    for (let i = 0; i < times; i++) onePlusOne(await newQuickJSWASMModule());
    return performance.now() - began;
  },

  async hostCall(times) {
    const began = performance.now();
    const context = shared.newContext();
    const echo = context.newFunction("echo", (text) =>
      context.newString(JSON.stringify(JSON.parse(context.getString(text)))),
    );
    context.setProp(context.global, "echo", echo);
    echo.dispose();
    const city = evaluate(
      context,
      `let reply;
       for (let i = 0; i < ${times}; i++) reply = JSON.parse(echo(JSON.stringify({ city: "Oslo", days: 3 })));
       reply.city`,
    );
    context.dispose();
    check(city === "Oslo");
    return performance.now() - began;
  },
};

function answer(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

answer({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const { work, times } = JSON.parse(line);
  answer({ seconds: (await works[work](times)) / times / 1000 });
}
