"""Which modules there are."""

from __future__ import annotations

from describe.listings import Status, catalog, tool, weather
from toolbridge.describe.modules import ModuleSummary, list_modules
from toolbridge_codegen.catalog import ServerListing, build_catalog


def summary(*names: str, instructions: str = "") -> str:
    tools = tuple(tool(name) for name in names)
    (module,) = list_modules(build_catalog([ServerListing("x", tools, instructions=instructions)]))
    return module.summary


def test_a_module_is_told_with_its_names_its_size_and_what_it_is_for() -> None:
    (module,) = list_modules(weather(), [Status("weather", "connected", 2)])
    assert module == ModuleSummary(
        specifier="host:mcp-weather",
        python_module="host.mcp_weather",
        server="weather",
        display_name="weather",
        tools=2,
        summary="get_forecast, list_stations",
        state="connected",
    )
    assert module.as_json() == {
        "module": "host:mcp-weather",
        "python_module": "host.mcp_weather",
        "server": "weather",
        "display_name": "weather",
        "tools": 2,
        "summary": "get_forecast, list_stations",
        "state": "connected",
    }


def test_a_server_that_was_never_asked_is_there_without_a_number_of_tools() -> None:
    modules = list_modules(weather(), [Status("zoo", display_name="The zoo"), Status("art-museum")])
    assert [(module.specifier, module.tools, module.state) for module in modules] == [
        ("host:mcp-art-museum", None, "idle"),
        ("host:mcp-weather", 2, None),
        ("host:mcp-zoo", None, "idle"),
    ]
    assert [module.display_name for module in modules] == ["art-museum", "weather", "The zoo"]
    assert modules[0].python_module == "host.mcp_art_museum"


def test_what_the_catalog_has_counts_not_what_a_status_says() -> None:
    (module,) = list_modules(weather(), [Status("weather", "error", None)])
    assert (module.tools, module.state) == (2, "error")


def test_without_servers_there_are_no_modules() -> None:
    assert list_modules(catalog()) == ()


def test_instructions_are_summed_up_by_their_first_sentence() -> None:
    instructions = "# Weather\n\nForecasts for every place on earth. Call list_stations first."
    assert summary("a", "b", instructions=instructions) == "Forecasts for every place on earth"


def test_instructions_that_say_too_little_are_passed_over() -> None:
    assert summary("a", "b", instructions="Hello!\n---\n") == "a, b"


def test_a_module_of_one_tool_is_told_with_what_its_tool_is_for() -> None:
    (module,) = list_modules(catalog(x=[tool("fetch", "Fetches a page. As text.")]))
    assert module.summary == "fetch: Fetches a page"


def test_of_many_tools_some_names_stand_for_all() -> None:
    names = [f"a_rather_long_name_{number:03}" for number in range(500)]
    text = summary(*names)
    assert len(text) <= 100
    assert text.endswith(", …")
    assert text.startswith(names[0])
    assert names[1] not in text, "they are spread over the whole list"


def test_one_endless_name_is_cut_by_the_catalog_already() -> None:
    assert len(summary("n" * 5_000, "m" * 5_000)) <= 100


def test_a_module_without_tools_has_no_summary() -> None:
    assert summary() == ""
