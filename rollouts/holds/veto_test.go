// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/rollouts/holds"
)

func TestParse(t *testing.T) {
	until := &metav1.Time{Time: time.Date(2026, 12, 24, 17, 0, 0, 0, time.UTC)}
	tests := map[string]struct {
		data map[string]string
		want v1alpha1.ClusterVeto
	}{
		"empty": {nil, v1alpha1.ClusterVeto{Reason: "no reason given"}},
		"all of it": {
			map[string]string{"reason": "black\nFriday", "until": "2026-12-24T18:00:00+01:00",
				"operators": "echo, ops/db\nzeta"},
			v1alpha1.ClusterVeto{Reason: "black Friday", Until: until, Operators: []string{"echo", "ops/db", "zeta"}},
		},
		"an end that is no time": {
			map[string]string{"reason": "audit", "until": "tomorrow"},
			v1alpha1.ClusterVeto{Reason: "audit (the key until is no RFC 3339 time: tomorrow)"},
		},
		"too many operators: all of them": {
			map[string]string{"reason": "audit", "operators": strings.Repeat("a ", 21)},
			v1alpha1.ClusterVeto{Reason: "audit"},
		},
		"a name that is too long: all of them": {
			map[string]string{"reason": "audit", "operators": "echo " + strings.Repeat("a", 128)},
			v1alpha1.ClusterVeto{Reason: "audit"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := holds.ParseVeto(test.data)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("veto (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&got, holds.DecodeVeto(holds.EncodeVeto(&got))); diff != "" {
				t.Errorf("as the hub reads it (-want +got):\n%s", diff)
			}
		})
	}
	if long := holds.ParseVeto(map[string]string{"reason": strings.Repeat("a",
		1000)}).Reason; len([]rune(long)) != 256 {
		t.Errorf("a reason of %d characters", len(long))
	}
}

// An agent is not trusted: any report is limited in length, and stays a veto.
func TestDecode(t *testing.T) {
	for name, text := range map[string]string{"not JSON": "x", "too long": `{"reason":"` + strings.Repeat("a", 9000) +
		`"}`, "another type": `{"reason":1}`} {
		got := holds.DecodeVeto(text)
		if got == nil || got.Reason != "the agent's report of the veto cannot be read" || got.Operators != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := holds.DecodeVeto(""); got != nil {
		t.Errorf("no veto: %+v", got)
	}
}

func TestCovers(t *testing.T) {
	echo := v1alpha1.OperatorReference{Namespace: "ops", Name: "echo"}
	for name, test := range map[string]struct {
		veto *v1alpha1.ClusterVeto
		want bool
	}{
		"none":              {nil, false},
		"all":               {&v1alpha1.ClusterVeto{}, true},
		"by name":           {&v1alpha1.ClusterVeto{Operators: []string{"echo"}}, true},
		"by both":           {&v1alpha1.ClusterVeto{Operators: []string{"db", "ops/echo"}}, true},
		"another namespace": {&v1alpha1.ClusterVeto{Operators: []string{"team/echo"}}, false},
	} {
		if got := holds.VetoCovers(test.veto, echo); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestReadOnly: an agent that may only read refuses everything, and no ConfigMap ends that.
func TestReadOnly(t *testing.T) {
	v := holds.DecodeVeto(holds.EncodeVeto(holds.ReadOnlyVeto()))
	if diff := cmp.Diff(holds.ReadOnlyVeto(), v); diff != "" {
		t.Errorf("as the hub reads it (-want +got):\n%s", diff)
	}
	if !holds.VetoCovers(v, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}) {
		t.Error("it does not cover an operator")
	}
	if text := holds.VetoMessage(v); !strings.Contains(text, "--read-only=false") || strings.Contains(text,
		"ConfigMap") {
		t.Errorf("it says %q", text)
	}
}
