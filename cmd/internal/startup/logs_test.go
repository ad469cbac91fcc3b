// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"os"
	"path/filepath"
	"testing"

	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestLevelFollowsTheFile changes the file as a kubelet does with a ConfigMap: the name leads to another folder.
func TestLevelFollowsTheFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link := filepath.Join(folder, "data")
	l := &levelFollower{flags: LogFlags{levelFile: filepath.Join(link, "level")},
		level: uzap.NewAtomicLevelAt(zapcore.InfoLevel)}
	for i, step := range []struct {
		content string
		want    zapcore.Level
	}{
		{"", zapcore.InfoLevel}, {"debug\n", zapcore.DebugLevel}, {"Error", zapcore.ErrorLevel}, {"4",
			zapcore.Level(-4)},
		{"loud", zapcore.Level(-4)}, {"11", zapcore.Level(-4)}, {"0", zapcore.Level(-4)}, {" info ", zapcore.InfoLevel},
		{"debug", zapcore.DebugLevel}, {"", zapcore.InfoLevel},
	} {
		generation := filepath.Join(folder, string(rune('a'+i)))
		if err := os.Mkdir(generation, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(generation, "level"), []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(folder, "next")
		if err := os.Symlink(generation, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, link); err != nil {
			t.Fatal(err)
		}
		l.applyLevel()
		if got := l.level.Level(); got != step.want {
			t.Errorf("after %q the level is %s, want %s", step.content, got, step.want)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	l.flags.verbose = true
	if l.applyLevel(); l.level.Level() != zapcore.DebugLevel {
		t.Errorf("without a file the level is %s, want that of --verbose", l.level)
	}
}
