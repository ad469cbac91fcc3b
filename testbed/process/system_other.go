// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// DiesWithParent tells whether children end when their parent is killed.
const DiesWithParent = false

// attributes has no death signal to give on this system; leftovers of a killed run are ended by the next one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// startTime is what ps tells, to the second. A process that has ended still has it until its parent waits for it.
func startTime(pid int) (started string, ended bool, err error) {
	started, err = ps(pid, "lstart=")
	if err != nil {
		return "", false, err
	}
	state, err := ps(pid, "stat=")
	return started, strings.HasPrefix(state, "Z"), err
}

// ResidentBytes returns the resident memory of a process.
func ResidentBytes(pid int) (int64, error) {
	text, err := ps(pid, "rss=")
	if err != nil {
		return 0, err
	}
	kib, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse memory: %w", err)
	}
	return kib * 1024, nil
}

func ps(pid int, column string) (string, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", column, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("ask ps: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
