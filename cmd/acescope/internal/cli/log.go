package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"

	"acescope/engine/temporal/server"
)

// OpenLog opens acescope's own log, which rotates at 10 MB. Nothing of it reaches the
// screen. A process that only looks at a cluster keeps none.
func OpenLog(dir string, keep bool) (*slog.Logger, func(), error) {
	if !keep {
		return slog.New(slog.DiscardHandler), func() {}, nil
	}
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, nil, fmt.Errorf("%w: %w; choose another with --data-dir", server.ErrDataDir, err)
	}
	out := &lumberjack.Logger{Filename: filepath.Join(logs, "acescope.log"), MaxSize: 10, MaxBackups: 3}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})).With("pid", os.Getpid())
	return log, func() { _ = out.Close() }, nil
}
