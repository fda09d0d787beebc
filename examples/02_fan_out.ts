// Fan out over 30 cities: all forecasts are asked for at the same time, and come back in order.
import { list_cities } from "host:mcp-atlas/async";
import { get_forecast } from "host:mcp-weather/async";

type High = { city: string; high: number };

const cities = await list_cities();
const highs: High[] = await Promise.all(
  cities.map(async ({ name }): Promise<High> => {
    const { days } = await get_forecast({ location: name, days: 7 });
    return { city: name, high: Math.max(...days.map((day) => day.high)) };
  }),
);
highs.sort((a, b) => b.high - a.high || a.city.localeCompare(b.city));

export default { asked: highs.length, warmest: highs.slice(0, 3), coolest: highs.at(-1) };
