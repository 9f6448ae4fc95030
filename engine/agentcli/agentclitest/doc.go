// Package agentclitest is a stand-in for the agent CLIs (claude, codex, gemini, opencode), for
// tests: the test's own binary, started again under their names, that speaks their streams
// and behaves as they do, with the pitfalls. It imports the standard library only; only
// tests may import it.
//
// A package that uses it calls [Main] first in its TestMain, makes an [Agent] with [New], and
// runs [Agent.Binary] in the CLI's place:
//
//	func TestMain(m *testing.M) {
//		agentclitest.Main()
//		os.Exit(m.Run())
//	}
//
// What the agent does is said by the instruction: without more it answers "reply N to: TEXT",
// where N is the number of the turn in the session as the agent knows it. After SCENARIO: come
// steps, separated by semicolons, which are run in their order (see steps.go):
//
//	say TEXT            a text
//	think TEXT          thinking
//	tools               a text, a Bash call with its result, a text
//	parallel            two Bash calls in one message
//	bash COMMAND        a call of Bash, which is not run: its output is the command after echo
//	badtool             a call of Bash that fails
//	denied              a call of Bash that is denied
//	tool NAME JSON      a call of any tool; one named mcp__SERVER__TOOL goes to the host
//	subagent            a call of Agent, with what the subagent says and does
//	slow N MS           a text in N parts (default 5), MS milliseconds apart (default 10)
//	big N KB            N texts (default 100) of KB kilobytes (default 10)
//	longline MB         a line of that many megabytes (default 50)
//	garbage             lines that are no JSON
//	unknown             events of types that nobody knows
//	noise KB            as much on standard error (default 256)
//	gate NAME           waits until [Agent.Open] opens the gate
//	children            starts children that stay: one in its group, one in another
//	hang                does nothing any more
//	ignoreterm          does nothing any more, and ignores SIGTERM
//	secret              says secrets of all shapes
//	env NAME            says what the variable holds
//	kill                ends itself with SIGKILL
//	partial             writes half a line and ends without a result, exit code 0
//	noresult CODE       ends without a result
//	tworesults          two results
//	exit CODE           a result that is fine, but another exit code
//	error               an error result, and exit code 0
//	notloggedin, tooold, overloaded, ratelimit, apierror, servererror, refusal, maxturns,
//	budget, maxtokens, usage    fail as the CLI does
//
// Everything done is in the journal ([Agent.Journal]): each start, each turn, each call of the
// model's API, each tool, so that a test can tell that nothing was done twice.
//
// Of Claude Code it has: turns over standard input, the control protocol (initialize,
// can_use_tool, mcp_message, interrupt, set_permission_mode, set_model, end_session),
// transcripts under CLAUDE_CONFIG_DIR, --session-id that is refused once its transcript is
// there, --resume that takes no lock, message uuids that are swallowed when they come again,
// costs that are summed up over the session: from the cost-state on that the last process wrote
// which was not killed.
package agentclitest
