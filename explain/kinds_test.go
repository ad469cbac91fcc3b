// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// fleetInput is everything that the other kinds are explained by.
type fleetInput struct {
	cluster  *v1alpha1.FleetCluster
	operator *v1alpha1.ManagedOperator
	rollout  *v1alpha1.OperatorRollout
	install  *v1alpha1.OperatorInstall
	catalog  *v1alpha1.OperatorCatalog
	slo      *v1alpha1.OperatorSLO
	budgets  []Budget
}

func (in fleetInput) explain(kind string) Explanation {
	clusters, installs := []v1alpha1.FleetCluster{*in.cluster}, []v1alpha1.OperatorInstall{*in.install}
	switch kind {
	case "cluster":
		return Cluster(ClusterInput{Now: noon, Cluster: in.cluster, Installs: installs,
			Rollouts: []v1alpha1.OperatorRollout{*in.rollout}})
	case "rollout":
		return Rollout(RolloutInput{Now: noon, Rollout: in.rollout, Clusters: clusters, Installs: installs})
	case "operator":
		return Operator(OperatorInput{Now: noon, Operator: in.operator, Rollout: in.rollout, Clusters: clusters,
			Installs: installs})
	case "catalog":
		return Catalog(CatalogInput{Now: noon, Catalog: in.catalog})
	default:
		return Objectives(ObjectivesInput{Now: noon, SLO: in.slo, Budgets: in.budgets,
			Operator: v1alpha1.OperatorReference{Namespace: "fleet", Name: "echo"}})
	}
}

func healthyFleet() fleetInput {
	whole := 1.0
	return fleetInput{cluster(), operator(), rollout(), install(), catalog(), objectivesOf(),
		[]Budget{{SLI: "available", Cluster: "prod-1", Left: &whole}}}
}

var kinds = []string{"cluster", "rollout", "operator", "catalog", "objectives"}

