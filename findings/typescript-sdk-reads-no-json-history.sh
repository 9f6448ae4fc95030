#!/usr/bin/env bash
# A project with the usual four packages of Temporal's TypeScript SDK cannot read a history in JSON, and so cannot
# replay one that the CLI or the Web UI has exported. npm hoists the protobufjs that gRPC's loader wants and puts
# three copies of a newer one below the packages of the SDK; one of them builds the message types, another one
# checks them with instanceof. The message says nothing of packages: "type must be a Type". Whoever offers to
# replay TypeScript histories should check for it. A direct dependency on the newer version makes npm keep one copy.
#
# Needs Node.js with npm, and the npm registry. Installs in a temporary folder; starts no server.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @temporalio/client@1.24.0 @temporalio/worker@1.24.0 \
	@temporalio/workflow@1.24.0 @temporalio/activity@1.24.0 >/dev/null 2>&1
cat >read.js <<'JS'
const { historyFromJSON } = require(require.resolve('@temporalio/common/lib/proto-utils', {
  paths: [require.resolve('@temporalio/worker')],
}));
const started = {
  eventId: '1', eventTime: '2026-11-29T00:00:00Z', eventType: 'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  workflowExecutionStartedEventAttributes: { workflowType: { name: 'Order' }, taskQueue: { name: 'orders' } },
};
try {
  console.log(`events read: ${historyFromJSON({ events: [started] }).events.length}`);
} catch (e) {
  console.log(`${e.name}: ${e.message}`);
}
JS
copies() {
	find node_modules -path '*/protobufjs/package.json' -not -path '*/protobufjs/*/*' |
		while read -r f; do echo "  $(dirname "$f") $(node -p "require('./$f').version")"; done | sort
}
node --version
echo "@temporalio/worker $(node -p "require('@temporalio/worker/package.json').version")"
copies
usual=$(node read.js)
echo "as installed: $usual"
npm install --silent --no-audit --no-fund protobufjs@8.8.1 >/dev/null 2>&1
npm dedupe --silent --no-audit --no-fund >/dev/null 2>&1
copies
repaired=$(node read.js)
echo "with protobufjs 8.8.1 as a dependency: $repaired"
test "$usual" = "TypeError: type must be a Type"
test "$repaired" = "events read: 1"
