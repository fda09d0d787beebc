# Fan out over 30 cities: all forecasts are asked for at the same time, and come back in order.
from host.bridge import parallel
from host.mcp_atlas import list_cities
from host.mcp_weather import get_forecast

cities = [city["name"] for city in list_cities()]
forecasts = parallel([(get_forecast, {"location": city, "days": 7}) for city in cities])

highs = [{"city": each["location"], "high": max(day["high"] for day in each["days"])} for each in forecasts]
highs.sort(key=lambda row: (-row["high"], row["city"]))

{"asked": len(highs), "warmest": highs[:3], "coolest": highs[-1]}
