"""SECURITY: what in a text is no words but tells something: addresses, files that hold secrets, commands, marks.

Each expression begins with a literal or a small class and repeats only with bounds (T16).
"""

from __future__ import annotations

import re

from toolbridge.trust.audit_concepts import Mention, special
from toolbridge.trust.audit_rules import RULES

# Where things are sent: mail, a telephone, an account or a wallet.
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
# How a description of a tool begins: "Returns …", "Lists …".
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
    """The marks in a text (in lower case), as mentions of the concepts that they stand for."""
    return [mention for concept, pattern in _MARKS for mention in special(pattern.finditer(text), concept)]
