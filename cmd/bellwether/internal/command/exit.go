// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/internal/interrupt"
)

// Exit prints an error as one sentence with a hint, and returns the exit code. The exit code is not 0 if
// the output could not be written.
func (a *Env) Exit(err error) int {
	code := a.reportError(err)
	writeErr := readWriteError(a.Streams.Out)
	if writeErr == nil || errors.Is(err, writeErr) { // no write error, or reportError has already printed it
		return code
	}
	return max(code, a.reportError(fmt.Errorf("write the output: %w", writeErr)))
}

// ReportInterrupt prints that an interrupt ended the command, and returns the exit code. Other errors of an interrupted
// command result from the interrupt and are not printed. The exception is a command that cleans up: its errors name
// the objects that it could not remove.
func (a *Env) ReportInterrupt(err error) int {
	a.progress.Load().Stop()
	if err != nil && a.CleansUp.Load() {
		if message, _ := a.explainError(err); message != interrupt.Word {
			a.reportError(err)
		}
	}
	if _, isTerminal := TerminalWidth(a.Streams.ErrOut); isTerminal {
		a.Warn("\n") // the terminal has shown ^C on the line of the cursor
	}
	a.Warn("%s\n", interrupt.Word)
	return interrupt.Status
}

// reportError prints an error, and returns the exit code for the error.
func (a *Env) reportError(err error) int {
	if err == nil {
		return exit.OK
	}
	var coded *exit.CodeError
	if errors.As(err, &coded) {
		if coded.Text != "" {
			a.Warn("%s\n", coded.Text)
		}
		return coded.Code
	}
	message, advice := a.explainError(err)
	a.Warn("Error: %s\n", message)
	if detail := oci.Detail(err); detail != "" {
		a.Warn("Cause: %s\n", detail)
	}
	if advice != "" {
		a.Warn("Hint:  %s\n", advice)
	}
	return exit.Error
}

// FormatSentence returns an error and its hint as one sentence, for a report that is incomplete because of the error.
func (a *Env) FormatSentence(err error) string {
	message, advice := a.explainError(err)
	if advice != "" {
		message += "; " + advice
	}
	return message
}

// formatServer returns the scheme and host of a URL; if the URL is invalid, it returns the URL unchanged.
func formatServer(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return address
	}
	return parsed.Scheme + "://" + parsed.Host
}

// describeFullDisk returns a message that the disk is full, with the name of the file that could not be written.
func describeFullDisk(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return "the disk is full: cannot write " + file.Path
	}
	return "the disk is full"
}

// explainError returns a message for an error of a library, and what the user can do about it.
func (a *Env) explainError(err error) (message, advice string) {
	// A full disk causes other errors, such as a failed removal of files, so it is reported first.
	if errors.Is(err, syscall.ENOSPC) {
		return describeFullDisk(err), "delete files there, or write to another disk; " +
			"TMPDIR names the folder for temporary files"
	}
	var hinted *exit.HintError
	if errors.As(err, &hinted) {
		return err.Error(), hinted.Hint
	}
	var address *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return interrupt.Word, ""
	// The text also detects errors of libraries that do not wrap the original error.
	case meta.IsNoMatchError(err) || strings.Contains(err.Error(), "no matches for kind"):
		return "this cluster is not a Bellwether hub: it does not serve the API bellwether.dev/v1alpha1",
			fmt.Sprintf("select the hub with --kubeconfig or --context, or install the hub on this cluster "+
				"with `%s install hub`", a.Self)
	case apierrors.IsForbidden(err):
		return err.Error(), hub.FormatDenialHint(err)
	case apierrors.IsUnauthorized(err):
		return "the hub does not accept your credentials", "log in again, or select another --context"
	case errors.As(err, &address):
		return fmt.Sprintf("cannot reach the hub at %s: %v", formatServer(address.URL), findCause(address)),
			"check --kubeconfig and --context, and that the hub is running"
	default:
		return err.Error(), ""
	}
}
