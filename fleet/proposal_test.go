// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/adoption"
	"github.com/bellwether-dev/bellwether/fleet"
)

// foreignEcho has three clusters: two run echo by Subscriptions of their own, of channel stable and fast, and the
// third runs nothing. One catalog of namespace team has echo.
func foreignEcho() fleet.Scans {
	newCluster := func(name, stage string) v1alpha1.FleetCluster {
		return v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"stage": stage}}}
	}
	newScan := func(channel string, targets ...string) *v1alpha1.OperatorScan {
		return &v1alpha1.OperatorScan{Status: v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed,
			ObservedAt: &metav1.Time{Time: now},
			Namespaces: []v1alpha1.FoundNamespace{{Name: "echo",
				OperatorGroups: []v1alpha1.FoundOperatorGroup{{Name: "group", Targets: targets}}}},
			Operators: []v1alpha1.FoundOperator{{Namespace: "echo",
				Subscription: &v1alpha1.FoundSubscription{Name: "echo", Package: "echo", Channel: channel},
				CSV:          &v1alpha1.FoundCSV{Name: "echo.v1.0.0", Version: "1.0.0", Phase: "Succeeded"}}}}}
	}
	return fleet.Scans{
		Clusters: []v1alpha1.FleetCluster{newCluster("b", "prod"), newCluster("a", "prod"), newCluster("c", "dev")},
		Reports: map[string]*v1alpha1.OperatorScan{"a": newScan("fast", "echo"), "b": newScan("stable", "echo"),
			"c": {Status: v1alpha1.OperatorScanStatus{ObservedAt: &metav1.Time{Time: now}}}},
		Packages: []adoption.Package{{Catalog: "team/main", Name: "echo",
			Channels: []adoption.Channel{{Name: "fast", Head: "1.1.0"}, {Name: "stable", Head: "1.0.0"}}}},
	}
}

var (
	echoKey = types.NamespacedName{Namespace: "team", Name: "echo"}
	prod    = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
)

func TestProposeAdoption(t *testing.T) {
	p, err := foreignEcho().ProposeAdoption(echoKey, fleet.AdoptionRequest{Package: "echo", Selector: prod})
	if err != nil {
		t.Fatal(err)
	}
	spec := p.Operator.Spec
	got := []string{spec.Catalog.Name, spec.Channel, spec.Install.Namespace, string(spec.Install.Mode), p.Head}
	want := []string{"main", "fast", "echo", string(v1alpha1.InstallOwnNamespace), "1.1.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalog, channel, namespace, mode and head: %s", diff)
	}
	if !p.IsNew || p.Subscriptions != 2 || p.SameChannel != 1 {
		t.Errorf("new: %t, %d of %d Subscriptions follow its channel", p.IsNew, p.SameChannel, p.Subscriptions)
	}
	if len(p.Clusters) != 2 || p.Clusters[0].Name != "a" || p.Clusters[1].Name != "b" || p.Clusters[0].Found == nil {
		t.Errorf("clusters %+v", p.Clusters)
	}
}

