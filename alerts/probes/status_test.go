// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// describe returns a status as text.
func describe(s v1alpha1.EndpointProbeStatus) string {
	var out strings.Builder
	for _, c := range s.Conditions {
		fmt.Fprintf(&out, "%s=%s %s; ", c.Type, c.Status, c.Reason)
	}
	fmt.Fprintf(&out, "url %s", s.URL)
	if s.LastFailure != nil {
		fmt.Fprintf(&out, "; last failure %s at %s", s.LastFailure.Reason, s.LastFailure.Time.UTC().Format("15:04"))
	}
	return out.String()
}

// TestStatusOverTime checks a sequence of statuses, each computed from the one
// before it.
func TestStatusOverTime(t *testing.T) {
	probe := &v1alpha1.EndpointProbe{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	fails := func(reason string) *Failure { return &Failure{Reason: reason, Message: "why"} }
	for _, step := range []struct {
		refused *Failure
		verdict Verdict
		want    string
	}{
		{want: "Ready=True Succeeded; Success=Unknown Waiting; url "},
		{verdict: Verdict{At: noon, URL: "http://a/"},
			want: "Ready=True Succeeded; Success=True Succeeded; url http://a/"},
		{verdict: Verdict{At: noon.Add(time.Minute), URL: "http://a/", Failure: fails("TimedOut")},
			want: "Ready=True Succeeded; Success=False TimedOut; url http://a/; last failure TimedOut at 12:01"},
		// A repetition of the failure changes nothing.
		{verdict: Verdict{At: noon.Add(2 * time.Minute), URL: "http://a/", Failure: fails("TimedOut")},
			want: "Ready=True Succeeded; Success=False TimedOut; url http://a/; last failure TimedOut at 12:01"},
		// A missing target is a failure like any other, and its URL is kept.
		{verdict: Verdict{At: noon.Add(3 * time.Minute), Failure: fails("TargetNotFound")},
			want: "Ready=True Succeeded; Success=False TargetNotFound; url http://a/; last failure TargetNotFound at " +
				"12:03"},
		{verdict: Verdict{At: noon.Add(4 * time.Minute), URL: "http://b/"},
			want: "Ready=True Succeeded; Success=True Succeeded; url http://b/; last failure TargetNotFound at 12:03"},
		{refused: fails("InvalidSpec"),
			want: "Ready=False InvalidSpec; Success=Unknown InvalidSpec; Stalled=True InvalidSpec; url http://b/; " +
				"last failure TargetNotFound at 12:03"},
	} {
		probe.Status = Status(Input{Probe: probe, Refused: step.refused,
			Verdicts: map[string]Verdict{"": step.verdict}})
		if diff := cmp.Diff(step.want, describe(probe.Status)); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
	}
}

func TestHasSameOutcome(t *testing.T) {
	base := Verdict{At: noon, URL: "http://a/", Failure: &Failure{Reason: "TimedOut"}}
	for name, tc := range map[string]struct {
		other Verdict
		want  bool
	}{
		"later, with another message": {Verdict{At: noon.Add(time.Hour), URL: "http://a/",
			Failure: &Failure{Reason: "TimedOut", Message: "x"}}, true},
		"another reason": {Verdict{At: noon, URL: "http://a/", Failure: &Failure{Reason: "BadStatus"}},
			false},
		"a success": {Verdict{At: noon, URL: "http://a/"}, false},
		"another URL": {Verdict{At: noon, URL: "http://b/", Failure: &Failure{Reason: "TimedOut"}},
			false},
		"never run": {Verdict{}, false},
	} {
		if got := base.HasSameOutcome(tc.other); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestACauseThatChangesIsReported: what keeps an endpoint from being probed has few reasons, and a message for each
// cause.
func TestACauseThatChangesIsReported(t *testing.T) {
	unresolved := func(at time.Time, message string) Verdict {
		return Verdict{At: at, Failure: &Failure{Reason: v1alpha1.ReasonSecretUnavailable, Message: message}}
	}
	first, same := unresolved(noon, "cannot read Secret a: timeout"), unresolved(noon.Add(time.Hour),
		"cannot read Secret a: timeout")
	other := unresolved(noon.Add(time.Hour), "Secret a does not exist")
	if !first.HasSameOutcome(same) || first.HasSameOutcome(other) {
		t.Errorf("the same cause is the same: %v, another one: %v", first.HasSameOutcome(same),
			first.HasSameOutcome(other))
	}
	probe := &v1alpha1.EndpointProbe{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	for _, step := range []struct {
		verdict Verdict
		says    string
		at      time.Time
	}{{first, first.Failure.Message, noon}, {same, first.Failure.Message, noon},
		{other, other.Failure.Message, noon.Add(time.Hour)}} {
		probe.Status = Status(Input{Probe: probe, Verdicts: map[string]Verdict{"": step.verdict}})
		success := conditions.Get(probe.Status.Conditions, v1alpha1.ConditionSuccess)
		if last := probe.Status.LastFailure; success.Message != step.says || last.Message != step.says ||
			!last.Time.Time.Equal(step.at) {
			t.Errorf("the status says %q and %+v, want %q at %s", success.Message, last, step.says, step.at)
		}
	}
}

func TestCheckOnHub(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster string
		target  v1alpha1.ProbeTarget
		secret  string
		says    string
	}{
		"a URL in a cluster's namespace": {cluster: "prod-1", target: v1alpha1.ProbeTarget{URL: "http://a/"}},
		"another namespace": {target: v1alpha1.ProbeTarget{URL: "http://a/"},
			says: "namespace of a cluster"},
		"a Secret": {cluster: "prod-1", target: v1alpha1.ProbeTarget{URL: "http://a/"}, secret: "api",
			says: "cannot use Secrets"},
		"an object": {cluster: "prod-1",
			target: v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{}}, says: "must be a url"},
	} {
		spec := v1alpha1.EndpointProbeSpec{Target: tc.target, TLS: &v1alpha1.ProbeTLS{ClientSecret: tc.secret}}
		got := CheckOnHub(&v1alpha1.EndpointProbe{Spec: spec}, tc.cluster)
		if (got == nil) != (tc.says == "") || got != nil && !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: got %+v, want %q", name, got, tc.says)
		}
	}
}
