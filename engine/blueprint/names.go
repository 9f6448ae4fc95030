package blueprint

// Files of a blueprint, in its directory.
const (
	AgentFile   = "agent.json"
	ParamsFile  = "agent.parameters.json"
	PromptFile  = "agent.system-prompt.md"
	CommandFile = "agent.command.sh"
	ServersFile = "agent.mcp.json"
)

// Bounds.
const (
	MaxFile        = 256 << 10        // bytes of one file
	MaxPrompt      = 100_000          // bytes of a system prompt
	MaxTimeout     = 7 * 24 * 60 * 60 // seconds
	MaxBlueprints  = 1_000            // directories of one library directory
	MaxProblems    = 20               // of one blueprint
	MaxViolations  = 10               // of parameters
	maxDescription = 1_000            // bytes
	maxParts       = 5_000            // schemas within a schema
	maxDepth       = 100              // of JSON
	maxNumber      = 400              // bytes of a number, and its largest exponent
	maxArg         = 128<<10 - 1      // bytes of one argument or variable, as Linux has it
	maxList        = 64               // entries of a list in agent.json
)

// Placeholders in a command. The executor puts paths in their place.
const (
	DirPlaceholder  = "{blueprint_dir}"
	FilePlaceholder = "{parameters_file}"
)
