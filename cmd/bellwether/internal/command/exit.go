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

// Exit prints an error as one sentence with a hint and returns the exit code. It is not
// that of a success if the output could not be written.
func (a *Env) Exit(err error) int {
	code := a.report(err)
	failed := lost(a.Streams.Out)
	if failed == nil || errors.Is(err, failed) {
		return code
	}
	return max(code, a.report(fmt.Errorf("write the output: %w", failed)))
}

// Interrupted says in one word that an interrupt ended the command, and returns the exit code. Whatever the command
// returns then follows from the interrupt, but where it cleans up: what it could not remove is said before.
func (a *Env) Interrupted(err error) int {
	a.progress.Load().Stop()
	if err != nil && a.CleansUp.Load() {
		if message, _ := a.explain(err); message != interrupt.Word {
			a.report(err)
		}
	}
	if _, isTerminal := TerminalWidth(a.Streams.ErrOut); isTerminal {
		a.Warn("\n") // the terminal has shown ^C on the line of the cursor
	}
	a.Warn("%s\n", interrupt.Word)
	return interrupt.Status
}

// report prints an error, and returns the exit code for it.
func (a *Env) report(err error) int {
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
	message, advice := a.explain(err)
	a.Warn("Error: %s\n", message)
	if detail := oci.Detail(err); detail != "" {
		a.Warn("Cause: %s\n", detail)
	}
	if advice != "" {
		a.Warn("Hint:  %s\n", advice)
	}
	return exit.Error
}

// Sentence is an error with what to do about it in one sentence, for a report that is
// not complete because of it.
func (a *Env) Sentence(err error) string {
	message, advice := a.explain(err)
	if advice != "" {
		message += "; " + advice
	}
	return message
}

// server is the part of a URL that names a server.
func server(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return address
	}
	return parsed.Scheme + "://" + parsed.Host
}

// diskFull says in one line which file did not fit.
func diskFull(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return "the disk is full: cannot write " + file.Path
	}
	return "the disk is full"
}

// explain turns what libraries say into words that help.
func (a *Env) explain(err error) (message, advice string) {
	// Whatever else went wrong, such as the removal of what was written, follows from it.
	if errors.Is(err, syscall.ENOSPC) {
		return diskFull(err), "delete files there, or write to another disk; " +
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
	case meta.IsNoMatchError(err) || strings.Contains(err.Error(), "no matches for kind"):
		return "this cluster is not a Bellwether hub: it does not serve the API bellwether.dev/v1alpha1",
			fmt.Sprintf("select the hub with --kubeconfig or --context, or install the hub on this cluster "+
				"with `%s install hub`", a.Self)
	case apierrors.IsForbidden(err):
		return err.Error(), hub.AdviceOnDenial(err)
	case apierrors.IsUnauthorized(err):
		return "the hub does not accept your credentials", "log in again, or select another --context"
	case errors.As(err, &address):
		return fmt.Sprintf("cannot reach the hub at %s: %v", server(address.URL), cause(address)),
			"check --kubeconfig and --context, and that the hub is running"
	default:
		return err.Error(), ""
	}
}
