// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func ref(namespace string) v1alpha1.SourceReference {
	return v1alpha1.SourceReference{APIVersion: "hive.openshift.io/v1", Kind: "ClusterDeployment", Namespace: namespace,
		Name: "prod"}
}

func source(change ...func(*discovery.Source)) discovery.Source {
	s := discovery.Source{Ref: ref("a"), CreatedAt: noon.Add(-time.Hour), PowerState: v1alpha1.PowerRunning,
		Fields: map[string]string{"region": "eu", "version": "v1.34.1+k3s1"},
		Labels: map[string]string{"stage": "prod"}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func in(namespace string) func(*discovery.Source) {
	return func(s *discovery.Source) { s.Ref = ref(namespace) }
}

func older(s *discovery.Source)      { s.CreatedAt = s.CreatedAt.Add(-time.Hour) }
func notReady(s *discovery.Source)   { s.NotReady = "the cluster is not installed yet" }
func deleting(s *discovery.Source)   { s.Deleting = true }
func paused(s *discovery.Source)     { s.Paused = true }
func relocating(s *discovery.Source) { s.Relocating = true }
func asleep(s *discovery.Source)     { s.PowerState = v1alpha1.PowerHibernating }
func keepStatus(s *discovery.Source) { s.Labels = map[string]string{v1alpha1.LabelDiscover: "false"} }

var mapped = map[string]string{"region": "eu", "version": "v1.34.1_k3s1"}

// made is a FleetCluster that discovery made, in step with its source.
func made(change ...func(*v1alpha1.FleetCluster)) *v1alpha1.FleetCluster {
	of := ref("a")
	c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"region": "eu",
		"version": "v1.34.1_k3s1", "team": "a"}, Annotations: map[string]string{v1alpha1.AnnotationDiscovered: "true"}},
		Spec: v1alpha1.FleetClusterSpec{SourceRef: &of},
		Status: v1alpha1.FleetClusterStatus{Source: &v1alpha1.ClusterSource{State: v1alpha1.SourcePresent,
			PowerState: v1alpha1.PowerRunning, PowerStateSince: &metav1.Time{Time: noon.Add(-time.Minute)},
			Labels: mapped}}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func byHand(c *v1alpha1.FleetCluster) { c.Annotations = nil }
func unlinked(c *v1alpha1.FleetCluster) {
	c.Annotations, c.Spec.SourceRef, c.Status.Source = nil, nil, nil
}
func was(state v1alpha1.SourceState) func(*v1alpha1.FleetCluster) {
	return func(c *v1alpha1.FleetCluster) { c.Status.Source.State = state }
}
func label(key, value string) func(*v1alpha1.FleetCluster) {
	return func(c *v1alpha1.FleetCluster) { c.Labels[key] = value }
}
func ours(labels map[string]string) func(*v1alpha1.FleetCluster) {
	return func(c *v1alpha1.FleetCluster) { c.Status.Source.Labels = labels }
}

// outcome describes a decision in one line.
func outcome(d discovery.Decision) string {
	var words []string
	if d.Delete {
		return "delete"
	}
	if d.Write != nil {
		word := "write"
		if d.Write.Ref != nil {
			word += " " + d.Write.Ref.Namespace
		}
		words = append(words, word+" "+labels.FormatLabels(d.Write.Labels))
	}
	if s := d.Status; s != nil {
		words = append(words, string(s.State)+" "+string(s.PowerState))
		for _, c := range s.Clashes {
			words = append(words, "clash "+c.Namespace)
		}
	}
	for _, r := range d.Refused {
		words = append(words, r.Reason+" "+r.Source.Ref.Namespace)
	}
	return strings.Join(words, ", ")
}

func TestNext(t *testing.T) {
	one := source()
	own := func(change ...func(*discovery.Source)) *discovery.Source { s := source(change...); return &s }
	const written = "write a region=eu,version=v1.34.1_k3s1"
	for name, test := range map[string]struct {
		in   discovery.Input
		want string
	}{
		"nothing":      {discovery.Input{}, ""},
		"a new source": {discovery.Input{Candidates: []discovery.Source{one}}, written + ", Present Running"},
		"a new one hibernates": {discovery.Input{Candidates: []discovery.Source{source(asleep)}},
			written + ", Present Hibernating"},
		"not ready":             {discovery.Input{Candidates: []discovery.Source{source(notReady)}}, ""},
		"paused before":         {discovery.Input{Candidates: []discovery.Source{source(paused)}}, ""},
		"relocating before":     {discovery.Input{Candidates: []discovery.Source{source(relocating)}}, ""},
		"deleted before":        {discovery.Input{Candidates: []discovery.Source{source(deleting)}}, ""},
		"kept out by its label": {discovery.Input{Candidates: []discovery.Source{source(keepStatus)}}, ""},
		"two of one name: the oldest wins": {discovery.Input{Candidates: []discovery.Source{one, source(in("b"),
			older)}},
			"write b region=eu,version=v1.34.1_k3s1, Present Running, clash a, FleetClusterNameTaken a"},
		"of one age: by name": {discovery.Input{Candidates: []discovery.Source{source(in("b")), one}},
			written + ", Present Running, clash b, FleetClusterNameTaken b"},
		"the older one is not ready": {discovery.Input{Candidates: []discovery.Source{one, source(in("b"), older,
			notReady)}},
			written + ", Present Running"},
		"the name is too long": {discovery.Input{Name: strings.Repeat("a", 51), Candidates: []discovery.Source{one}},
			"FleetClusterNameInvalid a"},
		"the name has dots": {discovery.Input{Name: "prod.eu", Candidates: []discovery.Source{one}},
			"FleetClusterNameInvalid a"},

		"in step": {discovery.Input{Cluster: made(), Known: true, Own: own()}, "Present Running"},
		"region moved": {discovery.Input{Cluster: made(label("region", "us"), ours(map[string]string{"region": "us",
			"version": "v1.34.1_k3s1"})), Known: true, Own: own()}, written + ", Present Running"},
		"label removed": {discovery.Input{Cluster: made(), Known: true,
			Own: own(func(s *discovery.Source) { s.Fields = map[string]string{"region": "eu"} })},
			"write a region=eu, Present Running"},
		"a label of people stays": {discovery.Input{Cluster: made(label("region", "mine"), ours(map[string]string{
			"version": "v1.34.1_k3s1"})), Known: true, Own: own()}, "Present Running"},
		"people took a label": {discovery.Input{Cluster: made(label("region", "mine")), Known: true, Own: own()},
			written + ", Present Running"},
		"hibernates": {discovery.Input{Cluster: made(), Known: true, Own: own(asleep)},
			"Present Hibernating"},
		"paused": {discovery.Input{Cluster: made(label("region", "us")), Known: true,
			Own: own(paused)}, "Paused Running"},
		"relocating": {discovery.Input{Cluster: made(), Known: true, Own: own(relocating, deleting)},
			"Relocating Running"},
		"deleted while paused": {discovery.Input{Cluster: made(), Known: true, Own: own(paused, deleting)},
			"Paused Running"},
		"being deleted":      {discovery.Input{Cluster: made(), Known: true, Own: own(deleting)}, "delete"},
		"gone":               {discovery.Input{Cluster: made(), Known: true}, "delete"},
		"gone after a pause": {discovery.Input{Cluster: made(was(v1alpha1.SourcePaused)), Known: true}, "Moved "},
		"gone after relocating": {discovery.Input{Cluster: made(was(v1alpha1.SourceRelocating)), Known: true},
			"Moved "},
		"stays moved": {discovery.Input{Cluster: made(was(v1alpha1.SourceMoved)), Known: true}, "Moved "},
		"back after a move": {discovery.Input{Cluster: made(was(v1alpha1.SourceMoved)), Known: true, Own: own()},
			"Present Running"},
		"gone with all others":   {discovery.Input{Cluster: made(), Known: true, Empty: true}, "Missing "},
		"the kind is not served": {discovery.Input{Cluster: made()}, "Present Running"},
		"two FleetClusters follow": {discovery.Input{Cluster: made(), Known: true, Own: own(), Rival: "first"},
			"Taken "},

		"by hand with a sourceRef": {discovery.Input{Cluster: made(byHand, ours(nil), label("region", "us")),
			Known: true, Own: own(asleep)},
			"Present Hibernating"},
		"by hand, and nothing set": {discovery.Input{Cluster: made(byHand, ours(nil),
			func(c *v1alpha1.FleetCluster) { c.Labels = nil }), Known: true, Own: own()},
			"write region=eu,version=v1.34.1_k3s1, Present Running"},
		"by hand, gone":          {discovery.Input{Cluster: made(byHand), Known: true}, "Missing "},
		"by hand, being deleted": {discovery.Input{Cluster: made(byHand), Known: true, Own: own(deleting)}, "Missing "},
		"by hand, without one": {discovery.Input{Cluster: made(unlinked), Candidates: []discovery.Source{one}},
			" , clash a, FleetClusterNameTaken a"},
		"by hand, alone": {discovery.Input{Cluster: made(unlinked)}, ""},
		"another wants a name": {discovery.Input{Cluster: made(), Known: true, Own: own(),
			Candidates: []discovery.Source{source(in("b"))}}, "Present Running, clash b, FleetClusterNameTaken b"},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Now = noon
			test.in.Options.Labels = discovery.DefaultLabels()
			if test.in.Name == "" {
				test.in.Name = "prod"
			}
			got := discovery.Next(test.in)
			if outcome(got) != test.want {
				t.Errorf("%q, want %q", outcome(got), test.want)
			}
			for _, r := range got.Refused {
				if !strings.Contains(r.Message, "spec.sourceRef") {
					t.Errorf("a refusal says nothing of what to do: %s", r.Message)
				}
			}
		})
	}
}

