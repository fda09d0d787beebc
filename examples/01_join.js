// Join two servers' data: the three largest cities of Asia, with the weather of each today.
// The full listing and the forecasts stay here; only the answer leaves.
import { list_cities } from "host:mcp-atlas";
import { get_forecast } from "host:mcp-weather";

const largest = list_cities({ continent: "Asia" })
  .sort((a, b) => b.people - a.people)
  .slice(0, 3);

largest.map(({ name, people }) => {
  const [today] = get_forecast({ location: name, days: 1 }).days;
  return { name, people, sky: today.sky, high: today.high };
})
