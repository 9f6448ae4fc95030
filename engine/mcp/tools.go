package mcp

import (
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"acescope/engine/run"
)

// hints are what a client may ask its user about.
func hints(title string, readOnly, destructive, openWorld bool) *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, IdempotentHint: readOnly, DestructiveHint: &destructive, OpenWorldHint: &openWorld}
}

func (s *Server) addTools() {
	add(s, &sdk.Tool{
		Name: "list_agent_blueprints",
		Description: "Lists what can be started: agents, which take a prompt, and deterministic programs, which take parameters that fit the JSON Schema " +
			"parameters_schema. A blueprint with an error cannot be started.",
		Annotations: hints("List blueprints", true, false, false),
	}, takes(), s.blueprints)
	add(s, &sdk.Tool{
		Name: "start_agent_session",
		Description: "Starts an agent or a deterministic program in a session of its own, on a runner that meets its demands. Give an agent a prompt and no parameters, a " +
			"deterministic program parameters ({} where it needs none) and no prompt. Answers with session_id and run_id, in mode sync with the result too: " +
			"status completed, failed or stopped, output, stdout, stderr, exit_code. Giving the call up does not stop the run: stop_agent_session does.",
		Annotations: hints("Start a session", false, true, true),
	}, startTakes(), s.start)
	add(s, &sdk.Tool{
		Name: "resume_agent_session",
		Description: "Sends a further prompt to an agent's session that was started before, on the machine and in the directory where it was. It answers as start_agent_session does. " +
			"A deterministic program cannot be resumed: start it again.",
		Annotations: hints("Resume a session", false, true, true),
	}, takes(must("session_id", id()), must("prompt", prompt("What the agent is to do now, in at most 100,000 characters.")),
		may("execution_mode", modes("execution_mode")), may("mode", modes("mode"))), s.resume)
	add(s, &sdk.Tool{
		Name: "get_agent_session_status",
		Description: "Tells how a run stands: pending (no runner has taken it yet), claimed, running, stopping, and at the end completed, failed or stopped. " +
			"It answers at once. Ask every few seconds at most.",
		Annotations: hints("Ask for the status", true, false, false),
	}, takes(must("session_id", id())), s.status)
	add(s, &sdk.Tool{
		Name: "get_agent_session_result",
		Description: "Gives the result of a run that has ended: output (JSON where the program wrote JSON, else text; an agent's last message), stdout, stderr, exit_code, " +
			"duration_seconds. Of one that has not ended it gives the status. Texts are cut to 50,000 characters together; message then says where the whole is.",
		Annotations: hints("Get the result", true, false, false),
	}, takes(must("session_id", id())), s.result)
	add(s, &sdk.Tool{
		Name:        "list_agent_sessions",
		Description: "Lists sessions that runs have started, each by its newest run: those that go on first, then the newest.",
		Annotations: hints("List sessions", true, false, false),
	}, takes(
		may("agent_name", text("Only those of this blueprint.")),
		may("status", oneOf("Only those with a run that stands so; they are listed by that run.", run.Pending, run.Claimed, run.Running, run.Stopping, run.Completed, run.Failed, run.Stopped)),
		may("parent_session_id", text("Only those that this session started.")),
		may("limit", count("How many, 50 unless this says otherwise.", maxListed)),
	), s.list)
	add(s, &sdk.Tool{
		Name: "stop_agent_session",
		Description: "Stops the newest run of a session: its program is asked to end and killed after five seconds, an agent's turn is interrupted, a run that waits for a runner " +
			"waits no longer. It answers at once with the status, which is stopping until the run has ended as stopped.",
		Annotations: hints("Stop a session", false, true, false),
	}, takes(must("session_id", id()), may("reason", text("Why, for whoever reads the history."))), s.stopRun)
}

func startTakes() *jsonschema.Schema {
	return takes(
		must("agent_name", text("The name of the blueprint, from list_agent_blueprints.")),
		may("prompt", prompt("What an agent is to do, in at most 100,000 characters. Only for blueprints of type agent.")),
		may("parameters", &jsonschema.Schema{Type: "object", Description: "The parameters of a deterministic program, as its parameters_schema says. Only for blueprints of type " +
			"deterministic, which always need them: {} is not the same as none."}),
		may("execution_mode", modes("execution_mode")),
		may("mode", modes("mode")),
		may("additional_demands", demands()),
		may("project_dir", text("The directory to work in, absolute. Without one it is the runner's.")),
	)
}
