// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

func TestExplainKnowsInterrupts(t *testing.T) {
	a := NewEnv("bellwether", genericiooptions.IOStreams{})
	if message, _ := a.explainError(errors.Join(errors.New("x"), context.Canceled)); message != "interrupted" {
		t.Errorf("an interrupt is explained as %q", message)
	}
}

// TestWhatARegistrySaidIsPrinted: a status does not contain the registry's message, and the user may see it.
func TestWhatARegistrySaidIsPrinted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "your quota is used up", http.StatusForbidden)
	}))
	defer server.Close()
	source := oci.Source{Image: strings.TrimPrefix(server.URL, "http://") + "/team/catalog:v1"}
	_, err := oci.NewClient(oci.Options{}).Resolve(t.Context(), source)
	var out bytes.Buffer
	NewEnv("bellwether", genericiooptions.IOStreams{Out: &out, ErrOut: &out}).Exit(err)
	for _, want := range []string{"Error: resolve " + source.Image + ": access denied", "\nCause: ",
		"your quota is used up"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

// TestUnreachableHubIsNamed: the server and the cause, without the path of the first request of the client library.
func TestUnreachableHubIsNamed(t *testing.T) {
	a := NewEnv("bellwether", genericiooptions.IOStreams{})
	for want, cause := range map[string]error{
		"cannot reach the hub at https://hub.example.com:6443: connection refused": errors.New("connection refused"),
		"cannot reach the hub at https://hub.example.com:6443: no answer in time":  context.DeadlineExceeded,
	} {
		err := fmt.Errorf("failed to get server groups: %w", &url.Error{Op: "Get",
			URL: "https://hub.example.com:6443/api?timeout=32s", Err: cause})
		if got, advice := a.explainError(err); got != want || advice == "" {
			t.Errorf("got %q (%s), want %q", got, advice, want)
		}
	}
}

// TestInterrupted: an interrupted command prints one word, and the objects that it could not remove.
func TestInterrupted(t *testing.T) {
	canceled := fmt.Errorf("list clusters: %w", context.Canceled)
	for name, tc := range map[string]struct {
		err      error
		cleansUp bool
		says     string
	}{
		"it ended well":                     {},
		"it was canceled":                   {err: canceled},
		"a library has its own words":       {err: errors.New("rate: Wait(n=1) would exceed context deadline")},
		"it has an exit code":               {err: &exit.CodeError{Code: 4, Text: "not ended"}},
		"it has removed what it made":       {err: canceled, cleansUp: true},
		"it says that it has been canceled": {err: exit.Hint(errors.New("interrupted"), "all is gone"), cleansUp: true},
		"it has left something": {err: exit.Hint(fmt.Errorf("silence a could not be deleted: %w", context.Canceled),
			"delete it"), cleansUp: true, says: "Error: silence a could not be deleted: context canceled\n" +
			"Hint:  delete it\n"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, complaints := genericiooptions.NewTestIOStreams()
			a := NewEnv("bellwether", streams)
			a.CleansUp.Store(tc.cleansUp)
			code := a.ReportInterrupt(tc.err)
			if got := complaints.String(); code != 130 || got != tc.says+"interrupted\n" || out.Len() > 0 {
				t.Errorf("it ends with %d and says %q and %q", code, out, got)
			}
		})
	}
}
