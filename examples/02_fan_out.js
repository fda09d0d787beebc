// Fan out over 30 cities: all forecasts are asked for at the same time, and come back in order.
import { list_cities } from "host:mcp-atlas";
import { get_forecast } from "host:mcp-weather";
import { parallel } from "host:bridge";

const cities = list_cities();
const forecasts = parallel(cities.map((city) => [get_forecast, { location: city.name, days: 7 }]));

const highs = forecasts.map((forecast, i) => ({
  city: cities[i].name,
  high: Math.max(...forecast.days.map((day) => day.high)),
}));
highs.sort((a, b) => b.high - a.high || a.city.localeCompare(b.city));

({ asked: highs.length, warmest: highs.slice(0, 3), coolest: highs.at(-1) })
