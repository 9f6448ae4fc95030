package cluster

import "time"

// Connection says whom the console talks to.
type Connection struct {
	State     ConnState
	Mode      string // embedded (this process hosts), attached (another one does), remote, or [ModeFile]
	Address   string // of a file its name
	Namespace string
	Since     time.Time
	Err       string // why the state is ConnLost, for the status line
}

// ModeFile is the mode of a console on histories from files: there is no server.
const ModeFile = "file"

// ConnState is the state of the connection to the server.
type ConnState string

// Health is the state of one source, which lasts until it changes.
type Health struct {
	Name  string
	OK    bool
	Text  string
	Since time.Time
}

const (
	ConnStarting ConnState = "starting"
	ConnReady    ConnState = "ready"
	ConnLost     ConnState = "lost"
)
