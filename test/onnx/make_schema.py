"""Writes src/onnx/schema.def: the operators of ONNX (the default domain), each with the opset that brought it and its
attributes with the opsets that have them (a<7: before 7; a>12: from 12 on), from the onnx package's own schemas.

    python make_schema.py > src/onnx/schema.def
"""
import collections
import textwrap

from onnx import defs

ops = collections.defaultdict(list)
for schema in defs.get_all_schemas_with_history():
    if schema.domain == "":
        ops[schema.name].append(schema)

print("// Written by test/onnx/make_schema.py.")
for name in sorted(ops):
    versions = sorted(ops[name], key=lambda s: s.since_version)
    spans = {}
    for i, schema in enumerate(versions):
        end = versions[i + 1].since_version if i + 1 < len(versions) else 0
        for attribute in schema.attributes:
            first, _ = spans.get(attribute, (schema.since_version, 0))
            spans[attribute] = (first, end)
    start = versions[0].since_version
    words = (a + (f">{first}" if first > start else "") + (f"<{end}" if end else "")
             for a, (first, end) in sorted(spans.items()))
    parts = textwrap.wrap(" ".join(words), 90) or [""]
    print(f'{{"{name}", {start}, ' + ' "\n     '.join(f'"{p}' for p in parts) + '"},')
