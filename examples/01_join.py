# Join two servers' data: the three largest cities of Asia, with the weather of each today.
# The full listing and the forecasts stay here; only the answer leaves.
from host.mcp_atlas import list_cities
from host.mcp_weather import get_forecast

cities = sorted(list_cities(continent="Asia"), key=lambda city: -city["people"])


def with_weather(city):
    today = get_forecast(location=city["name"], days=1)["days"][0]
    return {"name": city["name"], "people": city["people"], "sky": today["sky"], "high": today["high"]}


[with_weather(city) for city in cities[:3]]
