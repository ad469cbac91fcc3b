// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exit defines how a command ends: the exit codes, and errors with a hint how to correct them.
package exit

import (
	"fmt"
)

// Exit codes. The help of `bellwether rollout status` documents them.
const (
	OK            = 0
	Error         = 1
	Failed        = 2
	Aborted       = 3
	Timeout       = 4
	NeedsApproval = 5
)

// HintError is an error with a hint how to correct it.
type HintError struct {
	err  error
	Hint string
}

func (e *HintError) Error() string { return e.err.Error() }

func (e *HintError) Unwrap() error { return e.err }

// Hint adds a hint to an error.
func Hint(err error, text string) error { return &HintError{err: err, Hint: text} }

// Hintf returns a new error with a hint. text is the hint, and format with args is the message.
func Hintf(text, format string, args ...any) error {
	return Hint(fmt.Errorf(format, args...), text)
}

// CodeError ends the program with an exit code. It is a result of the command, such as that there are findings. Text
// is printed; it is empty if the command has already printed the result.
type CodeError struct {
	Code int
	Text string
}

func (e *CodeError) Error() string { return e.Text }
