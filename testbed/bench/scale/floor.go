// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// writers is how many writes the floor makes at a time: as many as hollow agents reconcile at a time.
const writers = 64

// floor makes the same writes as a rollout did, as fast as the API server takes them: a client that decides nothing,
// reads nothing and watches nothing. Neither the hub nor the agents run meanwhile. It writes objects of the same
// sizes: copies of the OperatorInstalls that are there, and other objects as they are. It returns how long that took,
// and which writes it left out, because it does not know them.
func (l *lab) floor(ctx context.Context, writes map[operation]int) (time.Duration, map[operation]int, error) {
	f := &floorRun{k: l.Stage}
	left, err := f.plan(ctx, writes)
	if err != nil {
		return 0, nil, err
	}
	if err := carryOut(ctx, slices.Collect(slices.Chunk(f.before, 1))); err != nil {
		return 0, nil, err
	}
	began := time.Now()
	if err := carryOut(ctx, f.sequences); err != nil {
		return 0, nil, err
	}
	return time.Since(began), left, f.clear(ctx)
}

// carryOut makes the writes of each sequence in order, several sequences at a time.
func carryOut(ctx context.Context, sequences [][]write) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, sequence := range sequences {
		group.Go(func() error {
			for _, write := range sequence {
				if err := write(ctx); err != nil {
					return fmt.Errorf("write: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

type write func(ctx context.Context) error

// floorRun has what is to be written: the writes of a sequence follow each other, because they are of one object.
type floorRun struct {
	k client.Client
	// before is made before the clock starts.
	before    []write
	sequences [][]write
	made      []client.Object
}

const (
	groupInstalls = "operatorinstalls"
	status        = "status"
)

// plan lays the writes out, and returns those that it does not know.
func (f *floorRun) plan(ctx context.Context, writes map[operation]int) (map[operation]int, error) {
	left := map[operation]int{}
	for o, n := range writes {
		left[o] = n
	}
	take := func(verb, resource, subresource string) int {
		o := operation{verb, resource, subresource}
		n := left[o]
		delete(left, o)
		return n
	}
	var installs v1alpha1.OperatorInstallList
	if err := f.k.List(ctx, &installs); err != nil {
		return nil, fmt.Errorf("list OperatorInstalls: %w", err)
	}
	f.installs(installs.Items, take("POST", groupInstalls, ""), take("APPLY", groupInstalls, ""),
		take("PATCH", groupInstalls, ""), take("PATCH", groupInstalls, status)+take("PUT", groupInstalls, status))
	f.events(installs.Items, take("POST", "events", ""), take("PATCH", "events", ""))
	var leases coordinationv1.LeaseList
	if err := f.k.List(ctx, &leases); err != nil {
		return nil, fmt.Errorf("list Leases: %w", err)
	}
	f.leases(leases.Items, take("PUT", "leases", "")+take("PATCH", "leases", ""))
	for resource, list := range map[string]client.ObjectList{
		"fleetclusters": &v1alpha1.FleetClusterList{}, "operatorrollouts": &v1alpha1.OperatorRolloutList{},
		"managedoperators": &v1alpha1.ManagedOperatorList{},
	} {
		if err := f.statuses(ctx, list, take("PATCH", resource, status)); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// share is the i-th of n parts of a number, as equal as whole numbers permit.
func share(number, i, n int) int { return number*(i+1)/n - number*i/n }

// installs writes copies of OperatorInstalls: so many are made, and so many of each other write are spread over all
// copies. The copies that are not among those that are to be made are made before.
func (f *floorRun) installs(from []v1alpha1.OperatorInstall, posts, applies, patches, statuses int) {
	if len(from) == 0 {
		return
	}
	for i := range from {
		one := &from[i]
		object := &v1alpha1.OperatorInstall{
			ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name + "-floor", Labels: one.Labels},
			Spec:       one.Spec,
		}
		object.Spec.Admission = nil
		f.made = append(f.made, object)
		var all []write
		create := func(ctx context.Context) error {
			return f.k.Create(ctx, object.DeepCopy(), client.FieldOwner("floor"))
		}
		if i < posts {
			all = append(all, create)
		} else {
			f.before = append(f.before, create)
		}
		for n := range share(applies, i, len(from)) {
			all = append(all, f.admit(one, object, n))
		}
		for n := range share(patches, i, len(from)) {
			all = append(all, f.merge(object, false, map[string]any{"metadata": map[string]any{
				"finalizers": []string{"floor.example.com/" + strconv.Itoa(n)}}}))
		}
		for n := range share(statuses, i, len(from)) {
			all = append(all, f.report(one, object, n))
		}
		f.sequences = append(f.sequences, all)
	}
}

// admit applies the whole spec, as an admission does.
func (f *floorRun) admit(from, to *v1alpha1.OperatorInstall, n int) write {
	spec := *from.Spec.DeepCopy()
	if spec.Admission != nil {
		spec.Admission.Revision += int64(n)
	}
	object := map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "OperatorInstall",
		"metadata": map[string]any{"name": to.Name, "namespace": to.Namespace, "labels": to.Labels}, "spec": spec,
	}
	text, err := json.Marshal(object)
	return func(ctx context.Context) error {
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		return f.k.Patch(ctx, to.DeepCopy(), client.RawPatch(types.ApplyPatchType, text),
			client.FieldOwner("floor-apply"), client.ForceOwnership)
	}
}

// report patches the conditions, as each report of an agent does.
func (f *floorRun) report(from, to *v1alpha1.OperatorInstall, n int) write {
	after := from.Status.DeepCopy()
	for i := range after.Conditions {
		after.Conditions[i].Message = fmt.Sprintf("%s (%d)", after.Conditions[i].Message, n)
	}
	return f.merge(to, true, map[string]any{"status": after})
}

func (f *floorRun) merge(to client.Object, ofStatus bool, content map[string]any) write {
	text, err := json.Marshal(content)
	return func(ctx context.Context) error {
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		object, patch := to.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, text)
		if ofStatus {
			return f.k.Status().Patch(ctx, object, patch)
		}
		return f.k.Patch(ctx, object, patch)
	}
}

// events makes Events as agents and the hub do, and changes some of them.
func (f *floorRun) events(of []v1alpha1.OperatorInstall, posts, patches int) {
	for i := range posts {
		one := &of[i%max(len(of), 1)]
		now := metav1.NewMicroTime(time.Now())
		object := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: fmt.Sprintf("%s.floor-%d", one.Name, i)},
			EventTime:  now, ReportingController: "bellwether-agent", ReportingInstance: "bellwether-agent-floor",
			Action: "Reconcile", Reason: "Progressing", Type: corev1.EventTypeNormal,
			Note: "The catalog view is being served.", Regarding: corev1.ObjectReference{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "OperatorInstall", Namespace: one.Namespace,
				Name: one.Name, UID: one.UID},
		}
		f.made = append(f.made, object)
		all := []write{func(ctx context.Context) error { return f.k.Create(ctx, object.DeepCopy()) }}
		for n := range share(patches, i, posts) {
			all = append(all, f.merge(object, false, map[string]any{"series": map[string]any{"count": n + 2,
				"lastObservedTime": now}}))
		}
		f.sequences = append(f.sequences, all)
	}
}

func (f *floorRun) leases(all []coordinationv1.Lease, puts int) {
	for i := range all {
		var some []write
		for n := range share(puts, i, len(all)) {
			some = append(some, f.merge(&all[i], false, map[string]any{"spec": map[string]any{
				"renewTime": metav1.NewMicroTime(time.Now().Add(time.Duration(n) * time.Second))}}))
		}
		f.sequences = append(f.sequences, some)
	}
}

// statuses patches the conditions of the objects of a kind.
func (f *floorRun) statuses(ctx context.Context, list client.ObjectList, patches int) error {
	if err := f.k.List(ctx, list); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	for i := range objects {
		object := objects[i].(kit.Object)
		var some []write
		for n := range share(patches, i, len(objects)) {
			changed := slices.Clone(*object.StatusConditions())
			for c := range changed {
				changed[c].Message = fmt.Sprintf("%s (%d)", changed[c].Message, n)
			}
			some = append(some, f.merge(object, true, map[string]any{"status": map[string]any{"conditions": changed}}))
		}
		f.sequences = append(f.sequences, some)
	}
	return nil
}

// clear removes what was made.
func (f *floorRun) clear(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, object := range f.made {
		group.Go(func() error {
			if install, ok := object.(*v1alpha1.OperatorInstall); ok {
				text := []byte(`{"metadata":{"finalizers":null}}`)
				if err := f.k.Patch(ctx, install.DeepCopy(), client.RawPatch(types.MergePatchType, text)); err != nil {
					return client.IgnoreNotFound(err)
				}
			}
			return client.IgnoreNotFound(f.k.Delete(ctx, object.DeepCopyObject().(client.Object)))
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("remove what was written: %w", err)
	}
	return nil
}
