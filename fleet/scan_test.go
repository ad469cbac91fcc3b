// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/adoption"
)

func TestFindRefusal(t *testing.T) {
	operator := &adoption.Operator{Claim: engines.Claim{}}
	operator.Key.Namespace, operator.Key.Name = "team", "echo"
	some := &v1alpha1.ClusterVeto{Operators: []string{"team/echo"}, Reason: "x"}
	other := &v1alpha1.ClusterVeto{Operators: []string{"db"}, Reason: "x"}
	all := &v1alpha1.ClusterVeto{ReadOnly: true}
	for name, test := range map[string]struct {
		veto     *v1alpha1.ClusterVeto
		operator *adoption.Operator
		want     bool
	}{
		"no veto":                         {nil, operator, false},
		"of the operator":                 {some, operator, true},
		"of another operator":             {other, operator, false},
		"of some, and no ManagedOperator": {some, nil, false},
		"of all, and no ManagedOperator":  {all, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := findRefusal(test.veto, test.operator)
			if (got != nil) != test.want || got != nil && got.ReadOnly != test.veto.ReadOnly {
				t.Errorf("got %+v, want a refusal: %t", got, test.want)
			}
		})
	}
}

// TestScans has two clusters with operators of equal findings, of which one report is stale.
func TestScans(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	newScan := func(packages ...string) *v1alpha1.OperatorScan {
		s := &v1alpha1.OperatorScan{Status: v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed,
			ObservedAt: &metav1.Time{Time: now}, OwnerlessDefinitions: []string{"tenants.example.com"}}}
		for _, p := range packages {
			s.Status.Operators = append(s.Status.Operators, v1alpha1.FoundOperator{Namespace: p,
				Subscription: &v1alpha1.FoundSubscription{Name: p, Package: p},
				CSV:          &v1alpha1.FoundCSV{Name: p + ".v1.0.0", Version: "1.0.0", Phase: "Succeeded"}})
		}
		return s
	}
	clusters := []v1alpha1.FleetCluster{{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "silent"}}}
	clusters[0].Status.StaleSince = &metav1.Time{Time: now}
	scans := Scans{Clusters: clusters,
		Reports: map[string]*v1alpha1.OperatorScan{"a": newScan("echo", "db"), "b": newScan("echo")}}
	if got := scans.ListFoundPackages(""); !slices.Equal(got, []string{"db", "echo"}) {
		t.Errorf("packages %v", got)
	}
	report := BuildScanReport(scans, "echo")
	var states []ScanState
	for _, c := range report.Clusters {
		states = append(states, c.State)
	}
	if want := []ScanState{ScanCurrent, ScanStale, ScanNoReport}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if len(report.Packages) != 1 || len(report.Packages[0].Clusters) != 2 || len(report.Groups) == 0 ||
		len(report.Groups[0].Clusters) != 2 || report.Ownerless != nil {
		t.Errorf("report of one package: %+v", report)
	}
	report = BuildScanReport(scans, "")
	if len(report.Packages) != 2 || len(report.Ownerless) != 1 ||
		!slices.Equal(report.Ownerless[0].Clusters, []string{"a", "b"}) {
		t.Errorf("report of all packages: %+v", report)
	}
}
