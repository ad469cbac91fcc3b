// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exit says how a command ends: the exit codes, and errors that say
// what to do about them.
package exit

import (
	"fmt"
)

// Exit codes. `bellwether rollout status` documents them to its users.
const (
	OK            = 0
	Error         = 1
	Failed        = 2
	Aborted       = 3
	Timeout       = 4
	NeedsApproval = 5
)

// HintError is an error with what to do about it.
type HintError struct {
	err  error
	Hint string
}

func (e *HintError) Error() string { return e.err.Error() }

func (e *HintError) Unwrap() error { return e.err }

// Hint adds what to do to an error.
func Hint(err error, text string) error { return &HintError{err: err, Hint: text} }

// Hintf is an error of one sentence and what to do.
func Hintf(text, format string, args ...any) error {
	return Hint(fmt.Errorf(format, args...), text)
}

// CodeError ends the program with an exit code of its own: an answer rather
// than an error. Its text is empty where all was said already.
type CodeError struct {
	Code int
	Text string
}

func (e *CodeError) Error() string { return e.Text }
