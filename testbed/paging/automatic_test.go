// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bellwether-dev/bellwether/alerts/alertmanager"
	alerts "github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/silences"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// install makes the OperatorInstall of an operator on a cluster; with a rollout, it was admitted to be upgraded now.
func (s *silencer) install(of alerts.Operator, cluster, rollout string) *v1alpha1.OperatorInstall {
	s.t.Helper()
	out := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster),
		Name: of.Name + "." + cluster},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
			Operator: v1alpha1.OperatorReference{Namespace: of.Namespace, Name: of.Name}}}
	if rollout != "" {
		out.Spec.Admission = &v1alpha1.Admission{Rollout: rollout, Wave: "canary", Hash: "h", AdmittedAt: s.now(),
			Release: v1alpha1.Release{Version: "1.1.0"}, Previous: &v1alpha1.PreviousRelease{Version: "1.0.0"}}
	}
	if err := s.Create(s.t.Context(), out); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// now is the time as an API server keeps it.
func (s *silencer) now() metav1.Time { return metav1.NewTime(s.reconciler.Now().Truncate(time.Second)) }

// succeed says that an upgrade succeeded, and lets as much time pass as its silence goes on for.
func (s *silencer) succeed(of *v1alpha1.OperatorInstall) {
	s.t.Helper()
	at := s.now()
	of.Status.SucceededHash, of.Status.SucceededAt = of.Spec.Admission.Hash, &at
	if err := s.Update(s.t.Context(), of); err != nil {
		s.t.Fatal(err)
	}
	s.ahead += 5*time.Minute + 2*time.Second
}

// silenced are the clusters of the hub's own silences of a cause that are in force, of each of them.
func (s *silencer) silenced(cause string) [][]string {
	s.t.Helper()
	var all v1alpha1.AlertSilenceList
	if err := s.List(s.t.Context(), &all, client.MatchingLabels{v1alpha1.LabelAutomaticSilence: cause}); err != nil {
		s.t.Fatal(err)
	}
	var out [][]string
	for i := range all.Items {
		if conditions.IsTrue(all.Items[i].Status.Conditions, v1alpha1.ConditionActive) {
			out = append(out, all.Items[i].Spec.Clusters.Names)
		}
	}
	return out
}

// untilSilenced reconciles until the hub's own silences of a cause have these clusters, and Alertmanager as many.
func (s *silencer) untilSilenced(cause string, want ...[]string) {
	s.t.Helper()
	am, err := api.Endpoint{URL: s.managers[0].URL()}.Client()
	if err != nil {
		s.t.Fatal(err)
	}
	s.reconcile("silences of "+cause+" are in force", func(pagerduty.Ledger) bool {
		present, err := am.Silences(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return cmp.Equal(s.silenced(cause), want) && inForce(present) == len(want)
	})
}

// stateOf is that of the incident of an alert, or empty if there was none.
func (s *silencer) stateOf(a alert) pagerduty.State {
	s.t.Helper()
	in, _ := s.events.Ledger().Incident(platform, s.key(a))
	return in.State
}

func (s *silencer) want(what string, a alert, state pagerduty.State) {
	s.t.Helper()
	if got := s.stateOf(a); got != state {
		s.t.Errorf("%s: the incident of %v is %q, want %q", what, a, got, state)
	}
}

func (s *silencer) untilState(what string, a alert, state pagerduty.State) {
	s.t.Helper()
	s.reconcile(what, func(pagerduty.Ledger) bool { return s.stateOf(a) == state })
}

// TestUpgradesAreSilenced has two clusters of a wave fail while they are upgraded. Another cluster, another operator
// and the release page, and so does a cluster that still fails when its time is over.
func TestUpgradesAreSilenced(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	s := f.silencer()
	first, second := s.install(router, "canary-a", "router-2"), s.install(router, "canary-b", "router-2")
	s.install(router, "prod-c", "")
	s.install(echo, "canary-a", "")
	s.untilSilenced(silences.CauseUpgrade, []string{"canary-a", "canary-b"})

	a, b := single(router, "page", "canary-a"), single(router, "page", "canary-b")
	c, ticket := single(router, "page", "prod-c"), single(echo, "page", "canary-a")
	f.fire(a, b, c, ticket)
	s.pass("2.0.0") // a release of router pages
	s.untilState("a cluster that is not upgraded pages", c, pagerduty.Open)
	s.want("during the upgrades", a, "")
	s.want("during the upgrades", b, "")
	f.until("there is a ticket about another operator", func(pagerduty.Ledger) bool {
		return slices.ContainsFunc(f.tickets.At("/tickets"), isAbout(ticket))
	})

	s.succeed(first)
	s.untilSilenced(silences.CauseUpgrade, []string{"canary-b"})
	s.untilState("the first cluster pages", a, pagerduty.Open)
	s.pass("2.1.0")
	s.want("while the second cluster is upgraded", b, "")

	s.succeed(second)
	s.untilSilenced(silences.CauseUpgrade)
	s.untilState("the second cluster pages", b, pagerduty.Open)
	f.end(a, b, c, ticket)
	for _, one := range []alert{a, b, c} {
		s.untilState("it is resolved", one, pagerduty.Resolved)
		if in, _ := f.events.Ledger().Incident(platform, s.key(one)); in.Opened != 1 || in.Resolved != 1 {
			t.Errorf("the incident of %v was opened %d times and resolved %d times, want once", one, in.Opened,
				in.Resolved)
		}
	}
}

// TestVetoIsSilenced has the owner of a cluster refuse changes while an operator there fails, and permit them again.
func TestVetoIsSilenced(t *testing.T) {
	t.Parallel()
	f := start(t, 1)
	s := f.silencer()
	s.install(router, "prod-eu", "")
	s.install(router, "prod-us", "")
	here, there := single(router, "page", "prod-eu"), single(router, "page", "prod-us")
	ofCluster := alert{"alertname": slo.AlertCluster, "severity": "page", "scope": "cluster", "cluster": "prod-eu"}
	f.fire(here)
	f.untilOpen(1)

	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-eu"}}
	cluster.Status.Veto = &v1alpha1.ClusterVeto{Since: s.now(), Reason: "audit"}
	if err := s.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	s.untilSilenced(silences.CauseVeto, []string{"prod-eu"})
	s.want("when the veto began", here, pagerduty.Resolved)
	f.fire(there, ofCluster)
	s.pass("2.0.0")
	s.untilState("the same operator pages on another cluster", there, pagerduty.Open)
	s.untilState("the cluster pages", ofCluster, pagerduty.Open)
	s.want("during the veto", here, pagerduty.Resolved)

	cluster.Status.Veto = nil
	if err := s.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	s.untilSilenced(silences.CauseVeto)
	s.untilState("what still fails is open again", here, pagerduty.Open)
	f.end(here, there, ofCluster)
	for one, opened := range map[*alert]int{&here: 2, &there: 1, &ofCluster: 1} {
		s.untilState("it is resolved", *one, pagerduty.Resolved)
		if in, _ := f.events.Ledger().Incident(platform, s.key(*one)); in.Opened != opened {
			t.Errorf("the incident of %v was opened %d times, want %d", *one, in.Opened, opened)
		}
	}
}

// isAbout tells whether a notification is about an alert's operator on its cluster.
func isAbout(a alert) func(alertmanager.Notification) bool {
	return func(n alertmanager.Notification) bool {
		return n.GroupLabels["operator"] == a["operator"] && n.GroupLabels["cluster"] == a["cluster"]
	}
}
