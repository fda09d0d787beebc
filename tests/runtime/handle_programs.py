"""Programs that use handles, the same in each language."""

from __future__ import annotations

from runtime.programs import Program

LOOK_AND_PASS_ON = Program(
    """
        import { picture } from "host:mcp-gallery";
        import { add_picture } from "host:mcp-atlas";
        import { Handle } from "host:bridge";
        const image = picture();
        const album = add_picture({ name: "one", data: image });
        const half = add_picture({ name: "half", data: image.slice(0, 17000) });
        ({
          is: [image instanceof Handle, image.mime, image.size],
          head: Array.from(image.slice(0, 8).bytes()),
          tail: Array.from(image.slice(-2).bytes()),
          all: image.bytes().length,
          shown: `${image}`, text: JSON.stringify({ image }),
          album, half, image,
        })
    """,
    """
from host.mcp_gallery import picture
from host.mcp_atlas import add_picture
from host.bridge import Handle
image = picture()
album = add_picture(name="one", data=image)
half = add_picture({"name": "half", "data": image.slice(0, 17000)})
{
    "is": [isinstance(image, Handle), image.mime, image.size],
    "head": list(image.slice(0, 8).bytes()),
    "tail": list(image.slice(-2).bytes()),
    "all": len(image.bytes()),
    "shown": str(image), "text": '{"image": "%s"}' % image,
    "album": album, "half": half, "image": image,
}
    """,
)

SOUND = Program(
    'const s = require("host:mcp-gallery").sound(); [s, s.mime, s.text(), s.size]',
    "from host.mcp_gallery import sound\ns = sound()\n[s, s.mime, s.text(), s.size]",
)

LINES = Program(
    """
        const lines = require("host:mcp-gallery").lines();
        const { Handle } = require("host:bridge");
        [lines instanceof Handle, lines.mime, lines.slice(0, 9).text(), lines.json().length, lines.json()[59999]]
    """,
    """
import host.mcp_gallery
from host.bridge import Handle
lines = host.mcp_gallery.lines()
[isinstance(lines, Handle), lines.mime, lines.slice(0, 9).text(), len(lines.json()), lines.json()[59999]]
    """,
)

NO_TEXT = Program(
    """
        const image = require("host:mcp-gallery").picture();
        const caught = (read) => { try { return read(); } catch (error) { return [error.name, error.message]; } };
        [caught(() => image.text()), caught(() => image.json()), caught(() => image.slice(0, 4).json())]
    """,
    """
from host.mcp_gallery import picture
image = picture()
def caught(read):
    try:
        return read()
    except Exception as error:
        return [type(error).__name__, str(error)]
[caught(image.text), caught(image.json), caught(image.slice(0, 4).json)]
    """,
)

UNTIL_THE_LIMIT = Program(
    """
        import { picture } from "host:mcp-gallery";
        import { ToolLimitError } from "host:bridge";
        const kept = [];
        let error;
        while (!error && kept.length < 5) { try { kept.push(picture()); } catch (caught) { error = caught; } }
        [kept.length, error instanceof ToolLimitError, error.tool, error.message, kept[1].bytes().length]
    """,
    """
from host.mcp_gallery import picture
from host.bridge import ToolLimitError
kept = []
problem = None
while problem is None and len(kept) < 5:
    try:
        kept.append(picture())
    except Exception as error:
        problem = error
[len(kept), isinstance(problem, ToolLimitError), problem.tool, problem.message, len(kept[1].bytes())]
    """,
)

TEN_THOUSAND = Program(
    """
        const image = require("host:mcp-gallery").picture();
        let made = 1, name = "";
        try { for (;;) { image.slice(0, 1); made++; } } catch (error) { name = error.name; }
        [made, name, image.size]
    """,
    """
from host.mcp_gallery import picture
image = picture()
made, name = 1, ""
try:
    while True:
        image.slice(0, 1)
        made += 1
except Exception as error:
    name = type(error).__name__
[made, name, image.size]
    """,
)

FIRST_TURN = Program(
    'const image = require("host:mcp-gallery").picture(); 0',
    "from host.mcp_gallery import picture\nimage = picture()\n0",
)

SECOND_TURN = Program(
    'require("host:mcp-atlas").add_picture({ name: "later", data: image }).sha256',
    'from host.mcp_atlas import add_picture\nadd_picture(name="later", data=image)["sha256"]',
)

PICTURE_AND_STOP = Program(
    'require("host:mcp-gallery").picture(); throw new Error("stop")',
    'import host\nhost.mcp_gallery.picture()\nraise ValueError("stop")',
)

PICTURE_AND_LOOP = Program(
    'require("host:mcp-gallery").picture(); for (;;) {}',
    "import host\nhost.mcp_gallery.picture()\nwhile True: pass",
)

FORGERY = Program(
    """
        import { picture, forge } from "host:mcp-gallery";
        import { add_picture } from "host:mcp-atlas";
        import { Handle } from "host:bridge";
        const secret = picture();
        const { fakes } = forge();
        fakes.map((fake) => {
          try { return add_picture({ name: "x", data: fake }); } catch (error) {
            return [fake instanceof Handle, error.name];
          }
        })
    """,
    """
from host.mcp_gallery import picture, forge
from host.mcp_atlas import add_picture
from host.bridge import Handle
secret = picture()
def outcome(fake):
    try:
        return add_picture(name="x", data=fake)
    except Exception as error:
        return [isinstance(fake, Handle), type(error).__name__]
[outcome(fake) for fake in forge()["fakes"]]
    """,
)