func TestOtherKinds(t *testing.T) {
	offline := func(in *fleetInput) {
		set(&in.cluster.Status.Conditions, v1alpha1.ConditionOnline, false, v1alpha1.ReasonLeaseExpired, "no Lease")
	}
	failed := func(in *fleetInput) {
		stall(&in.install.Status.Conditions, v1alpha1.ReasonCSVFailed, "install timeout")
		in.install.Status.SucceededHash = ""
		in.rollout.Status.Phase, in.rollout.Status.Message = v1alpha1.RolloutHalted, "wave prod: 1 cluster failed"
		in.rollout.Status.Waves[0].Phase, in.rollout.Status.Waves[0].VerifiedAt = v1alpha1.WaveUpdating, nil
		stall(&in.rollout.Status.Conditions, v1alpha1.ReasonHalted, "wave prod: 1 cluster failed")
		stall(&in.operator.Status.Conditions, v1alpha1.ReasonHalted, "rollout echo-2: wave prod: 1 cluster failed")
	}
	for name, test := range map[string]struct {
		change func(*fleetInput)
		state  State
		reason string
		// contains is anywhere in the explanation.
		contains string
	}{
		"cluster healthy":    {state: Healthy},
		"rollout healthy":    {state: Healthy},
		"operator healthy":   {state: Healthy},
		"catalog healthy":    {state: Healthy},
		"objectives healthy": {state: Healthy},
		"rollout that takes over": {func(in *fleetInput) {
			in.rollout.Spec.Release.AsInstalled = true
			in.rollout.Spec.Release.Version, in.rollout.Spec.Release.Bundle = "", ""
		}, Healthy, "", "was taken over on the cluster as it was installed"},
		"rollout that cannot take over": {func(in *fleetInput) {
			failed(in)
			in.rollout.Spec.Release.AsInstalled = true
			in.rollout.Spec.Release.Version, in.rollout.Spec.Release.Bundle = "", ""
		}, Failed, v1alpha1.ReasonHalted, "rollout echo-2 to take over the installed versions is Halted"},
		"cluster resuming and online": {func(in *fleetInput) {
			in.cluster.Status.Source = &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming}
			set(&in.cluster.Status.Conditions, v1alpha1.ConditionHibernating, true, v1alpha1.ReasonHibernating,
				"resuming")
		}, Waiting, v1alpha1.ReasonHibernating, "the source of cluster prod-1 reports the power state Resuming, " +
			"although its agent reports"},
		"cluster whose source is not believed": {change: func(in *fleetInput) {
			in.cluster.Status.Source = &v1alpha1.ClusterSource{PowerState: v1alpha1.PowerResuming}
			set(&in.cluster.Status.Conditions, v1alpha1.ConditionHibernating, false, v1alpha1.ReasonPowerUnknown,
				"no end")
		}, state: Healthy},
		"operator with a version that waits": {func(in *fleetInput) {
			in.operator.Spec.Version = "1.x"
			in.operator.Status.Available = &v1alpha1.AvailableVersion{Version: "1.3.0", Update: v1alpha1.UpdateMinor,
				Since:  *agoPtr(time.Hour),
				Reason: "1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval"}
		}, Healthy, "", "runs 1.1.0 and is Ready; version 1.3.0 waits for an approval."},
		"operator with a range that has nothing": {func(in *fleetInput) {
			in.operator.Spec.Version, in.operator.Status.Target = "1.5.x", nil
			stall(&in.operator.Status.Conditions, v1alpha1.ReasonUnknownVersion, "no such version")
		}, Failed, v1alpha1.ReasonUnknownVersion, "wants echo-operator in the range 1.5.x: no such version"},
		"cluster vetoed": {func(in *fleetInput) {
			in.cluster.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end", Until: agoPtr(time.Hour)}
			in.install.Labels[v1alpha1.LabelRollout] = "echo-3"
		}, Waiting, v1alpha1.ReasonVetoed, "it ends nothing by itself"},
		"cluster vetoed with nothing to change": {func(in *fleetInput) {
			in.cluster.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end", Until: agoPtr(time.Hour)}
		}, Healthy, "", "changes of all operators are refused on cluster prod-1"},
		"cluster vetoed for other operators": {func(in *fleetInput) {
			in.cluster.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end", Operators: []string{"backup"}}
			in.install.Labels[v1alpha1.LabelRollout] = "echo-3"
		}, Healthy, "", "changes of backup are refused on cluster prod-1"},
		"cluster vetoed after its rollout was aborted": {func(in *fleetInput) {
			in.cluster.Status.Veto = &v1alpha1.ClusterVeto{Reason: "quarter end"}
			in.install.Labels[v1alpha1.LabelRollout], in.rollout.Name = "echo-3", "echo-3"
			in.rollout.Status.Phase = v1alpha1.RolloutAborted
		}, Healthy, "", "changes of all operators are refused on cluster prod-1"},
		"cluster frozen": {func(in *fleetInput) {
			in.cluster.Status.Freeze = &v1alpha1.ClusterFreeze{Name: "now", Reason: "an incident"}
			in.install.Labels[v1alpha1.LabelRollout] = "echo-3"
		}, Waiting, v1alpha1.ReasonFrozen, "an incident"},
		"cluster frozen with nothing to change": {func(in *fleetInput) {
			in.cluster.Status.Freeze = &v1alpha1.ClusterFreeze{Name: "now", Reason: "an incident"}
		}, Healthy, "", "nothing is changed on cluster prod-1"},
		"cluster offline": {offline, Unknown, v1alpha1.ReasonLeaseExpired,
			"everything that is shown about cluster prod-1"},
		"operator offline": {offline, Unknown, v1alpha1.ReasonLeaseExpired, "everything that is shown about cluster " +
			"prod-1"},
		"rollout offline": {func(in *fleetInput) {
			offline(in)
			in.rollout.Status.Waves[0].VerifiedAt, in.rollout.Status.Waves[0].Phase = nil, v1alpha1.WaveUpdating
			in.rollout.Status.Phase = v1alpha1.RolloutProgressing
			notReady(&in.rollout.Status.Conditions, v1alpha1.ReasonProgressing, "wave prod: 0 of 1 cluster updated")
		}, Waiting, v1alpha1.ReasonAgentOffline, "everything that is shown about cluster prod-1"},
		"cluster with a failed operator": {failed, Failed, v1alpha1.ReasonCSVFailed, "bellwether why prod-1 echo -n " +
			"fleet"},
		"rollout halted": {failed, Failed, v1alpha1.ReasonHalted, "bellwether why prod-1 echo -n " +
			"fleet"},
		"operator halted": {failed, Failed, v1alpha1.ReasonHalted, "bellwether why prod-1 echo -n " +
			"fleet"},
		"rollout paused": {func(in *fleetInput) {
			in.rollout.Spec.Paused, in.rollout.Spec.PausedReason = true, "incident 4711"
			in.rollout.Status.Phase = v1alpha1.RolloutPaused
			notReady(&in.rollout.Status.Conditions, v1alpha1.ReasonPaused, "paused")
		}, Waiting, v1alpha1.ReasonPaused, "incident 4711"},
		"rollout paused after its success": {func(in *fleetInput) { in.rollout.Spec.Paused = true }, Healthy, "",
			"rollout echo-2 is paused: clusters that join later are not admitted"},
		"rollout without error budget": {func(in *fleetInput) {
			in.rollout.Status.Phase = v1alpha1.RolloutProgressing
			in.rollout.Status.Waves[0].VerifiedAt, in.rollout.Status.Waves[0].Phase = nil, v1alpha1.WaveUpdating
			in.rollout.Status.Pace = &v1alpha1.PaceStatus{At: agoPtr(time.Minute),
				Reason:   v1alpha1.ReasonErrorBudgetSpent,
				Evidence: "0 % of the error budget of available is left, and the pace is full from 50 % on"}
			in.rollout.Status.Message = "no cluster is admitted: " + in.rollout.Status.Pace.Evidence
			notReady(&in.rollout.Status.Conditions, v1alpha1.ReasonErrorBudgetSpent, in.rollout.Status.Message)
		}, Waiting, v1alpha1.ReasonErrorBudgetSpent, "bellwether slo list"},
		"rollout with a moved cluster": {func(in *fleetInput) {
			in.rollout.Spec.Strategy.Waves[0].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{
				"region": "us"}}
			in.rollout.Status.Phase = v1alpha1.RolloutProgressing
			in.rollout.Status.Waves[0].VerifiedAt, in.rollout.Status.Waves[0].Phase = nil, v1alpha1.WaveSoaking
			notReady(&in.rollout.Status.Conditions, v1alpha1.ReasonSoaking, "wave prod soaks")
		}, Progressing, v1alpha1.ReasonSoaking, "the labels of cluster prod-1 select wave rest now"},
		"rollout blocked": {func(in *fleetInput) { in.rollout.Spec.Blocked = "it loses data" }, Degraded,
			v1alpha1.ReasonVersionBlocked, "it loses data"},
		"rollout status outdated": {func(in *fleetInput) { in.rollout.Generation = 2 }, Progressing,
			remedy.StatusOutdated,
			"about generation 1"},
		"catalog refused": {func(in *fleetInput) {
			stall(&in.catalog.Status.Conditions, v1alpha1.ReasonSignatureMissing, "sha256:4567 has no signature")
		}, Degraded, v1alpha1.ReasonSignatureMissing, "bellwether catalog publish DIR REF --key FILE"},
		"catalog never read": {func(in *fleetInput) {
			in.catalog.Status.Digest = ""
			stall(&in.catalog.Status.Conditions, v1alpha1.ReasonCatalogUnreachable, "connection refused")
		}, Failed, v1alpha1.ReasonCatalogUnreachable, "connection refused"},
		"catalog blocked version": {func(in *fleetInput) {
			in.catalog.Status.BlockedVersions = []v1alpha1.BlockedVersion{{Clusters: 2, Proposal: "upgrade to 1.1.1",
				VersionBlock: v1alpha1.VersionBlock{Package: "echo-operator", Version: "1.1.0", Reason: "it loses " +
					"data"}}}
		}, Degraded, v1alpha1.ReasonVersionBlocked, "The catalog proposes: upgrade to 1.1.1."},
		"objectives not loaded": {func(in *fleetInput) {
			set(&in.slo.Status.Conditions, v1alpha1.ConditionRulesLoaded, false, v1alpha1.ReasonRulesMissing, "no "+
				"rules")
		}, Failed, v1alpha1.ReasonRulesMissing, "ruleSelector"},
		"objectives spent": {func(in *fleetInput) { *in.budgets[0].Left = -0.1 }, Degraded, remedy.BudgetSpent,
			"bellwether why prod-1 echo -n fleet"},
		"objectives without data": {func(in *fleetInput) { in.budgets[0].Left = nil }, Unknown, remedy.NoData,
			"there is no data"},
		"objectives spent beside one without data": {func(in *fleetInput) {
			spent := in.budgets[0]
			left := -0.1
			spent.SLI, spent.Left, in.budgets[0].Left = "probe:https", &left, nil
			in.budgets = append(in.budgets, spent)
		}, Degraded, remedy.BudgetSpent, "there is no data"},
		"objectives firing": {func(in *fleetInput) { in.budgets[0].Firing = []string{"OperatorSLOBurn"} }, Degraded,
			remedy.AlertFiring, "OperatorSLOBurn"},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthyFleet()
			if test.change != nil {
				test.change(&in)
			}
			kind, _, _ := strings.Cut(name, " ")
			e := in.explain(kind)
			if e.State != test.state || e.Reason != test.reason {
				t.Errorf("%s %s (%s), want %s %s", e.State, e.Reason, e.Summary, test.state, test.reason)
			}
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatalf("marshal explanation: %v", err)
			}
			if !strings.Contains(string(text), test.contains) {
				t.Errorf("the explanation lacks %q: %s", test.contains, text)
			}
			golden(t, strings.ReplaceAll(name, " ", "-"), e)
			checkInvariants(t, e)
		})
	}
}

