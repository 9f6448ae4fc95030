#!/usr/bin/env bash
# Installs the agents that acescope runs (Claude Code in two versions, Codex, Gemini CLI, OpenCode) from npm below
# .cache/agents, and runs the scripts of cmd/acescope/testdata/agents with each of them, against a fake model server on
# this machine. Needs npm and a few minutes. An agent that cannot be installed is skipped.
#   docs/dev/agents.sh          all agents
#   docs/dev/agents.sh codex    one of them
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$PWD/.cache/agents

while read -r name package; do
	[ -d "$dir/$name/node_modules/.bin" ] ||
		npm install --no-audit --no-fund --loglevel error --prefix "$dir/$name" "$package" ||
		echo "agents.sh: $package is not installed; its tests are skipped" >&2
done <<'AGENTS'
claude-new @anthropic-ai/claude-code@2.1.330
claude-old @anthropic-ai/claude-code@2.1.197
codex @openai/codex@0.169.0
gemini @google/gemini-cli@0.61.0
opencode opencode-ai@1.18.33
AGENTS

go build -o "$dir/acescope-hook" ./cmd/acescope-hook
ACESCOPE_AGENTS=$dir go test -tags agents -count 1 -timeout 20m ./cmd/acescope -run "TestRealAgents/${1:-}" -v
