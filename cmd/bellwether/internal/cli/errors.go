// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Exit codes. `bellwether rollout status` documents them to its users.
const (
	exitOK            = 0
	exitError         = 1
	exitFailed        = 2
	exitAborted       = 3
	exitTimeout       = 4
	exitNeedsApproval = 5
)

// hintError is an error with what to do about it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// hint adds what to do to an error.
func hint(err error, text string) error { return &hintError{err: err, hint: text} }

// hintf is an error of one sentence and what to do.
func hintf(text, format string, args ...any) error {
	return hint(fmt.Errorf(format, args...), text)
}

// codeError ends the program with an exit code of its own: an answer rather
// than an error. Its text is empty where all was said already.
type codeError struct {
	code int
	text string
}

func (e *codeError) Error() string { return e.text }

// exit prints an error as one sentence with a hint and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exitOK
	}
	var coded *codeError
	if errors.As(err, &coded) {
		if coded.text != "" {
			a.warn("%s\n", coded.text)
		}
		return coded.code
	}
	message, advice := a.explain(err)
	a.warn("Error: %s\n", message)
	if advice != "" {
		a.warn("Hint:  %s\n", advice)
	}
	return exitError
}

// explain turns what libraries say into words that help.
func (a *app) explain(err error) (message, advice string) {
	var hinted *hintError
	if errors.As(err, &hinted) {
		return err.Error(), hinted.hint
	}
	var address *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted", ""
	case meta.IsNoMatchError(err) || strings.Contains(err.Error(), "no matches for kind"):
		return "this cluster is no Bellwether hub: it does not serve bellwether.dev/v1alpha1",
			fmt.Sprintf("choose the hub with --kubeconfig or --context, or make it one with `%s install hub`", a.self)
	case apierrors.IsForbidden(err):
		return err.Error(), "ask for a role that allows it: bellwether-view, bellwether-operate or bellwether-approve"
	case apierrors.IsUnauthorized(err):
		return "the hub does not accept your credentials", "log in again, or choose another --context"
	case errors.As(err, &address):
		return fmt.Sprintf("cannot reach the hub: %v", address),
			"check --kubeconfig and --context, and that the hub is up"
	default:
		return err.Error(), ""
	}
}
