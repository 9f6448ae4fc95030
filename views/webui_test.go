package views

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/sources/runs"
	"acescope/theme"
	"acescope/views/console"
)

// webScreen is a screen with a Web UI that opens in a browser, or not, or fails.
func webScreen(
	t *testing.T, s *snapshot, styles theme.Styles, width, height int, opened bool, err error,
) (*screen, *string) {
	st, asked := newStore(s), new(string)
	web := func(_ context.Context, of runs.ID) (string, bool, error) {
		*asked = fmt.Sprint(of)
		return "http://127.0.0.1:44993/?token=2SRZL53OXO2ICV7ABGJX2TA54X", opened, err
	}
	return newScreenOf(t, st, console.Options{Controls: st, Actions: st.actions(), Web: web,
		Location: time.UTC}, styles,
		width, height), asked
}

// Without a browser, the link is shown and copied.
func TestWebLinkScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			sc, asked := webScreen(t, full(6), theme.New(true, false), size[0], size[1], false, nil)
			sc.run(sc.press("W"))
			if *asked != "{ace/q-00006 run-q-00006}" {
				t.Errorf("asked for %s", *asked)
			}
			golden.RequireEqual(t, sc.drawn())
		})
	}
}

func TestWebKey(t *testing.T) {
	sc, _ := webScreen(t, full(6), plainLook, 80, 24, true, nil)
	sc.run(sc.press("W"))
	sc.has("opened q-00006 in the browser")
	sc, _ = webScreen(t, full(6), plainLook, 80, 24, false, errors.New("no port"))
	sc.run(sc.press("W"))
	sc.has("open the Web UI: no port")
	empty := full(6)
	empty.Runs.Rows = nil
	sc, asked := webScreen(t, empty, plainLook, 80, 24, true, nil)
	sc.run(sc.press("W"))
	sc.has("opened the list of runs in the browser")
	if *asked != "{ }" {
		t.Errorf("asked for %s", *asked)
	}
}
