package server

import (
	"io"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// serverLog is the Temporal server's log: JSON lines of level warn and above in
// logs/server.log, three old files of 10 MB at most, nothing on the terminal.
type serverLog struct {
	log.Logger
	level zap.AtomicLevel
	file  *lumberjack.Logger
	fatal atomic.Pointer[string]
}

func openLog(dir string) *serverLog {
	l := &serverLog{
		level: zap.NewAtomicLevelAt(zap.WarnLevel),
		file: &lumberjack.Logger{
			Filename: filepath.Join(dir, logDir, logFile), MaxSize: 10, MaxBackups: 3,
		},
	}
	encoder := zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	// A log that cannot be written, as on a full disk, must not end up on the terminal.
	core := zapcore.NewCore(encoder, zapcore.AddSync(l.file), l.level)
	l.Logger = log.NewZapLogger(zap.New(core, zap.WithFatalHook(l), zap.ErrorOutput(zapcore.AddSync(io.Discard))))
	return l
}

// OnWrite is called after a fatal line was written. The server would end the process
// here, which is not its to end: only the goroutine goes, and the first such line is
// kept as the reason why the server does not work.
func (l *serverLog) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := entry.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			text += ": " + err.Error()
		}
	}
	l.fatal.CompareAndSwap(nil, &text)
	runtime.Goexit()
}

// fatalText is the first fatal line, "" if there was none.
func (l *serverLog) fatalText() string {
	if text := l.fatal.Load(); text != nil {
		return *text
	}
	return ""
}

// quiet drops what the services say about each other's absence while they stop.
func (l *serverLog) quiet() { l.level.SetLevel(zap.FatalLevel) }

func (l *serverLog) close() { l.file.Close() }

func (l *serverLog) path() string { return l.file.Filename }