// TestReconcileFailing checks that an object is not reported as healthy while its controller fails to reconcile it,
// because its other conditions are from the last success.
func TestReconcileFailing(t *testing.T) {
	failing := func(to *[]metav1.Condition) {
		set(to, v1alpha1.ConditionReconcileFailing, true, v1alpha1.ReasonReconcileError, "webhook denied it")
	}
	const text = " cannot be reconciled: webhook denied it"
	for kind, test := range map[string]struct {
		change func(*fleetInput)
		want   string
	}{
		"cluster": {func(in *fleetInput) { failing(&in.cluster.Status.Conditions) }, "FleetCluster prod-1"},
		"rollout": {func(in *fleetInput) { failing(&in.rollout.Status.Conditions) }, "OperatorRollout fleet/echo-2"},
		"operator": {func(in *fleetInput) { failing(&in.operator.Status.Conditions) },
			"ManagedOperator fleet/echo"},
		"catalog":    {func(in *fleetInput) { failing(&in.catalog.Status.Conditions) }, "OperatorCatalog fleet/main"},
		"objectives": {func(in *fleetInput) { failing(&in.slo.Status.Conditions) }, "OperatorSLO fleet/echo"},
	} {
		in := healthyFleet()
		test.change(&in)
		e := in.explain(kind)
		if e.State != Degraded || e.Reason != v1alpha1.ReasonReconcileError || e.Cause.Text != test.want+text ||
			len(e.Remedies) == 0 || len(e.Stale) != 1 {
			t.Errorf("%s: %s %s %+v, stale %v, want Degraded %s %q", kind, e.State, e.Reason, e.Cause, e.Stale,
				v1alpha1.ReasonReconcileError, test.want+text)
		}
	}
	in := healthyInstall()
	failing(&in.Install.Status.Conditions)
	if e := Install(in); e.State != Degraded || e.Reason != v1alpha1.ReasonReconcileError {
		t.Errorf("an install: %s %s (%s)", e.State, e.Reason, e.Summary)
	}
}

// FuzzKinds gives the objects of every kind any condition.
func FuzzKinds(f *testing.F) {
	for kind := range kinds {
		for i := range 4 {
			f.Add(byte(kind), byte(i), byte(1), "Waiting")
			f.Add(byte(kind), byte(i), byte(2), "")
		}
	}
	f.Fuzz(func(t *testing.T, pick, which, status byte, reason string) {
		in, kind := healthyFleet(), kinds[int(pick)%len(kinds)]
		list := map[string][]metav1.Condition{"cluster": in.cluster.Status.Conditions,
			"rollout": in.rollout.Status.Conditions, "operator": in.operator.Status.Conditions,
			"catalog": in.catalog.Status.Conditions, "objectives": in.slo.Status.Conditions}[kind]
		c := &list[int(which)%len(list)]
		c.Reason = reason
		c.Status = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse,
			metav1.ConditionUnknown}[int(status)%3]
		e := in.explain(kind)
		if c.Status != metav1.ConditionTrue && e.State == Healthy {
			t.Errorf("%s is healthy although %s is %s", kind, c.Type, c.Status)
		}
		checkInvariants(t, e)
	})
}
