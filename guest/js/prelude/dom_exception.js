// DOMException for the other prelude files: the engine's own one is complete, so it is only checked and shared.

if (typeof globalThis.DOMException !== "function" || new globalThis.DOMException("", "DataCloneError").code !== 25) {
  throw new Error("this engine has no DOMException: build the context with JS_AddIntrinsicDOMException");
}
shared.DOMException = globalThis.DOMException;
