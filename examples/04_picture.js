// A binary result is a handle: it shows as a note, and goes from one server to another without its bytes being here.
import { picture } from "host:mcp-weather";
import { add_picture } from "host:mcp-atlas";

const [caption, image] = picture({ size: 256 });
console.log(caption, image);

const stored = add_picture({ name: "sky.png", data: image });

// Its bytes can be read, too, where a program has use for them.
const signature = String.fromCharCode(...image.slice(1, 4).bytes());
({ mime: image.mime, signature, sizes: [image.size, stored.size] })
