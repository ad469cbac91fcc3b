// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// describeSelected returns the status of a probe with a selector as text.
func describeSelected(s v1alpha1.EndpointProbeStatus) string {
	var out strings.Builder
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSuccess} {
		c := conditions.Get(s.Conditions, kind)
		fmt.Fprintf(&out, "%s=%s %s: %s\n", kind, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintf(&out, "%d of %d fail\n", s.Selected.Failing, s.Selected.Matching)
	for _, target := range s.Selected.FirstFailing {
		fmt.Fprintf(&out, "%s: %s at %s\n", target.Name, target.Reason, target.Time.UTC().Format("15:04"))
	}
	if s.LastFailure != nil {
		fmt.Fprintf(&out, "last failure at %s: %s", s.LastFailure.Time.UTC().Format("15:04"), s.LastFailure.Message)
	}
	return strings.TrimSpace(out.String())
}

// TestStatusOfSelectorOverTime checks a sequence of statuses, each computed from the
// one before it.
func TestStatusOfSelectorOverTime(t *testing.T) {
	probe := &v1alpha1.EndpointProbe{}
	probe.Generation = 1
	probe.Status.URL = "http://of.a.target.before/"
	two := Selected{Kind: KindService, Matching: 2, Names: []string{"a", "b"}}
	at := func(minute int, reason string) Verdict {
		v := Verdict{At: noon.Add(time.Duration(minute) * time.Minute), URL: "http://x/"}
		if reason != "" {
			v.Failure = &Failure{Reason: reason, Message: fmt.Sprintf("run of minute %d", minute)}
		}
		return v
	}
	running := "Ready=True Succeeded: the probe is run\n"
	for _, step := range []struct {
		name     string
		selected Selected
		verdicts map[string]Verdict
		want     string
	}{
		{"nothing has run", two, nil, running +
			"Success=Unknown Waiting: the probe has not run yet; it runs once per interval\n0 of 2 fail"},
		{"one has run", two, map[string]Verdict{"a": at(1, "")}, running +
			"Success=True Succeeded: 1 of 2 Services answer as expected, and none fails\n0 of 2 fail"},
		{"one fails", two, map[string]Verdict{"a": at(2, ""), "b": at(2, "TimedOut")}, running +
			"Success=False TimedOut: 1 of 2 Services fail: b: run of minute 2\n1 of 2 fail\nb: TimedOut at 12:02\n" +
			"last failure at 12:02: b: run of minute 2"},
		{"for the same reason with another message", two,
			map[string]Verdict{"a": at(3, ""), "b": at(3, "TimedOut")}, running +
				"Success=False TimedOut: 1 of 2 Services fail: b: run of minute 2\n1 of 2 fail\n" +
				"b: TimedOut at 12:02\nlast failure at 12:02: b: run of minute 2"},
		{"both fail", two, map[string]Verdict{"a": at(4, "BadStatus"), "b": at(4, "TimedOut")}, running +
			"Success=False BadStatus: 2 of 2 Services fail: a: run of minute 4; b: run of minute 2\n2 of 2 fail\n" +
			"a: BadStatus at 12:04\nb: TimedOut at 12:02\nlast failure at 12:04: a: run of minute 4"},
		{"the failing ones are gone", Selected{Kind: KindService, Matching: 1, Names: []string{"c"}},
			map[string]Verdict{"c": at(5, "")}, running +
				"Success=True Succeeded: 1 of 1 Service answer as expected, and none fails\n0 of 1 fail\n" +
				"last failure at 12:04: a: run of minute 4"},
		{"too few are left", Selected{Kind: KindService, TooFew: newNotFound("too few")},
			map[string]Verdict{"": {At: noon.Add(6 * time.Minute), Failure: newNotFound("too few")}}, running +
				"Success=False TargetNotFound: too few\n0 of 0 fail\nlast failure at 12:06: too few"},
		{"none is required", Selected{Kind: KindIngress}, nil, running +
			"Success=True Succeeded: 0 of 0 Ingresses answer as expected, and none fails\n0 of 0 fail\n" +
			"last failure at 12:06: too few"},
		{"too many", Selected{Kind: KindIngress, Matching: 101, Names: []string{"a"}},
			map[string]Verdict{"a": at(7, "")}, "Ready=False TooManyTargets: the selector matches 101 Ingresses, " +
				"and only the first 100 by name are probed: divide them among several EndpointProbes\n" +
				"Success=True Succeeded: 1 of 101 Ingresses answer as expected, and none fails\n0 of 101 fail\n" +
				"last failure at 12:06: too few"},
	} {
		probe.Status = Status(Input{Probe: probe, Selected: &step.selected, Verdicts: step.verdicts})
		if diff := cmp.Diff(step.want, describeSelected(probe.Status)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if probe.Status.URL != "" {
			t.Errorf("%s: the URL is %s", step.name, probe.Status.URL)
		}
	}
}

func TestStatusOfSelectorIsBounded(t *testing.T) {
	selected := Selected{Kind: KindService}
	verdicts := map[string]Verdict{}
	for i := range v1alpha1.MaxSelectedTargets {
		name := fmt.Sprintf("echo-%03d", i)
		selected.Names = append(selected.Names, name)
		verdicts[name] = Verdict{At: noon, Failure: &Failure{Reason: "TimedOut",
			Message: strings.Repeat("long ", 1000)}}
	}
	selected.Matching = len(selected.Names)
	status := Status(Input{Probe: &v1alpha1.EndpointProbe{}, Selected: &selected, Verdicts: verdicts})
	if status.Selected.Failing != 100 || len(status.Selected.FirstFailing) != v1alpha1.MaxFailingTargets ||
		status.Selected.FirstFailing[9].Name != "echo-009" {
		t.Errorf("%d fail, and %d are named: %+v", status.Selected.Failing, len(status.Selected.FirstFailing),
			status.Selected.FirstFailing)
	}
	for _, target := range status.Selected.FirstFailing {
		if n := len([]rune(target.Message)); n > maxMessage {
			t.Errorf("the message of %s has %d characters", target.Name, n)
		}
	}
	probe := &v1alpha1.EndpointProbe{Status: status}
	if diff := cmp.Diff(status, Status(Input{Probe: probe, Selected: &selected, Verdicts: verdicts})); diff != "" {
		t.Errorf("the same again changes the status:\n%s", diff)
	}
	probe.Spec.Target.URL = "http://a/"
	if got := Status(Input{Probe: probe}); got.Selected != nil {
		t.Errorf("without a selector the status says %+v", got.Selected)
	}
}