// TestProposalError has each reason why there is no proposal.
func TestProposalError(t *testing.T) {
	request := fleet.AdoptionRequest{Package: "echo", Selector: prod}
	subscriptionOn := func(s fleet.Scans, cluster string) *v1alpha1.FoundSubscription {
		return s.Reports[cluster].Status.Operators[0].Subscription
	}
	for name, test := range map[string]struct {
		change func(*fleet.Scans, *fleet.AdoptionRequest)
		want   fleet.ProposalError
		text   string
	}{
		"nobody runs it": {func(_ *fleet.Scans, r *fleet.AdoptionRequest) { r.Package = "db" },
			fleet.ProposalError{Problem: fleet.ProblemNoInstalls},
			"no cluster with the labels stage=prod reports an install of package db that others made"},
		"no access": {func(s *fleet.Scans, _ *fleet.AdoptionRequest) {
			s.Access = []v1alpha1.FleetAccess{{Spec: v1alpha1.FleetAccessSpec{Namespaces: []string{"others"}}}}
		}, fleet.ProposalError{Problem: fleet.ProblemNoInstalls}, "no cluster with the labels stage=prod reports an " +
			"install of package echo that others made, on the clusters that a FleetAccess permits to namespace team"},
		"no selector": {func(_ *fleet.Scans, r *fleet.AdoptionRequest) { r.Selector = nil },
			fleet.ProposalError{Problem: fleet.ProblemNoSelector, Label: "stage=prod"},
			"which clusters is the ManagedOperator to select? 2 of 3 clusters run it: a, b"},
		"two catalogs": {func(s *fleet.Scans, _ *fleet.AdoptionRequest) {
			s.Packages = append(s.Packages, adoption.Package{Catalog: "team/other", Name: "echo"})
		}, fleet.ProposalError{Problem: fleet.ProblemSeveralCatalogs, Catalogs: []string{"main", "other"}},
			"2 OperatorCatalogs of namespace team have package echo"},
		"no catalog": {func(_ *fleet.Scans, r *fleet.AdoptionRequest) { r.Catalog = "other" },
			fleet.ProposalError{Problem: fleet.ProblemNoCatalog},
			"no OperatorCatalog other of namespace team has package echo"},
		"a catalog that was not read": {func(s *fleet.Scans, _ *fleet.AdoptionRequest) {
			s.Packages, s.NotRead = nil, []string{"team/main: timeout"}
		}, fleet.ProposalError{Problem: fleet.ProblemCatalogsNotRead},
			"no OperatorCatalog of namespace team is known to have package echo; not read: team/main: timeout"},
		"settings without their values": {func(s *fleet.Scans, _ *fleet.AdoptionRequest) {
			subscriptionOn(*s, "a").Config = []string{"env"}
		}, fleet.ProposalError{Problem: fleet.ProblemConfigNotReported}, "the settings of Subscription echo/echo on " +
			"cluster a are not in its report, which has no room for them"},
		"different settings": {func(s *fleet.Scans, _ *fleet.AdoptionRequest) {
			sub := subscriptionOn(*s, "a")
			sub.Config, sub.Settings = []string{"nodeSelector"}, `{"nodeSelector":{"role":"infra"}}`
		}, fleet.ProposalError{Problem: fleet.ProblemDifferentConfigs}, "the Subscriptions have 2 different " +
			"settings, and a ManagedOperator has the same for all clusters:\n" +
			"  b: none\n  a: {\"nodeSelector\":{\"role\":\"infra\"}}"},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := foreignEcho(), request
			test.change(&s, &r)
			_, err := s.ProposeAdoption(echoKey, r)
			var got *fleet.ProposalError
			if !errors.As(err, &got) {
				t.Fatalf("%v is no ProposalError", err)
			}
			if diff := cmp.Diff(test.text, got.Error()); diff != "" {
				t.Error(diff)
			}
			if got.Problem != test.want.Problem || got.Label != test.want.Label ||
				!cmp.Equal(got.Catalogs, test.want.Catalogs) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestProposeAdoptionBy adds to an existing ManagedOperator, and does not change it.
func TestProposeAdoptionBy(t *testing.T) {
	s := foreignEcho()
	p, err := s.ProposeAdoption(echoKey, fleet.AdoptionRequest{Package: "echo", Selector: prod})
	if err != nil {
		t.Fatal(err)
	}
	existing := p.Operator
	existing.Spec.Adopt = nil
	changed := s.ProposeAdoptionBy(existing, []v1alpha1.AcceptedFinding{"Unhealthy", "Unhealthy"})
	if existing.Spec.Adopt != nil {
		t.Error("the existing ManagedOperator was changed")
	}
	if changed.IsNew || len(changed.Operator.Spec.Adopt.Accept) != 1 || len(changed.Clusters) != 2 {
		t.Errorf("got %+v", changed)
	}
}
