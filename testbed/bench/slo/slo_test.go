// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/testbed/bench/slo/fleet"
)

func TestPeersHaveRulesForEveryObjective(t *testing.T) {
	for name, tc := range map[string]struct {
		peer        string
		perOperator int
	}{
		"sloth": {sloth, 17 * 11},
		// Three for SLIs that are time or of one metric, and for two metrics of requests two of each; eleven for
		// windows and alerts, of which one metric needs one less.
		"pyrra": {pyrra, 7*14 + 3*15 + 13},
	} {
		t.Run(name, func(t *testing.T) {
			for _, operators := range []int{1, Operators} {
				groups, err := peerRules(tc.peer, operators)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.perOperator*operators, side{groups: groups}.rules()); diff != "" {
					t.Errorf("rules for %d operators (-want +got):\n%s", operators, diff)
				}
			}
			if _, err := peerRules(tc.peer, Operators+1); err == nil {
				t.Error("there are rules for more operators than were generated")
			}
		})
	}
}

// TestPeersSeeTheSameObjectives compares what the peers were given with what the benchmark would give them now.
func TestPeersSeeTheSameObjectives(t *testing.T) {
	dir := t.TempDir()
	if err := WriteSpecs(dir, 1); err != nil {
		t.Fatal(err)
	}
	for peer, operator := range map[string]string{sloth: fleet.Operator(0), pyrra: fleet.Operator(0), slothFleet: ""} {
		groups, err := peerRules(peer, 1)
		if err != nil {
			t.Fatal(err)
		}
		var rules strings.Builder
		for _, g := range groups {
			for _, r := range g.Rules {
				rules.WriteString(r.Expr.String() + "\n")
			}
		}
		for _, o := range objectives() {
			for _, s := range []*selector{o.gauge, o.bad, o.total} {
				if s == nil {
					continue
				}
				// pyrra sorts matchers.
				sorted := selector{s.metric, s.owner, ""}.of(operator)
				sorted = strings.Replace(sorted, "{", "{"+s.more+",", 1)
				if !strings.Contains(rules.String(), s.of(operator)+"[5m]") &&
					!strings.Contains(rules.String(), sorted+"[5m]") {
					t.Errorf("%s does not read %s; its rules are to be generated anew: see testdata/README.md", peer,
						s.of(operator))
				}
			}
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml")); err != nil || len(found) != 1+1+11 {
		t.Errorf("objectives in %v, %v", found, err)
	}
}

func TestCollectRulesRefusesAnEmptyFolder(t *testing.T) {
	to := t.TempDir()
	if err := CollectRules(t.TempDir(), to); err == nil {
		t.Error("no rules were collected without an error")
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
