// Errors are exceptions with a kind: a program can repair its call, do without, or give up.
import { fail, get_forecast, slow } from "host:mcp-weather";
import { parallel, ToolError, ToolArgumentsError } from "host:bridge";

function forecast(location, days) {
  try {
    return get_forecast({ location, days }).days.length;
  } catch (error) {
    if (!(error instanceof ToolArgumentsError)) throw error;
    console.log(`${days} days are too many: taking 14.`);
    return get_forecast({ location, days: 14 }).days.length;
  }
}

// With errors: "collect", a failed call gives its error in place of a result.
const results = parallel(
  [
    [slow, { seconds: 0.1 }],
    [fail, { message: "No signal." }],
    [get_forecast, { location: "Oslo", days: 1 }],
  ],
  { errors: "collect" },
);
const failed = results.filter((result) => result instanceof ToolError);

({
  days: forecast("Oslo", 30),
  worked: results.length - failed.length,
  failed: failed.map(({ server, tool, kind }) => ({ server, tool, kind })),
})
