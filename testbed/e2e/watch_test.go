// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// witness follows every change of an operator's installs on the hub, in the
// order in which the API server made them, and judges each one: that is the
// truth, whatever the hub's controllers believe.
type witness struct {
	t      *testing.T
	o      *operator
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	installs map[string]*v1alpha1.OperatorInstall
	events   int
	faults   []string
	// admittedTo holds the bundles that each cluster was ever admitted to.
	admittedTo map[string]map[string]bool
	// seen holds the CSVs that were seen on each cluster.
	seen map[string]seenCSV
}

// observe starts a witness. limit is how many clusters of a wave may be between
// admission and success at a time; waves are in order.
func observe(t *testing.T, o *operator, waves []string, limit int) *witness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &witness{t: t, o: o, cancel: cancel, installs: map[string]*v1alpha1.OperatorInstall{},
		admittedTo: map[string]map[string]bool{}, seen: map[string]seenCSV{}}
	w.follow(ctx, o.hub, &v1alpha1.OperatorInstallList{},
		[]client.ListOption{client.MatchingLabels{v1alpha1.LabelOperator: o.key.Name}}, func(object runtime.Object) {
			if oi, ok := object.(*v1alpha1.OperatorInstall); ok {
				w.judge(oi, waves, limit)
			}
		})
	for _, member := range platform.DefaultMembers() {
		c, err := shared.Client(member.Name, platform.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		w.follow(ctx, c, &operatorsv1alpha1.ClusterServiceVersionList{},
			[]client.ListOption{client.InNamespace(o.key.Name)}, func(object runtime.Object) {
				if csv, ok := object.(*operatorsv1alpha1.ClusterServiceVersion); ok {
					w.judgeCSV(member.Name, csv)
				}
			})
	}
	return w
}

// follow calls see for every object that is there or changes, over restarts of
// the API server.
func (w *witness) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, options []client.ListOption,
	see func(runtime.Object)) {
	start := list.DeepCopyObject().(client.ObjectList)
	if err := c.List(ctx, start, options...); err != nil {
		w.t.Fatal(err)
	}
	items, err := meta.ExtractList(start)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range items {
		see(item)
	}
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, start.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList),
				append(options, &client.ListOptions{Raw: &o})...)
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.done.Go(func() {
		for event := range watcher.ResultChan() {
			if event.Type == watch.Added || event.Type == watch.Modified {
				see(event.Object)
			}
		}
	})
}

func (w *witness) judge(oi *v1alpha1.OperatorInstall, waves []string, limit int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	w.installs[oi.Spec.Cluster] = oi
	if a := oi.Spec.Admission; a != nil {
		if w.admittedTo[oi.Spec.Cluster] == nil {
			w.admittedTo[oi.Spec.Cluster] = map[string]bool{}
		}
		w.admittedTo[oi.Spec.Cluster][a.Release.Bundle] = true
	}
	w.judgeConcurrency(waves, limit)
	w.judgeOrder(waves)
}

// judgeConcurrency counts the clusters of each wave that were admitted and have
// not succeeded.
func (w *witness) judgeConcurrency(waves []string, limit int) {
	for _, wave := range waves {
		var underway []string
		for name, oi := range w.installs {
			if a := oi.Spec.Admission; a != nil && a.Wave == wave && oi.Status.SucceededHash != a.Hash {
				underway = append(underway, name)
			}
		}
		if len(underway) > limit {
			w.faults = append(w.faults, fmt.Sprintf("%d clusters of wave %s are under way at a time: %v", len(underway),
				wave, underway))
		}
	}
}

// judgeOrder holds that no cluster is admitted to a release before every
// cluster of the earlier waves runs it.
func (w *witness) judgeOrder(waves []string) {
	position := map[string]int{}
	for i, wave := range waves {
		position[wave] = i
	}
	for name, later := range w.installs {
		a := later.Spec.Admission
		if a == nil {
			continue
		}
		for other, earlier := range w.installs {
			b := earlier.Spec.Admission
			if position[earlier.Labels[v1alpha1.LabelWave]] >= position[a.Wave] {
				continue
			}
			if b == nil || b.Revision < a.Revision || b.Revision == a.Revision &&
				earlier.Status.SucceededHash != a.Hash {
				w.faults = append(w.faults, fmt.Sprintf("%s (wave %s) was admitted to revision %d before %s ran it",
					name, a.Wave, a.Revision, other))
			}
		}
	}
}

// judgeCSV holds that OLM installs nothing that was not admitted. The witness
// follows two API servers, so the admission may be seen a little after the CSV:
// it is looked up when the test ends.
func (w *witness) judgeCSV(cluster string, csv *operatorsv1alpha1.ClusterServiceVersion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := cluster + "/" + csv.Name
	w.seen[key] = seenCSV{cluster, csv.Name}
}

type seenCSV struct{ cluster, name string }

// verdict ends the witness and fails the test for each fault.
func (w *witness) verdict() {
	w.t.Helper()
	w.cancel()
	w.done.Wait()
	for _, csv := range w.seen {
		if !w.admittedTo[csv.cluster][csv.name] {
			w.faults = append(w.faults, fmt.Sprintf("%s got %s, which was never admitted", csv.cluster, csv.name))
		}
	}
	if w.events == 0 {
		w.t.Error("the witness saw nothing")
	}
	for _, fault := range w.faults {
		w.t.Error(fault)
	}
	w.t.Logf("the witness saw %d changes and %d CSVs", w.events, len(w.seen))
}
