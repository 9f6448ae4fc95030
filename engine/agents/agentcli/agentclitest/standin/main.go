//go:build unix

// Command standin is the program of the stand-ins of package agentclitest.
package main

import "acescope/engine/agents/agentcli/agentclitest"

func main() { agentclitest.Main() }