func TestSelector(t *testing.T) {
	for selector, want := range map[string]bool{"stage=prod": true, "stage=test": false, "": true} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		in := discovery.Input{Name: "prod", Candidates: []discovery.Source{source()},
			Options: discovery.Options{Selector: parsed}}
		if got := discovery.Next(in).Write != nil; got != want {
			t.Errorf("selector %q makes a FleetCluster: %v", selector, got)
		}
	}
}

// TestPowerStateSince follows a cluster to sleep: the time moves with the state only.
func TestPowerStateSince(t *testing.T) {
	cluster := made()
	for i, step := range []struct {
		change func(*discovery.Source)
		want   time.Time
	}{{func(*discovery.Source) {}, noon.Add(-time.Minute)}, {asleep, noon.Add(time.Minute)},
		{asleep, noon.Add(time.Minute)}} {
		own := source(step.change)
		d := discovery.Next(discovery.Input{Now: noon.Add(time.Duration(i) * time.Minute), Name: "prod",
			Cluster: cluster,
			Known:   true,
			Own:     &own, Options: discovery.Options{Labels: discovery.DefaultLabels()}})
		if got := d.Status.PowerStateSince.Time; !got.Equal(step.want) {
			t.Errorf("step %d: since %s, want %s", i, got, step.want)
		}
		cluster.Status.Source = d.Status
	}
}

