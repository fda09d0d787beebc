// Join two servers' data: the three largest cities of Asia, with the weather of each today.
// The types are checked before it runs, and gone when it does.
import { list_cities, type City } from "host:mcp-atlas";
import { get_forecast } from "host:mcp-weather";

interface Row {
  name: string;
  people: number;
  sky: string;
  high: number;
}

function withWeather({ name, people }: City): Row {
  const [today] = get_forecast({ location: name, days: 1 }).days;
  return { name, people, sky: today.sky, high: today.high };
}

const largest: City[] = list_cities({ continent: "Asia" }).sort((a, b) => b.people - a.people);
largest.slice(0, 3).map(withWeather)
