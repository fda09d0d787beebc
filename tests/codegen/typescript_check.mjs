// Type-checks many files in one program. Given the directory with TypeScript as an argument and file names
// as JSON on stdin, answers with [{file, line, message}].
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const ts = createRequire(`${process.argv[2]}/`)("typescript");
const program = ts.createProgram(JSON.parse(readFileSync(0, "utf8")), {
  strict: true,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  moduleDetection: ts.ModuleDetectionKind.Auto,
  lib: ["lib.es2022.d.ts"],
  types: [],
  skipDefaultLibCheck: true,
});
const found = ts.getPreEmitDiagnostics(program).map((item) => ({
  file: item.file ? item.file.fileName : "",
  line: item.file ? item.file.getLineAndCharacterOfPosition(item.start).line + 1 : 0,
  message: ts.flattenDiagnosticMessageText(item.messageText, "\n"),
}));
process.stdout.write(JSON.stringify(found));
