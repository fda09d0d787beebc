# A binary result is a handle: it shows as a note, and goes from one server to another without its bytes being here.
from host.mcp_atlas import add_picture
from host.mcp_weather import picture

caption, image = picture(size=256)
print(caption, image)

stored = add_picture(name="sky.png", data=image)

# Its bytes can be read, too, where a program has use for them.
signature = image.slice(1, 4).bytes().decode()
{"mime": image.mime, "signature": signature, "sizes": [image.size, stored["size"]]}
