// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestEmit has an Event of a failure whose note is longer than the API permits.
func TestEmit(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	for _, note := range []string{"short", strings.Repeat("x", maxNote), strings.Repeat("x", 2000),
		"x" + strings.Repeat("é", 2000)} {
		Emit(recorder, &v1alpha1.FleetCluster{}, v1alpha1.ReasonFailed, "Reconcile", "%s", note)
		got, isWarning := strings.CutPrefix(<-recorder.Events, corev1.EventTypeWarning+" Failed ")
		if !isWarning || len(got) > maxNote || !utf8.ValidString(got) || len(note) <= maxNote && got != note {
			t.Errorf("event %.40q with a note of %d bytes, want a warning of at most %d", got, len(got), maxNote)
		}
	}
}

// TestEventsAreEmittedHere keeps controllers and agents from choosing the type of an Event by themselves.
func TestEventsAreEmittedHere(t *testing.T) {
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(filepath.ToSlash(path), "../kit/") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, forbidden := range []string{".Eventf(", "corev1.EventType"} {
				if strings.Contains(string(text), forbidden) {
					t.Errorf("%s has %s: use kit.Emit, which takes the type from the reason", path, forbidden)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
