// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func selecting(least int32, age time.Duration) v1alpha1.ProbeTarget {
	return v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Port: 80, Path: "/healthz",
		Selector: &v1alpha1.TargetSelector{Min: ptr.To(least), MinAge: &metav1.Duration{Duration: age},
			MatchLabels: map[string]string{"app": "echo"}}}}
}

func TestSelect(t *testing.T) {
	echo := map[string]string{"app": "echo"}
	object := func(name string, age time.Duration) ObjectMeta {
		return ObjectMeta{Name: name, Labels: echo, Created: noon.Add(-age)}
	}
	deleting := object("c", time.Hour)
	deleting.Deleting = true
	var many []ObjectMeta
	for i := range v1alpha1.MaxSelectedTargets + 5 {
		many = append(many, object(fmt.Sprintf("echo-%03d", i), time.Hour))
	}
	slices.Reverse(many)
	for name, tc := range map[string]struct {
		target   v1alpha1.ProbeTarget
		objects  []ObjectMeta
		matching int
		names    []string
		tooFew   string
		recheck  time.Duration
	}{
		"in order of their names": {target: selecting(1, 0),
			objects: []ObjectMeta{object("b", 0), object("a", 0)}, matching: 2, names: []string{"a", "b"}},
		"other labels and objects that are being deleted": {target: selecting(1, 0), objects: []ObjectMeta{
			object("a", 0), deleting, {Name: "other", Labels: map[string]string{"app": "other"}}},
			matching: 1, names: []string{"a"}},
		"young ones later, and the oldest of them first": {target: selecting(3, 2*time.Minute), objects: []ObjectMeta{
			object("a", time.Hour), object("b", 30*time.Second), object("c", 50*time.Second)},
			matching: 3, names: []string{"a"}, recheck: 70 * time.Second},
		"fewer than min": {target: selecting(2, 0), objects: []ObjectMeta{object("a", 0)}, matching: 1,
			names: []string{"a"}, tooFew: "the selector matches 1 Service in namespace ns, and its min is 2"},
		"none, and none is required": {target: selecting(0, 0)},
		"none": {target: selecting(1, 0),
			tooFew: "the selector matches 0 Services in namespace ns, and its min is 1"},
		"the first of too many": {target: selecting(1, 0), objects: many, matching: 105,
			names: namesOf(many[5:])},
	} {
		t.Run(name, func(t *testing.T) {
			selection, failure := ReadSelection(tc.target)
			if failure != nil {
				t.Fatal(failure)
			}
			got := Select("ns", *selection, tc.objects, noon)
			want := Selected{Kind: KindService, Matching: tc.matching, Names: tc.names, RecheckAfter: tc.recheck}
			if tc.tooFew != "" {
				want.TooFew = &Failure{Reason: v1alpha1.ReasonTargetNotFound, Message: tc.tooFew}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("selected (-want +got):\n%s", diff)
			}
		})
	}
}

// namesOf returns the names of objects that are in the opposite order.
func namesOf(objects []ObjectMeta) []string {
	var names []string
	for _, object := range slices.Backward(objects) {
		names = append(names, object.Name)
	}
	return names
}

func TestReadSelection(t *testing.T) {
	byLabel := func() *v1alpha1.TargetSelector {
		return &v1alpha1.TargetSelector{MatchLabels: map[string]string{"a": "b"}}
	}
	host := &v1alpha1.HostTarget{Path: "/x", Selector: byLabel()}
	named := v1alpha1.HostTarget{Path: "/x", Name: "one"}
	for kind, tc := range map[Kind]struct{ target, named v1alpha1.ProbeTarget }{
		KindService: {v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Port: 80, Selector: byLabel()}},
			v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Port: 80, Name: "one"}}},
		KindRoute:     {v1alpha1.ProbeTarget{Route: host}, v1alpha1.ProbeTarget{Route: &named}},
		KindIngress:   {v1alpha1.ProbeTarget{Ingress: host}, v1alpha1.ProbeTarget{Ingress: &named}},
		KindHTTPRoute: {v1alpha1.ProbeTarget{HTTPRoute: host}, v1alpha1.ProbeTarget{HTTPRoute: &named}},
	} {
		got, failure := ReadSelection(tc.target)
		if failure != nil || got.Kind != kind || got.Min != 1 || got.MinAge != DefaultMinAge ||
			got.Labels.String() != "a=b" {
			t.Errorf("%s: %+v, %+v", kind, got, failure)
		}
		if diff := cmp.Diff(tc.named, NameTarget(tc.target, "one")); diff != "" {
			t.Errorf("%s by name (-want +got):\n%s", kind, diff)
		}
		if selection, _ := ReadSelection(tc.named); selection != nil {
			t.Errorf("%s by name selects %+v", kind, selection)
		}
	}
	unusable := byLabel()
	unusable.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}
	_, failure := ReadSelection(v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Selector: unusable}})
	if failure == nil || failure.Reason != v1alpha1.ReasonInvalidSpec {
		t.Errorf("a selector without values: %+v", failure)
	}
}