func TestMap(t *testing.T) {
	got, problems := discovery.MapLabels(map[string]string{"a": "region", "b": "labels/stage", "c": "missing",
		"d": "bad"},
		map[string]string{"region": "eu", "labels/stage": "prod", "bad": "a b"})
	if diff := cmp.Diff(map[string]string{"a": "eu", "b": "prod"}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "its bad cannot be the value of label d") {
		t.Errorf("problems %q", problems)
	}
}

func TestUnowned(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType,
		fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	fields := []metav1.ManagedFieldsEntry{
		entry("bellwether-discovery", metav1.ManagedFieldsOperationApply,
			`{"f:metadata":{"f:labels":{"f:region":{}}}}`),
		entry("kubectl-label", metav1.ManagedFieldsOperationUpdate,
			`{"f:metadata":{"f:labels":{".":{},"f:version":{}}}}`),
		entry("hub", metav1.ManagedFieldsOperationUpdate, `{"f:status":{}}`),
		{Manager: "odd"},
	}
	got := discovery.SelectUnownedLabels(map[string]string{"region": "eu", "version": "1", "platform": "aws"}, fields,
		"bellwether-discovery")
	if diff := cmp.Diff(map[string]string{"region": "eu", "platform": "aws"}, got); diff != "" {
		t.Errorf("unowned (-want +got):\n%s", diff)
	}
}

func TestCheckLabels(t *testing.T) {
	for name, test := range map[string]struct{ key, field, want string }{
		"a field":          {"stage", "namespace", ""},
		"a label":          {"example.com/stage", "labels/stage", ""},
		"a property":       {"zone", "properties/zone", ""},
		"an unknown field": {"stage", "spec.stage", "no field of a source"},
		"no name":          {"stage", "labels/", "no field of a source"},
		"no label":         {"sta ge", "region", "is no label"},
		"the hub's":        {"bellwether.dev/cluster", "region", "belongs to the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			err := discovery.CheckLabels(map[string]string{test.key: test.field})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
