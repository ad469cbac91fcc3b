// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
	"github.com/bellwether-dev/bellwether/rollouts"
)

func TestRenderPlan(t *testing.T) {
	waves := []rollouts.WavePreview{
		{Name: "canary", Clusters: []string{"canary-1"}, MaxConcurrency: 1, Deadline: 30 * time.Minute,
			Soak: time.Hour, UnreadyGrace: time.Minute},
		{Name: "prod", Clusters: []string{"prod-1", "prod-2", "prod-3"}, MaxConcurrency: 1, MaxFailures: 1,
			Deadline: 30 * time.Minute, UnreadyGrace: 2 * time.Minute,
			Gates: []string{"sre", "budget"}, Approvals: []string{"sre"}},
		{Name: "rest", MaxConcurrency: 1, Deadline: 30 * time.Minute, UnreadyGrace: time.Minute},
	}
	running := fixture.HaltedRollout()
	ahead := fixture.Installs()
	ahead[1].Status.Installed = &v1alpha1.InstalledVersion{Bundle: "echo-operator.v2.0.0", Version: "2.0.0"}
	p := fixture.EchoPackage()
	adopting, takeOver := fixture.Operator(), fixture.HaltedRollout()
	adopting.Spec.Adopt = &v1alpha1.OperatorAdoption{}
	takeOver.Spec.Release = v1alpha1.Release{Package: "echo-operator", AsInstalled: true}
	for name, in := range map[string]PlanInput{
		"paths": {Waves: waves, Installs: ahead[:3], Clusters: fixture.FleetOfFour(), Running: running, Package: p,
			Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable"},
		"unreadable": {Waves: waves, Installs: fixture.Installs(), Clusters: fixture.FleetOfFour(),
			Unread: errors.New("registry unreachable")},
		"nobody": {Waves: waves[2:], Package: p, Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable"},
		"adopts": {Waves: waves[:1], Installs: fixture.Installs(), Package: p,
			Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable", Operator: adopting},
		"adopting": {Waves: waves[:1], Installs: fixture.Installs(), Package: p, Running: takeOver,
			Target: p.Bundles["echo-operator.v1.3.0"], Channel: "stable", Operator: adopting},
	} {
		t.Run(name, func(t *testing.T) {
			if in.Now = fixture.Noon; in.Operator == nil {
				in.Operator = fixture.Operator()
			}
			fixture.AssertGolden(t, "plan-"+name, RenderPlan(in, term.Style{}, false))
		})
	}
}

// TestPlanDefersUnreachable: the planner defers a cluster also if only its API server is down.
func TestPlanDefersUnreachable(t *testing.T) {
	clusters := fixture.FleetOfFour()
	for i := range clusters[1].Status.Conditions {
		if c := &clusters[1].Status.Conditions[i]; c.Type == v1alpha1.ConditionAPIServerReachable {
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonAPIServerUnreachable
		}
	}
	clusters[2].Spec.Paused = true
	members := map[string]bool{}
	for i := range clusters {
		members[clusters[i].Name] = true
	}
	for offline, does := range map[v1alpha1.OfflinePolicy]string{
		v1alpha1.OfflineDefer: "be deferred and catch up later", v1alpha1.OfflineFail: "count as failed",
	} {
		want := []string{"Offline clusters would " + does + ": prod-3.",
			"Clusters whose API server does not answer their agent would " + does + ": prod-1.",
			"Paused clusters would be deferred: prod-2."}
		in := PlanInput{Clusters: clusters, Strategy: v1alpha1.RolloutStrategy{Offline: offline}}
		if diff := cmp.Diff(want, listDeferredNotes(in, members)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", offline, diff)
		}
	}
}

func TestMemberList(t *testing.T) {
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for name, test := range map[string]struct {
		clusters []string
		wide     bool
		want     string
	}{
		"none": {want: "-"},
		"few":  {clusters: many[:2], want: "a, b"},
		"many": {clusters: many, want: "a, b, c, d, e, f, g, h and 2 more (-o wide)"},
		"wide": {clusters: many, wide: true, want: "a, b, c, d, e, f, g, h, i, j"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatMembers(test.clusters, test.wide); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
