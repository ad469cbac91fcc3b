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

// LogFlags say how much is logged.
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

// levelOf is the level without a file.
func (f *LogFlags) levelOf() zapcore.Level {
	if f.verbose {
		return zapcore.DebugLevel
	}
	return zapcore.InfoLevel
}

// checkLevelEvery is how often the file with the level is read. It is polled: a mounted ConfigMap is exchanged by
// symbolic links, which is hard to watch.
const checkLevelEvery = 5 * time.Second

// Log sends structured logs to stderr, and follows the file with their level until the context ends.
func Log(ctx context.Context, f LogFlags) {
	level := uzap.NewAtomicLevelAt(f.levelOf())
	ctrl.SetLogger(zap.New(zap.UseDevMode(false), zap.Level(level)))
	if f.levelFile == "" {
		return
	}
	follower := &levelFollower{flags: f, level: level}
	follower.read()
	go follower.follow(ctx)
}

// levelFollower sets a level to what a file says.
type levelFollower struct {
	flags LogFlags
	level uzap.AtomicLevel
	// problem is the last one, which is logged once.
	problem string
}

func (l *levelFollower) follow(ctx context.Context) {
	ticker := time.NewTicker(checkLevelEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			l.read()
		}
	}
}

// read takes over the level of the file. A level that is not valid changes nothing.
func (l *levelFollower) read() {
	next, err := readLevel(l.flags.levelFile, l.flags.levelOf())
	if err != nil {
		if err.Error() != l.problem {
			l.problem = err.Error()
			ctrl.Log.Error(err, "The level of logs stays as it is", "level", l.level.String())
		}
		return
	}
	l.problem = ""
	if before := l.level.Level(); next != before {
		// One of the two is seen, whichever of the levels logs more.
		l.level.SetLevel(min(next, before))
		ctrl.Log.Info("The level of logs changes", "from", before.String(), "to", next.String())
		l.level.SetLevel(next)
	}
}

// readLevel returns the level that a file names, and the given one where there is no file or nothing in it.
func readLevel(path string, otherwise zapcore.Level) (zapcore.Level, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	if err != nil {
		return otherwise, fmt.Errorf("read level of logs: %w", err)
	}
	return parseLevel(strings.ToLower(strings.TrimSpace(string(data))), otherwise)
}

// maxVerbosity is the largest level of Kubernetes' libraries that shows more than those below it.
const maxVerbosity = 10

func parseLevel(text string, otherwise zapcore.Level) (zapcore.Level, error) {
	switch text {
	case "":
		return otherwise, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "debug":
		return zapcore.DebugLevel, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxVerbosity {
		return otherwise, fmt.Errorf("invalid level of logs %q: use error, info, debug, or a number from 1 to %d", text,
			maxVerbosity)
	}
	return zapcore.Level(-n), nil
}
