// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/chaos"
	"github.com/bellwether-dev/bellwether/testbed/platform"
	"github.com/bellwether-dev/bellwether/testbed/poll"
)

// recorder follows every change of an operator's installs on the hub, in the
// order in which the API server made them, and has each one judged: that is the
// truth, whatever the hub's controllers believe.
type recorder struct {
	t      *testing.T
	o      *operator
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	judge  chaos.Judge
	events int
	// seen holds the CSVs that were seen on each cluster.
	seen map[seenCSV]bool
}

type seenCSV struct{ cluster, name string }

// observe starts a recorder.
func observe(t *testing.T, o *operator, judge chaos.Judge) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &recorder{t: t, o: o, cancel: cancel, judge: judge, seen: map[seenCSV]bool{}}
	t.Cleanup(r.stop)
	r.follow(ctx, o.hub, &v1alpha1.OperatorInstallList{},
		[]client.ListOption{client.MatchingLabels{v1alpha1.LabelOperator: o.key.Name}}, r.seeInstalls)
	for _, member := range platform.DefaultMembers() {
		c, err := shared.Client(member.Name, platform.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		r.follow(ctx, c, &operatorsv1alpha1.ClusterServiceVersionList{},
			[]client.ListOption{client.InNamespace(o.key.Name)},
			func(objects []runtime.Object) { r.seeCSVs(member.Name, objects) })
	}
	return r
}

// follow calls see for all objects that are there, and for each one that changes, over restarts of the API server.
func (r *recorder) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, options []client.ListOption,
	see func([]runtime.Object)) {
	r.t.Helper()
	watcher, err := r.watch(ctx, c, list, options, see)
	if err != nil {
		r.t.Fatal(err)
	}
	r.done.Go(func() {
		for ctx.Err() == nil {
			for event := range watcher.ResultChan() {
				if event.Type == watch.Added || event.Type == watch.Modified {
					see([]runtime.Object{event.Object})
				}
			}
			// The API server has forgotten where the watch was: everything is read again.
			_ = poll.Until(ctx, look, func() error {
				watcher, err = r.watch(ctx, c, list, options, see)
				return err
			})
		}
	})
}

// watch reads all objects, and watches from there on.
func (r *recorder) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, options []client.ListOption,
	see func([]runtime.Object)) (watch.Interface, error) {
	start := list.DeepCopyObject().(client.ObjectList)
	if err := c.List(ctx, start, options...); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(start)
	if err != nil {
		return nil, err
	}
	see(items)
	return toolswatch.NewRetryWatcherWithContext(ctx, start.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList),
				append(options, &client.ListOptions{Raw: &o})...)
		},
	})
}

func (r *recorder) seeInstalls(objects []runtime.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events += len(objects)
	installs := make([]*v1alpha1.OperatorInstall, 0, len(objects))
	for _, object := range objects {
		if oi, ok := object.(*v1alpha1.OperatorInstall); ok {
			installs = append(installs, oi)
		}
	}
	r.judge.See(time.Now(), installs...)
}

// seeCSVs remembers CSVs. The recorder follows several API servers, so the admission may be seen a little after the
// CSV: it is looked up when the test ends.
func (r *recorder) seeCSVs(cluster string, objects []runtime.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range objects {
		if csv, ok := object.(*operatorsv1alpha1.ClusterServiceVersion); ok {
			r.seen[seenCSV{cluster, csv.Name}] = true
		}
	}
}

func (r *recorder) stop() {
	r.cancel()
	r.done.Wait()
}

// verdict ends the recorder and fails the test for each fault. hops are the bundles on the way to a bundle: a cluster
// that was admitted to that one may have them.
func (r *recorder) verdict(hops map[string][]string) {
	r.t.Helper()
	r.stop()
	faults := r.judge.Faults()
	for csv := range r.seen {
		if !r.mayHave(csv, hops) {
			faults = append(faults, fmt.Sprintf("%s got %s, which was never admitted", csv.cluster, csv.name))
		}
	}
	if r.events == 0 || len(r.seen) == 0 {
		r.t.Error("the recorder saw nothing")
	}
	for _, fault := range faults {
		r.t.Error(fault)
	}
	r.t.Logf("the recorder saw %d changes and %d CSVs", r.events, len(r.seen))
}

func (r *recorder) mayHave(csv seenCSV, hops map[string][]string) bool {
	if r.judge.Admitted(csv.cluster, csv.name) {
		return true
	}
	for bundle, onTheWay := range hops {
		for _, hop := range onTheWay {
			if hop == csv.name && r.judge.Admitted(csv.cluster, bundle) {
				return true
			}
		}
	}
	return false
}
