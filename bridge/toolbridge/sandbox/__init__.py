"""The trusted side of Wasmtime: engine, compile cache, runs, sessions and their outcome."""
