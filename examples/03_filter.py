# Filter a big listing: 8,000 lines go in, three numbers come out. A model never reads the lines.
from collections import Counter

from host.mcp_atlas import list_measurements

lines = list_measurements(city="Kyoto", hours=8000)
broken = [line for line in lines if line["status"] == "broken"]
[worst] = Counter(line["sensor"] for line in broken).most_common(1)

{"lines": len(lines), "broken": len(broken), "worst": worst}
