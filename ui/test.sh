#!/usr/bin/env bash
# Runs the tests of the UI extension: the types, pure functions, the extension in a real Chromium with each version of React that Argo CD
# used, and that deploy/deploy_ui.yaml is up to date. Needs Node.js 20 or newer with npm, chromium and chromedriver.
set -euo pipefail
cd "$(dirname "$0")"

step() { printf '\n=== %s (after %d s)\n' "$1" "$SECONDS"; }
for program in node npm chromium chromedriver; do
  command -v "$program" >/dev/null && continue
  echo "missing: $program (Debian has it in the package ${program/chromedriver/chromium-driver})"
  exit 1
done

step 'packages of the lock file'
npm ci --ignore-scripts

step 'format'
node_modules/.bin/prettier --check '*.mjs' src test

step 'types'
node_modules/.bin/tsc --project .

step 'deploy/deploy_ui.yaml is up to date'
node build.mjs --check

step 'unit tests and tests in Chromium'
node tests.mjs "$@"
