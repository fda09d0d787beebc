# Errors are exceptions with a kind: a program can repair its call, do without, or give up.
from host.bridge import ToolArgumentsError, ToolError, parallel
from host.mcp_weather import fail, get_forecast, slow


def forecast(location, days):
    try:
        return len(get_forecast(location=location, days=days)["days"])
    except ToolArgumentsError:
        print(f"{days} days are too many: taking 14.")
        return len(get_forecast(location=location, days=14)["days"])


# With errors="collect", a failed call gives its error in place of a result.
results = parallel(
    [
        (slow, {"seconds": 0.1}),
        (fail, {"message": "No signal."}),
        (get_forecast, {"location": "Oslo", "days": 1}),
    ],
    errors="collect",
)
failed = [result for result in results if isinstance(result, ToolError)]

{
    "days": forecast("Oslo", 30),
    "worked": len(results) - len(failed),
    "failed": [{"server": error.server, "tool": error.tool, "kind": error.kind} for error in failed],
}
