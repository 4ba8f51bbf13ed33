"""Makes golden.json: the templates of this folder, written for these tests in
the manner of model families, rendered by Python's Jinja for a few
conversations. Run here: python3 make.py > golden.json (jinja2 3.1.6).

argument_text: the template pastes the arguments of calls as text.
"""
import glob
import json
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
source = open(os.path.join(here, "../../jinja/testdata/make.py")).read()
exec(source[:source.index("out = []")])

tools = [
    {"type": "function", "function": {"name": "weather", "description": "The weather <now> & later", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}},
]
system = {"role": "system", "content": "Be kind."}
user = {"role": "user", "content": " Hello <there> "}
answer = {"role": "assistant", "content": "Hi!"}
thought = {"role": "assistant", "content": "Hi!", "reasoning_content": "A greeting.", "thinking": "A greeting."}
more = {"role": "user", "content": "And?"}


def call(text):
    args = {"zone": "Köln <x>", "days": 2, "flag": True, "none": None, "half": 0.5, "list": [1, "a"]}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "a1b2c3d4e", "type": "function", "function": {
            "name": "weather", "arguments": json.dumps(args, ensure_ascii=False) if text else args}}]},
        {"role": "tool", "content": "{\"sky\": \"blue\"}", "name": "weather", "tool_call_id": "a1b2c3d4e"},
    ]


def scenarios(text):
    yield "user", dict(messages=[user])
    yield "system", dict(messages=[system, user])
    yield "turns", dict(messages=[user, answer, more])
    yield "closed", dict(messages=[user, answer], add_generation_prompt=False)
    yield "thought", dict(messages=[user, thought, more])
    yield "think", dict(messages=[user], enable_thinking=True, thinking=True)
    yield "no think", dict(messages=[user], enable_thinking=False, thinking=False)
    yield "tools", dict(messages=[system, user], tools=tools)
    yield "call", dict(messages=[user] + call(text), tools=tools)
    yield "call and on", dict(messages=[user] + call(text) + [answer, more], tools=tools)


out = []
for path in sorted(glob.glob(os.path.join(here, "*.jinja"))):
    name = os.path.basename(path)[:-6]
    src = open(path).read()
    text = name == "deepseek"
    for scene, variables in scenarios(text):
        v = dict(bos_token="<BOS>", eos_token="<EOS>", add_generation_prompt=True, tools=None)
        v.update(variables)
        entry = dict(template=name, scene=scene, vars=variables)
        try:
            entry["want"] = env.from_string(src).render(**v)
        except Raised as e:
            entry["raised"] = str(e)
        out.append(entry)
json.dump(out, sys.stdout, ensure_ascii=False, indent=0)
print()
