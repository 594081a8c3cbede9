#!/bin/sh
# Writes sluice_trainer/proto from the contracts. Run by `make trainer-stubs`.
set -eu
cd "$(dirname "$0")"
out=sluice_trainer/proto
find "$out" -name '*_pb2.py*' -delete
"${PYTHON:-python3}" -m grpc_tools.protoc -I ../../schemas --python_out="$out" --pyi_out="$out" ../../schemas/sluice/v1/*.proto
# protoc names modules by the path of their .proto file, from the top of sys.path; ours
# live in this package.
mv "$out"/sluice/v1/* "$out"/
rm -r "$out"/sluice
sed -i 's/^from sluice\.v1 import/from sluice_trainer.proto import/' "$out"/*_pb2.py "$out"/*_pb2.pyi
# The code itself works with every protobuf from 4.22 on; the check in it refuses all but
# the newest, and people install this package beside others.
sed -i -e '/runtime_version as _runtime_version/d' -e '/^_runtime_version\.Validate/,/^)/d' "$out"/*_pb2.py
