"""Makes golden.json: what Python's Jinja says to the templates of cases.txt.

The environment is the one in which transformers renders chat templates:
trim_blocks, lstrip_blocks, loop controls, a generation tag, and a tojson that
escapes nothing. Run: python3 make.py < cases.txt > golden.json (jinja2 3.1.6).

cases.txt holds cases with a line "===" between them: a line of JSON with the
variables, then the template.
"""
import json
import sys
from datetime import datetime

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_text")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda f: datetime(2026, 3, 7, 9, 5, 2).strftime(f)

out = []
for case in sys.stdin.read().split("\n===\n"):
    head, _, source = case.partition("\n")
    entry = {"vars": json.loads(head), "template": source}
    try:
        entry["want"] = env.from_string(source).render(**entry["vars"])
    except Raised as e:
        entry["raised"] = str(e)
    except Exception as e:
        entry["error"] = f"{type(e).__name__}: {e}"
    out.append(entry)
json.dump(out, sys.stdout, ensure_ascii=False, indent=0)
print()
