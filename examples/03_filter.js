// Filter a big listing: 8,000 lines go in, three numbers come out. A model never reads the lines.
import { list_measurements } from "host:mcp-atlas";

const lines = list_measurements({ city: "Kyoto", hours: 8000 });
const broken = lines.filter((line) => line.status === "broken");

const bySensor = {};
for (const { sensor } of broken) bySensor[sensor] = (bySensor[sensor] ?? 0) + 1;
const [worst] = Object.entries(bySensor).sort(([, a], [, b]) => b - a);

({ lines: lines.length, broken: broken.length, worst })
