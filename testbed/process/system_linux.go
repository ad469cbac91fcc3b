// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// DiesWithParent tells whether children end when their parent is killed.
const DiesWithParent = true

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startTime is field 22 of /proc/PID/stat: clock ticks since boot. A process that has ended still has it until its
// parent waits for it.
func startTime(pid int) (started string, ended bool, err error) {
	fields, err := statFields(pid)
	if err != nil {
		return "", false, err
	}
	return fields[19], fields[0] == "Z", nil
}

// statFields returns the fields of /proc/PID/stat from the third on. The second one is the command, which may hold
// blanks.
func statFields(pid int) ([]string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 22 {
		return nil, fmt.Errorf("parse /proc/%d/stat: unexpected form", pid)
	}
	return fields, nil
}

// ResidentBytes returns the resident memory of a process.
func ResidentBytes(pid int) (int64, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	pages, err := strconv.ParseInt(fields[21], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
