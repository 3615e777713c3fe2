#!/bin/sh
# The same work as `argocd-ocm-cmp generate`, done as a plugin of a few lines does it: find the files, indent each, and put a
# ManifestWork around them. Documents are told apart by their separators. It checks and orders nothing.
set -eu
folder=$1 cluster=$2 name=$3

cat <<END
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: $name
  namespace: $cluster
spec:
  workload:
    manifests:
END
# The hold space is empty until a document has begun: its first line that is neither empty nor a comment is where the list item begins.
find "$folder" -type f \( -name '*.yaml' -o -name '*.yml' -o -name '*.json' \) | while IFS= read -r file; do
  sed -e '/^---/{x;s/.*//;x;d;}' \
    -e '/^ *#/{s/^/      /;b' -e '}' \
    -e '/^ *$/b' \
    -e 'x;/^$/{s/^/begun/;x;s/^/    - /;b' -e '}' \
    -e 'x;s/^/      /' "$file"
done
