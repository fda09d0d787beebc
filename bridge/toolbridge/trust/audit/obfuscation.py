"""SECURITY: obfuscation in a text: hidden characters, mixed alphabets, layout; and decoded views of encoded text.

Also the marks that are no words but features of the scorer: addresses, files of secrets, commands, chat markup.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from toolbridge.trust.audit.concepts import Mention, bit
from toolbridge.trust.audit.rules import ENCODED, FAR_AWAY, INVISIBLE, MIXED, RULES, TERMINAL, TURNED, Rule
from toolbridge_codegen.escaping import CONTROLS, DIRECTION, HIDDEN, SELECTORS, TAGS

# Each expression begins with a literal or a small class and repeats only with bounds (T16).

# Destinations: mail, a telephone, an account or a wallet.
_ADDRESS = re.compile(
    r"(?<=[\w+-])@(?=[a-z0-9-]{1,63}\.[a-z])|\+\d{9,15}(?!\d)|(?<!\w)(?:0x[0-9a-f]{40}|bc1[0-9a-z]{25,60})(?!\w)"
    r"|(?<!\w)[a-z]{2}\d\d ?\d{4} ?\d{4}"
)
_LINK = re.compile(r"https?://")
_SECRET_FILE = re.compile(
    r"~/\.[a-z]|\.ssh/|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/|\.env\b(?![./-])|/etc/(?:passwd|shadow|sudoers)"
    r"|\.git-credentials|\.kube/|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.docker/config|\.gnupg|authorized_keys|\.cursor/|\.claude/|mcp\.json"
    r"|\$\{?[a-z_]{0,20}(?:token|key|secret|password)|process\.env|database_url"
    r"|\*\.(?:pem|key|kdbx|p12)|\bid_\*|/proc/self/environ|credentials\.json|secrets?\.(?:ya?ml|json|toml)|kubeconfig"
    r"|(?:seed|mnemonic|passwords?)\.txt|\.kdbx|claude_desktop_config|\.azure/|\.config/gh"
    r"|service[-_]account\.json|tfstate"
    r"|\.config/gcloud|wallet\.dat|\.bash_history|\.zsh_history|login[ ]data\b|cookies?\.sqlite|cookie store|keychain"
)
_LINK_WITH_DATA = re.compile(
    r"https?://[^\s<>{}$]{1,200}(?:[<{$]|(?:\?|&|=|/)[a-z]{0,12}=(?=[\s`'\").]|$))|https?://\d{1,3}\.\d{1,3}\.\d{1,3}\.\d"
)
_SHELL = re.compile(
    r"\b(?:curl|wget|nslookup|printenv|nc|scp|rsync|chmod|xxd|crontab|sudo|iwr|ssh-keygen|gh auth|docker inspect) [^\s]"
    r"|\$\(|[|] ?(?:ba|z)?sh\b|\w [|] base64|\bcat ~|>> ?[~/]|\burlopen\(|os\.environ|\bsubprocess\.|rm -[rf]"
    r"|\b(?:agents|claude|gemini)\.md\b|\.cursorrules|\.bashrc|\.zshrc|authorized_keys|\bgit@|\.git/hooks"
)
_ROLE = re.compile(
    r"\[/?(?:system|admin|root|hidden|internal|inst)[\]: ]"
    r"|\"role\" ?: ?\"(?:system|assistant|developer)\""
    r"|\"(?:jsonrpc|tool_calls?|tool_result|next_action|function_call|ask_user|policy_update)\" ?:"
    r"|^#{1,4} (?:system|assistant|instructions?)\b|```(?:system|instructions?|prompt)"
    r"|-{3} ?(?:end|begin|start)\b|end of (?:tool |the )?(?:description|document|context)"
    r"|\{\{[ ]?(?:system|conversation|user|chat|history|messages|prompt)"
    r"|<(?:system|secret|critical|important|admin|hidden|rules?|policy|mandatory|instructions?|directive)\b"
    r"|<!--|(?:display: ?none|aria-hidden|white text|font-size: ?[01]p)"
    r"|\b(?:system|assistant|agent|ai|llm|model) ?:[ ]",
    re.MULTILINE,
)
_NAME = re.compile(r"`[^`\n]{2,60}`|(?<!\w)[a-z]{2,20}(?:_[a-z0-9]{1,20}){1,4}(?!\w)|(?<!\w)[a-z]{2,20}\(")
# The beginning of a tool's description: "Returns …", "Lists …".
_DOES = re.compile(r"(?:^|[.!?] )\s{0,4}(?!always|this|is|as|its|has|was|us|whats)[a-z]{3,14}s (?=[a-z])", re.MULTILINE)
_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("what it does", _DOES),
    ("a link", _LINK),
    ("an address", _ADDRESS),
    ("a file of secrets", _SECRET_FILE),
    ("a link with data", _LINK_WITH_DATA),
    ("shell code", _SHELL),
    ("marks of a role", _ROLE),
    ("a name", _NAME),
    *((rule.id, re.compile(pattern, re.MULTILINE)) for rule in RULES for pattern in rule.patterns),
)


def marks(text: str) -> list[Mention]:
    """The marks in a text (in lower case), as mentions of their concepts."""
    return [(*match.span(), bit(concept)) for concept, pattern in _MARKS for match in pattern.finditer(text)]


_CONTROL = re.compile(f"[{CONTROLS}]")
_DIRECTION = re.compile(f"[{DIRECTION}]")
_TAG_OR_SELECTOR = re.compile(f"[{TAGS}{SELECTORS}]")
# Letters only: the marks that turn text around are in these blocks, too.
_RIGHT_TO_LEFT = re.compile("[\u05d0-\u05f2\u0620-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_DIRECTION_MARKS = "\u061c\u200e\u200f"
_JOINERS = "\u200c\u200d"
_EMOJI = re.compile("[#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f\u20e3]")
# Cyrillic beside Latin, and Greek that looks like Latin inside of a word.
_ALPHABETS = re.compile(
    r"[A-Za-z][\u0400-\u04ff]|[\u0400-\u04ff][A-Za-z]|[A-Za-z][οραεινκτυχ][A-Za-z]|[A-Za-z]{2}[οραεινκτυχ]\b"
    r"|\b[οραεινκτυχ][A-Za-z]{3}"
)
_BLANK = re.compile(r"(?<!\s)\s{40,}(?=\S)")

_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_NUMBERED = (
    (re.compile(r"%[467][0-9a-fA-F]|%5[0-9aA]"), 8),
    (re.compile(r"\\u00[467][0-9a-fA-F]|\\u005[0-9aA]|\\x[467][0-9a-fA-F]"), 5),
    (re.compile(r"&#(?:x[467][0-9a-fA-F]|6[5-9]|[7-9]\d|1[01]\d|12[0-2]);"), 4),
)
# Words that are in most English sentences, by turned letters (rot13) and backwards.
_TURNED_WORDS = re.compile(r"\b(?:gur|naq|lbh|lbhe|abg|nyy|sebz|hfre|svyr|fraq|ernq|guvf|jvgu)\b", re.IGNORECASE)
_BACKWARD_WORDS = re.compile(r"\b(?:eht|dna|uoy|ruoy|lla|morf|resu|elif|dnes|daer|siht|htiw)\b", re.IGNORECASE)
_LEAST_WORDS = 3
_LEAST_LETTERS = 6
"""Different ones: five letters and what stands between them."""
_APART = re.compile(r"(?<!\w)[a-zA-Z](?:[ ._-]{1,4}[a-zA-Z](?!\w)){9,400}")
_MOST_RUNS = 40
_MOST_OF_A_RUN = 4_000


@dataclass(frozen=True, slots=True)
class Obfuscation:
    """An obfuscated place in a text."""

    rule: Rule
    start: int
    end: int


def obfuscations(text: str) -> Iterator[Obfuscation]:
    """Yields the obfuscated places of a text as it stands, each rule at most once.

    They are hidden characters, mixed alphabets, text far behind blank space, and letters written as numbers.
    """
    if not text.isascii() or not text.isprintable():
        yield from _hidden(text)
        if match := _ALPHABETS.search(text):
            yield Obfuscation(MIXED, match.start(), match.end())
    for match in _BLANK.finditer(text):
        if match[0].count("\n") >= 12 or len(match[0]) >= 120:
            yield Obfuscation(FAR_AWAY, match.start(), match.end() + 80)
            break
    for pattern, least in _NUMBERED:
        places = [match.start() for match in pattern.finditer(text)]
        if len(places) >= least:
            yield Obfuscation(ENCODED, places[0], places[-1] + 6)
            break


def _hidden(text: str) -> Iterator[Obfuscation]:
    """Yields the first place of each rule about hidden characters; places count CRLF as one character."""
    reported: set[str] = set()
    plain = text.replace("\r\n", "\n")
    reads_both_ways = _RIGHT_TO_LEFT.search(plain) is not None
    for match in HIDDEN.finditer(plain):
        rule = _rule_for(plain, match.start(), reads_both_ways=reads_both_ways)
        if rule is not None and rule.id not in reported:
            reported.add(rule.id)
            yield Obfuscation(rule, match.start(), match.end())
            if len(reported) == 3:
                return


def _rule_for(text: str, place: int, *, reads_both_ways: bool) -> Rule | None:
    """Returns the rule that a hidden character breaks, or None for an honest use.

    Honest are emoji selectors, joiners between letters that join, and direction marks in a text that `reads_both_ways`.
    """
    character = text[place]
    if _CONTROL.match(character):
        return TERMINAL
    if _DIRECTION.match(character):
        return None if reads_both_ways and character in _DIRECTION_MARKS else TURNED
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    # The flag of a region is written in tags; every other use of tags is hidden text.
    if character in "\ufe0e\ufe0f" and _EMOJI.match(before) and not _TAG_OR_SELECTOR.match(before):
        return None
    if character in _JOINERS and before and after and (_joins(before, after)):
        return None
    return INVISIBLE


def _joins(before: str, after: str) -> bool:
    """Whether a joiner is between letters of scripts that join, or between emoji."""
    if _EMOJI.match(before) and _EMOJI.match(after):
        return True
    return all("\u0600" <= letter <= "\u109f" and not HIDDEN.match(letter) for letter in (before, after))


def decoded_views(text: str) -> Iterator[tuple[int, int, str]]:
    """Yields readable text that is encoded in a text, after its start and end; long and numerous runs are cut off.

    Decodes base64, hex, rot13, text written backwards, and letters apart.
    """
    if len(_TURNED_WORDS.findall(text)) >= _LEAST_WORDS:
        yield 0, len(text), codecs.decode(text[:_MOST_OF_A_RUN], "rot13")
    if len(_BACKWARD_WORDS.findall(text)) >= _LEAST_WORDS:
        yield 0, len(text), text[-_MOST_OF_A_RUN:][::-1]
    for match in islice(_APART.finditer(text), _MOST_RUNS):
        if len(set(match[0].lower())) >= _LEAST_LETTERS:
            yield match.start(), match.end(), _together(match[0])
    for count, match in enumerate(_RUN.finditer(text)):
        if count >= _MOST_RUNS:
            return
        run = match[0][:_MOST_OF_A_RUN]
        for data in _readings(run):
            if readable := _readable(data):
                yield match.start(), match.end(), readable
                break


def _together(letters: str) -> str:
    """`r e a d   i t` as words: one separator between letters is dropped, several are a space."""
    return re.sub(r"[ ._-]{2,}", " ", re.sub(r"(?<=\w)[ ._-](?=\w)", "", letters))


def _readings(run: str) -> Iterator[bytes]:
    """Yields what a run may decode to: as hex if it has only hex digits, and as base64, standard or URL-safe."""
    if _HEX.fullmatch(run):
        yield bytes.fromhex(run)
    whole = run.replace("-", "+").replace("_", "/")
    whole = whole[: len(whole) - (1 if len(whole) % 4 == 1 else 0)]
    try:
        yield base64.b64decode(whole + "=" * (-len(whole) % 4))
    except (binascii.Error, ValueError):
        return


def _readable(data: bytes) -> str:
    """Returns the data as text if it is at least three words, mostly of letters; else an empty string."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    words = text.split()
    letters = sum(character.isalpha() or character == " " for character in text)
    return text if len(words) >= 3 and letters >= 0.7 * len(text) and text.replace("\n", " ").isprintable() else ""
