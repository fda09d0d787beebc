"""How the report's page looks, by day and by night."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --dim: #5c6875; --paper: #fbfbf9; --card: #ffffff; --line: #e2e5e8;
  --good: #17693c; --good-back: #e3f4e9; --bad: #a3201d; --bad-back: #fbe6e4; --warn: #85550a; --warn-back: #fcf0d8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --dim: #98a4b0; --paper: #14181d; --card: #1b2027;
  --line: #2c343d; --good: #7fd8a2; --good-back: #17341f; --bad: #ff9d95; --bad-back: #43191a; --warn: #f0c572;
  --warn-back: #3c2d10; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
.about { color: var(--dim); margin: .25rem 0 1.5rem; }
.verdict { font-size: 1.1rem; font-weight: 600; padding: .8rem 1rem; border-radius: .5rem; margin: 0 0 1rem; }
.verdict.good { color: var(--good); background: var(--good-back); }
.verdict.bad { color: var(--bad); background: var(--bad-back); }
.figures { display: flex; flex-wrap: wrap; gap: .75rem; margin: 0 0 1.25rem; }
.figures div { flex: 1 1 8rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem .9rem; }
.figures dt { color: var(--dim); font-size: .8rem; }
.figures dd { margin: 0; font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; }
code { font: .9em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.head, summary { display: grid; gap: .75rem; align-items: baseline;
  grid-template-columns: 3rem minmax(10rem, 1fr) 5.5rem 3.5rem 4rem 7.5rem 5rem; padding: .5rem .9rem; }
.head span:nth-child(6), summary .result { margin-left: .5rem; }
.head { color: var(--dim); font-size: .8rem; margin-top: 1.5rem; }
details { background: var(--card); border: 1px solid var(--line); border-top-width: 0; }
.head + details { border-top-width: 1px; border-radius: .5rem .5rem 0 0; }
details:last-of-type { border-radius: 0 0 .5rem .5rem; }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:hover, details[open] summary { background: color-mix(in srgb, var(--line) 35%, transparent); }
summary:focus-visible { outline: 2px solid var(--good); outline-offset: -2px; }
.id { font-weight: 600; font-variant-numeric: tabular-nums; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.severity { color: var(--dim); }
.severity.critical { color: var(--ink); font-weight: 600; }
.result { padding: .05rem .55rem; border-radius: 1rem; font-size: .85rem; font-weight: 600; justify-self: start;
  white-space: nowrap; }
.result.holds { color: var(--good); background: var(--good-back); }
.result.broken { color: var(--bad); background: var(--bad-back); }
.result.untested, .result.skipped { color: var(--warn); background: var(--warn-back); }
.tried { padding: .25rem .9rem 1rem 4.65rem; }
.promise { margin: .25rem 0 .5rem; font-weight: 600; }
.tried ul { margin: 0; padding-left: 1.1rem; }
.many { color: var(--dim); font-size: .85rem; white-space: nowrap; }
pre { overflow: auto; max-height: 24rem; padding: .75rem; border-radius: .4rem; background: var(--bad-back);
  font: .8rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media (max-width: 46rem) { .head { display: none; }
  summary { grid-template-columns: 2.5rem 1fr auto; }
  summary .severity, summary .number { display: none; }
  .tried { padding-left: .9rem; } }
@media print { body { background: none; } details { break-inside: avoid; } }
"""
