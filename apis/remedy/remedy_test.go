// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestEveryReasonHasOneRemedy(t *testing.T) {
	counts := map[string]int{}
	for _, r := range All() {
		counts[r.Reason]++
	}
	for _, reason := range reasons(t) {
		if counts[reason] != 1 {
			t.Errorf("%s has %d remedies, want 1", reason, counts[reason])
		}
		delete(counts, reason)
	}
	for reason := range counts {
		t.Errorf("%s is not a reason of the API", reason)
	}
	for _, r := range Observed() {
		counts[r.Reason]++
		if counts[r.Reason] > 1 || slices.Contains(reasons(t), r.Reason) {
			t.Errorf("%s has more than one remedy", r.Reason)
		}
	}
}

// reasons returns the reasons in the API's source, so that a new reason cannot be forgotten.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatalf("parse the API's conditions: %v", err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatalf("read the value of %s: %v", spec.Names[0].Name, err)
		}
		out = append(out, value)
		return true
	})
	if len(out) < 30 {
		t.Fatalf("found only %d reasons", len(out))
	}
	return out
}

// good are the reasons of states in which no person must act and nothing happens next.
var good = []string{v1alpha1.ReasonSucceeded, v1alpha1.ReasonLeaseFresh, v1alpha1.ReasonAPIServerReachable,
	v1alpha1.ReasonInSync}

func TestEveryRemedySaysWhatToDoOrWhatHappensNext(t *testing.T) {
	for _, r := range slices.Concat(All(), Observed()) {
		if len(r.Do) == 0 && r.Next == "" && !slices.Contains(good, r.Reason) {
			t.Errorf("%s has neither an action nor what happens next", r.Reason)
		}
		if r.Next != "" && len(r.Do) == 0 && strings.Contains(r.Next, "until") {
			t.Errorf("%s says what has to happen first, but not how: %q", r.Reason, r.Next)
		}
		sentences := []string{r.Means}
		if r.Next != "" {
			sentences = append(sentences, r.Next)
		}
		for _, a := range r.Do {
			if a.Command == "" {
				sentences = append(sentences, a.Text)
			} else if strings.HasSuffix(a.Text, ".") {
				t.Errorf("%s: %q stands before a command and must not end with a full stop", r.Reason, a.Text)
			}
		}
		for _, text := range sentences {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is not a sentence", r.Reason, text)
			}
		}
	}
}

// TestNoRemedyWeakensVerification checks that no remedy advises to remove spec.verification, which would help
// an attacker.
func TestNoRemedyWeakensVerification(t *testing.T) {
	for _, reason := range []string{v1alpha1.ReasonSignatureMissing, v1alpha1.ReasonSignatureInvalid} {
		r, _ := For(reason)
		for _, by := range []Observer{"", Hub, Agent} {
			for _, a := range r.For(by, Names{}) {
				text := strings.ToLower(a.String())
				for _, word := range []string{"remove", "take", "delete", "disable", "spec.verification away"} {
					if strings.Contains(text, word) {
						t.Errorf("%s: %q weakens the verification", reason, a)
					}
				}
			}
		}
	}
}

func TestActionsDependOnTheObserver(t *testing.T) {
	r, _ := For(v1alpha1.ReasonAccessDenied)
	for by, want := range map[Observer][]string{
		Hub:   {"Give the hub a pull secret for the registry that may read this repository."},
		Agent: {"Give the agent a pull secret for the registry that may read this repository."},
		"": {"Give the hub a pull secret for the registry that may read this repository.",
			"Give the agent a pull secret for the registry that may read this repository."},
	} {
		var got []string
		for _, a := range r.For(by, Names{}) {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("observed by %q (-want +got):\n%s", by, diff)
		}
	}
}

func TestNamesAreFilledIn(t *testing.T) {
	names := Names{Cluster: "prod-2", Operator: "echo", HubNamespace: "fleet", Namespace: "echo-system"}
	for reason, want := range map[string]string{
		v1alpha1.ReasonHalted: "Show why a cluster failed: `bellwether why prod-2 echo -n fleet`. The rollout " +
			"continues when enough of the failed clusters have recovered.",
		v1alpha1.ReasonPaused: "Resume the rollout: `bellwether rollout resume echo -n fleet`. Nothing new is " +
			"admitted until it is resumed. What was admitted before finishes.",
		v1alpha1.ReasonNeverJoined: "Install the agent: `bellwether fleet join prod-2 --cluster-kubeconfig FILE`.",
		v1alpha1.ReasonScaledToZero: "Scale it up again on the cluster: `kubectl -n echo-system scale deployment " +
			"NAME --replicas=1`.",
		v1alpha1.ReasonSucceeded: "",
		"Unheard":                "",
	} {
		if diff := cmp.Diff(want, Advice(reason, Hub, names)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestMarkdownHasAHeadingPerReason(t *testing.T) {
	text := Markdown()
	for _, r := range slices.Concat(All(), Observed()) {
		if !strings.Contains(text, "\n## "+r.Reason+"\n") {
			t.Errorf("no heading for %s", r.Reason)
		}
	}
}
