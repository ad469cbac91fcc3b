// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/prometheus"
	"github.com/bellwether-dev/bellwether/alerts/slo/ruleset"
)

// TestGroups reads answers of a real Prometheus 3.
func TestGroups(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []ruleset.Group
	}{
		"as it started": {"waiting.json", []ruleset.Group{
			{Name: "bellwether-absence", File: "/rules/bellwether-slo.rules.yaml", Rules: 1, Waiting: 1},
			{Name: "bellwether-sli-own-echo", File: "/rules/bellwether-slo-echo.rules.yaml", Hash: "6106555dcfd7",
				Operator: types.NamespacedName{Namespace: "fleet", Name: "echo"}, Rules: 3},
		}},
		"with a rule that fails": {"failing.json", []ruleset.Group{
			{Name: "bellwether-sli-own-echo", File: "/rules/bellwether-slo-echo.rules.yaml", Hash: "6106555dcfd7",
				Operator: types.NamespacedName{Namespace: "fleet", Name: "echo"}, Rules: 4,
				Error: "bellwether:sli_bad:bool: found duplicate series for the match group {} on the right " +
					"hand-side of the operation: " +
					`[{__name__="a", x="1"}, {__name__="a", x="2"}];many-to-many matching not allowed: matching labels must be unique on one side`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", test.file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := ask(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFirstErrorIsTold keeps the error that others may follow from.
func TestFirstErrorIsTold(t *testing.T) {
	got := toGroup(promv1.RuleGroup{Name: "g", Rules: promv1.Rules{
		promv1.RecordingRule{Name: "a", Health: promv1.RuleHealthGood},
		promv1.RecordingRule{Name: "b", Health: promv1.RuleHealthBad, LastError: "first"},
		promv1.AlertingRule{Name: "c", Health: promv1.RuleHealthBad, LastError: "second"},
		promv1.AlertingRule{Name: "d", Health: promv1.RuleHealthUnknown},
	}})
	if diff := cmp.Diff(ruleset.Group{Name: "g", Rules: 4, Waiting: 1, Error: "b: first"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTroubleIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a login": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"client error: 401"},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"another API": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
			"bad_response"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, test.answer)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "the rules of Prometheus at http://hub:xxxxx@") {
				t.Errorf("%v, want %q in it", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
}

// ask queries a Prometheus with a password in its URL.
func ask(t *testing.T, answer http.HandlerFunc) ([]ruleset.Group, error) {
	t.Helper()
	s := httptest.NewServer(answer)
	defer s.Close()
	e, err := newEvaluator(prometheus.Endpoint{URL: strings.Replace(s.URL, "//", "//hub:secret@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	return e.Groups(t.Context())
}

func TestEndpoint(t *testing.T) {
	if e, err := newEvaluator(prometheus.Endpoint{}); e != nil || err != nil {
		t.Errorf("%v, %v", e, err)
	}
	for _, bad := range []string{"prometheus:9090", "ftp://prometheus", "http://", "::"} {
		if _, err := newEvaluator(prometheus.Endpoint{URL: bad}); err == nil ||
			!strings.Contains(err.Error(), "is not a URL such as http://") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
