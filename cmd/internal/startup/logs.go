// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// LogFlags configure the level of logs.
type LogFlags struct {
	verbose   bool
	levelFile string
}

// Add adds the flags.
func (f *LogFlags) Add(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every action")
	flags.StringVar(&f.levelFile, "log-level-file", "",
		"file with the level of logs: error, info, debug, or a number from 1 to 10 for more than debug; it is read "+
			"again when it changes, and takes precedence over --verbose while it is there and not empty")
}

// getDefaultLevel returns the level that is used without a file.
func (f *LogFlags) getDefaultLevel() zapcore.Level {
	if f.verbose {
		return zapcore.DebugLevel
	}
	return zapcore.InfoLevel
}

// levelCheckInterval is how often the file with the level is read. The file is polled, because a
// mounted ConfigMap is replaced with symbolic links, which is hard to watch.
const levelCheckInterval = 5 * time.Second

// ConfigureLogs configures structured logs on stderr. The level follows the file of the
// flags until the context ends.
func ConfigureLogs(ctx context.Context, f LogFlags) {
	level := uzap.NewAtomicLevelAt(f.getDefaultLevel())
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.Level(level)))
	if f.levelFile == "" {
		return
	}
	follower := &levelFollower{flags: f, level: level}
	follower.applyLevel()
	go follower.poll(ctx)
}

// levelFollower sets a level to the level in a file.
type levelFollower struct {
	flags LogFlags
	level uzap.AtomicLevel
	// problem is the last error. It is stored to log each error only once.
	problem string
}

// poll reads the file repeatedly until the context ends.
func (l *levelFollower) poll(ctx context.Context) {
	ticker := time.NewTicker(levelCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.applyLevel()
		}
	}
}

// applyLevel reads the file and sets the level. An invalid level changes nothing and is logged.
func (l *levelFollower) applyLevel() {
	next, err := readLevel(l.flags.levelFile, l.flags.getDefaultLevel())
	if err != nil {
		if err.Error() != l.problem {
			l.problem = err.Error()
			ctrl.Log.Error(err, "The level of logs stays as it is", "level", l.level.String())
		}
		return
	}
	l.problem = ""
	if previous := l.level.Level(); next != previous {
		// The message is logged at the more verbose of the two levels, so
		// that it is always visible.
		l.level.SetLevel(min(next, previous))
		ctrl.Log.Info("The level of logs changes", "from", previous.String(), "to", next.String())
		l.level.SetLevel(next)
	}
}

// readLevel returns the level that a file names; the fallback if the file is missing or empty.
func readLevel(path string, fallback zapcore.Level) (zapcore.Level, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fallback, nil
	}
	if err != nil {
		return fallback, fmt.Errorf("read level of logs: %w", err)
	}
	return parseLevel(strings.ToLower(strings.TrimSpace(string(data))), fallback)
}

// maxVerbosity is the highest log level that the libraries of Kubernetes use.
const maxVerbosity = 10

// parseLevel returns the level that a text names; the fallback if the text is empty. If the text
// is invalid, it returns the fallback and an error.
func parseLevel(text string, fallback zapcore.Level) (zapcore.Level, error) {
	switch text {
	case "":
		return fallback, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "debug":
		return zapcore.DebugLevel, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxVerbosity {
		return fallback, fmt.Errorf("invalid level of logs %q: use error, info, debug, or a number from 1 to %d", text,
			maxVerbosity)
	}
	return zapcore.Level(-n), nil
}
