// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// LocalWithClock builds a program of this repository whose clock is off, and puts it at path. Its time.Now differs from
// the system's by the shift, in the program and in every library; timers and measured durations are right. It is
// otherwise the same program: nothing in its source knows of the shift.
//
// The first build of a Go version compiles everything anew, since everything depends on package time.
func LocalWithClock(ctx context.Context, out io.Writer, path, name string, shift time.Duration) error {
	p, ok := programs[name]
	if !ok {
		return fmt.Errorf("find program %q: %w", name, ErrUnknown)
	}
	root, err := Root()
	if err != nil {
		return err
	}
	linked, unlock, err := lockPrograms(ctx, out, root, "clock")
	if err != nil {
		return err
	}
	defer unlock()
	say(out, "building %s with a clock that is off by %s ...\n", name, shift)
	source := goModule{dir: filepath.Join(root, p.module)}
	overlay, err := source.overlayClock(ctx, linked)
	if err != nil {
		return fmt.Errorf("change the clock of %s: %w", name, err)
	}
	program := filepath.Join(linked, fmt.Sprintf("%s-clock%+d", name, int64(shift/time.Second)))
	if err := source.build(ctx, program, []string{p.pkg}, "-overlay", overlay, "-ldflags",
		ldflagsStrip+" -X time."+shiftVariable+"="+strconv.FormatInt(int64(shift/time.Second), 10)); err != nil {
		return fmt.Errorf("build %s with another clock: %w", name, err)
	}
	return linkOrCopy(program, path)
}

// shiftVariable is added to package time. The linker sets it, in seconds.
const shiftVariable = "testbedShift"

const (
	// readClock is the statement by which time.Now reads the clock.
	readClock = "\tsec, nsec, mono := runtimeNow()\n"
	// shifted is what is added to the file.
	shifted = `
// ` + shiftVariable + ` is how far the clock is off, in seconds.
var ` + shiftVariable + ` string

var ` + shiftVariable + `Seconds = func() int64 {
	if ` + shiftVariable + ` == "" {
		return 0
	}
	seconds, err := atoi(` + shiftVariable + `)
	if err != nil {
		panic("time: " + ` + shiftVariable + ` + " is no number of seconds")
	}
	return int64(seconds)
}()
`
)

// errOtherClock says that the standard library has to be changed in another way.
var errOtherClock = errors.New("time.Now of this version of Go does not read the clock as expected")

// shiftClock returns the source of package time with a clock that can be off.
func shiftClock(source string) (string, error) {
	if n := strings.Count(source, readClock); n != 1 {
		return "", fmt.Errorf("find %q: it is there %d times: %w", strings.TrimSpace(readClock), n, errOtherClock)
	}
	return strings.Replace(source, readClock, readClock+"\tsec += "+shiftVariable+"Seconds\n", 1) + shifted, nil
}

// overlayClock writes a clock that can be off into a folder, and returns the file that has the go command use it.
func (m goModule) overlayClock(ctx context.Context, folder string) (string, error) {
	goroot, err := m.run(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(goroot), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("read package time: %w", err)
	}
	text, err := shiftClock(string(source))
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(folder, "time.go.txt"), filepath.Join(folder, "overlay.json")
	table, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	for path, content := range map[string]string{replacement: text, overlay: string(table)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write overlay: %w", err)
		}
	}
	return overlay, nil
}
