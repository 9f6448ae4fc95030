package server

import (
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
)

// serverLog is the Temporal server's log: JSON lines of level warn and above in logs/server.log, with at most
// three old files of 10 MB, and nothing on the terminal. It detects lines after which the server cannot
// serve: fatal lines, and lines about a damaged database.
type serverLog struct {
	log.Logger
	level  zap.AtomicLevel
	file   *lumberjack.Logger
	broken chan struct{} // closed by the first such line
	disk   atomic.Value  // text of the last error of the disk since the server has answered

	mu     sync.Mutex
	reason string // text of that line
}

func openLog(dir string) *serverLog {
	l := &serverLog{
		level: zap.NewAtomicLevelAt(zap.WarnLevel),
		file: &lumberjack.Logger{
			Filename: filepath.Join(dir, logDir, logFile), MaxSize: 10, MaxBackups: 3,
		},
		broken: make(chan struct{}),
	}
	l.disk.Store("")
	encoder := zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	// Errors writing the log, as on a full disk, must not appear on the terminal.
	core := damageWatch{zapcore.NewCore(encoder, zapcore.AddSync(l.file), l.level), l}
	l.Logger = log.NewZapLogger(zap.New(core, zap.WithFatalHook(l),
		zap.ErrorOutput(zapcore.AddSync(io.Discard))))
	return l
}

// damageWatch is a log core that reports damage of the database, and keeps errors of its disk.
type damageWatch struct {
	zapcore.Core
	log *serverLog
}

// With implements [zapcore.Core].
func (w damageWatch) With(fields []zapcore.Field) zapcore.Core {
	return damageWatch{w.Core.With(fields), w.log}
}

// Check implements [zapcore.Core].
func (w damageWatch) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if w.Enabled(e.Level) {
		return c.AddCore(e, w)
	}
	return c
}

// Write implements [zapcore.Core].
func (w damageWatch) Write(e zapcore.Entry, fields []zapcore.Field) error {
	switch text := errorText(fields); {
	case containsAny(text, damageTexts):
		w.log.report(text)
	case containsAny(text, diskTexts):
		w.log.disk.Store(text)
	}
	return w.Core.Write(e, fields)
}

// OnWrite is called after a fatal line. Instead of ending the process, as the server would, it
// ends only the goroutine and reports the server as broken.
func (l *serverLog) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := entry.Message
	if err := errorText(fields); err != "" {
		text += ": " + err
	}
	l.report(text)
	runtime.Goexit()
}

func errorText(fields []zapcore.Field) string {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			return err.Error()
		}
	}
	return ""
}

// report keeps the first reason why the server cannot serve.
func (l *serverLog) report(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reason == "" {
		l.reason = text
		close(l.broken)
	}
}

// why returns the reason why the server cannot serve, or "".
func (l *serverLog) why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// quiet drops the errors that services log about each other while they stop.
func (l *serverLog) quiet() { l.level.SetLevel(zap.FatalLevel) }

func (l *serverLog) path() string { return l.file.Filename }
