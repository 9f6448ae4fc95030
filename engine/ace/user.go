package ace

import (
	"cmp"
	"os"
	"os/user"
)

// User returns the user and the machine of this process as user@host, for [TaskInput.By]. Workflows must not
// call it.
func User() string {
	name := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"))
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return cmp.Or(name, "unknown") + "@" + host
}
