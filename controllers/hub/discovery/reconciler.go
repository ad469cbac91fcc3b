// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery creates FleetClusters from the cluster objects of other systems:
// Hive's ClusterDeployments, ClusterProfiles, and Clusters of Cluster API. Package
// fleet/discovery interprets these objects and decides. This package must not connect to a
// cluster and must not read a Secret.
package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/fleet/discovery"
)

// The permissions to read sources, and to create and delete FleetClusters, are in the chart
// (templates/hub/discovery.yaml), because they are needed only if a source is configured.

// Reconciler keeps the FleetCluster with one name in sync with its source. The
// FleetCluster need not exist.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without the cache. It is used before an
	// object is deleted or written.
	Live    client.Reader
	Events  events.EventRecorder
	Options discovery.Options
	// Now is the hub's clock.
	Now func() time.Time

	watches  map[schema.GroupKind]*watch
	reported reportedRefusals
}

// Reconcile creates, updates or deletes the FleetCluster with the name of the request, and
// reports the sources that it refuses.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe sources: %w", err)
	}
	next := discovery.Next(in)
	err = r.apply(ctx, in, next)
	r.reportRefusals(ctx, in, next.Refused)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kit.ConflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// observe gathers the input of discovery.Next for one name: the FleetCluster, its source, and
// the sources that could become this FleetCluster.
func (r *Reconciler) observe(ctx context.Context, name string) (discovery.Input, error) {
	in := discovery.Input{Now: r.Now(), Name: name, Options: r.Options}
	cluster := &v1alpha1.FleetCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read FleetCluster: %w", err)
	}
	if err == nil {
		in.Cluster = cluster
		if err := r.observeOwnSource(ctx, &in); err != nil {
			return in, err
		}
	}
	for _, w := range r.watches {
		candidates, err := r.listCandidates(ctx, w, in)
		if err != nil {
			return in, err
		}
		in.Candidates = append(in.Candidates, candidates...)
	}
	return in, nil
}

// observeOwnSource reads the source that the FleetCluster names. It leaves in.Known false if the
// kind of the source is not watched.
func (r *Reconciler) observeOwnSource(ctx context.Context, in *discovery.Input) error {
	ref := in.Cluster.Spec.SourceRef
	if ref == nil {
		return nil
	}
	kind, known := discovery.KindOf(*ref)
	w := r.watches[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}]
	if !known || w == nil {
		return nil
	}
	v := w.loadView()
	if v == nil {
		return nil
	}
	var err error
	in.Known = true
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if in.Own, err = readSource(ctx, v.cache, v, key); err != nil {
		return err
	}
	if in.Rival, err = r.findOlderRival(ctx, in.Cluster); err != nil || in.Own != nil {
		return err // only a missing source is checked again without the cache
	}
	return r.observeAbsence(ctx, in, v, key)
}

// readSource reads a source from the reader. It returns nil if the source does not exist.
func readSource(ctx context.Context, reader client.Reader, v *view, key client.ObjectKey) (*discovery.Source, error) {
	object := v.newObject()
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", v.kind.Kind, key, err)
	}
	source := v.kind.Observe(object)
	return &source, nil
}

// observeAbsence verifies without the cache that a source is missing, because its FleetCluster
// might be deleted as a result. If the definition of the kind is missing or is being deleted,
// the missing source says nothing about the cluster, and in.Known becomes false. in.Empty
// reports that no object of the kind exists.
func (r *Reconciler) observeAbsence(ctx context.Context, in *discovery.Input, v *view, key client.ObjectKey) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	err := r.Live.Get(ctx, client.ObjectKey{Name: v.kind.Definition()}, definition)
	isBeingDeleted := err == nil && definition.DeletionTimestamp != nil
	if apierrors.IsNotFound(err) || isBeingDeleted {
		in.Known = false
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the definition of %s: %w", v.kind.Kind, err)
	}
	if in.Own, err = readSource(ctx, r.Live, v, key); err != nil || in.Own != nil {
		return err
	}
	list := v.newList()
	if err := r.Live.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("list %ss: %w", v.kind.Kind, err)
	}
	in.Empty = len(list.Items) == 0
	return nil
}

// findOlderRival returns the name of the oldest FleetCluster that names the same source; empty
// if the given cluster is the oldest. If several clusters were created in the same second, the
// first cluster by name counts as the oldest.
func (r *Reconciler) findOlderRival(ctx context.Context, cluster *v1alpha1.FleetCluster) (string, error) {
	all, err := r.listClustersOfSource(ctx, *cluster.Spec.SourceRef)
	if err != nil || len(all) == 0 {
		return "", err
	}
	oldest := slices.MinFunc(all, func(a, b v1alpha1.FleetCluster) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	if oldest.Name == cluster.Name {
		return "", nil
	}
	return oldest.Name, nil
}

// listClustersOfSource returns the FleetClusters whose sourceRef is ref.
func (r *Reconciler) listClustersOfSource(ctx context.Context, ref v1alpha1.SourceReference) ([]v1alpha1.FleetCluster,
	error) {
	var list v1alpha1.FleetClusterList
	bySource := client.MatchingFields{indexSource: discovery.SourceKey(ref)}
	if err := r.Client.List(ctx, &list, bySource, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list FleetClusters by their source: %w", err)
	}
	return list.Items, nil
}

// listCandidates returns the sources of one kind that have the name of the input and
// that no FleetCluster names.
func (r *Reconciler) listCandidates(ctx context.Context, w *watch, in discovery.Input) ([]discovery.Source, error) {
	v := w.loadView()
	if v == nil {
		return nil, nil
	}
	list := v.newList()
	if err := v.cache.List(ctx, list, client.MatchingFields{indexName: in.Name}); err != nil {
		return nil, fmt.Errorf("list %ss by name: %w", v.kind.Kind, err)
	}
	var candidates []discovery.Source
	for i := range list.Items {
		source := v.kind.Observe(&list.Items[i])
		clusters, err := r.listClustersOfSource(ctx, source.Ref)
		if err != nil {
			return nil, err
		}
		if len(clusters) == 0 {
			candidates = append(candidates, source)
		}
	}
	return candidates, nil
}

// apply deletes or writes the FleetCluster and its status. Each write is bound to the
// resource version that the decision is based on, because the cache might not have
// this controller's last write.
func (r *Reconciler) apply(ctx context.Context, in discovery.Input, next discovery.Decision) error {
	if next.Delete {
		preconditions := client.Preconditions{UID: &in.Cluster.UID, ResourceVersion: &in.Cluster.ResourceVersion}
		if err := r.Client.Delete(ctx, in.Cluster, preconditions); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete FleetCluster %s, whose source is gone: %w", in.Name, err)
		}
		log.FromContext(ctx).Info("Deleted the FleetCluster of a source that is gone", "cluster", in.Name)
		return nil
	}
	var previous *v1alpha1.ClusterSource
	var version string
	if in.Cluster != nil {
		previous, version = in.Cluster.Status.Source, in.Cluster.ResourceVersion
	}
	if next.Write != nil {
		var err error
		if next.Status.Labels, version, err = r.applyCluster(ctx, in, *next.Write); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(previous, next.Status) {
		return nil
	}
	return r.writeSourceStatus(ctx, in.Name, version, next.Status)
}

// The parts of a FleetCluster's spec and status that DiscoveryManager owns.
type (
	sourceOnly struct {
		SourceRef *v1alpha1.SourceReference `json:"sourceRef"`
	}
	statusOnly struct {
		Source *v1alpha1.ClusterSource `json:"source"`
	}
)

// applyCluster writes the labels, the annotation and the sourceRef that the FleetCluster gets
// from its source. It returns the labels that this controller owns and the new resource version.
// It does not force: if another manager sets a label, that manager keeps the label.
func (r *Reconciler) applyCluster(ctx context.Context, in discovery.Input,
	content discovery.Content) (map[string]string,
	string, error) {
	live := &v1alpha1.FleetCluster{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: in.Name}, live)
	switch {
	case apierrors.IsNotFound(err) && in.Cluster == nil: // the apply creates the FleetCluster
	case err != nil:
		return nil, "", fmt.Errorf("read FleetCluster %s: %w", in.Name, err)
	case in.Cluster == nil || live.UID != in.Cluster.UID:
		// The cache is outdated: the newer FleetCluster must be read and decided on first.
		return nil, "", apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group,
			Resource: "fleetclusters"}, in.Name, errOutdatedCache)
	}
	labels := discovery.SelectUnownedLabels(content.Labels, live.ManagedFields, string(kit.DiscoveryManager))
	live.Name = in.Name
	part := kit.Part{Object: live, Labels: labels}
	if content.Ref != nil {
		part.Annotations = map[string]string{v1alpha1.AnnotationDiscovered: "true"}
		part.Spec = sourceOnly{SourceRef: content.Ref}
	}
	version, err := part.Apply(ctx, r.Client, kit.DiscoveryManager)
	if err != nil {
		return nil, "", fmt.Errorf("apply FleetCluster %s: %w", in.Name, err)
	}
	if in.Cluster == nil {
		log.FromContext(ctx).Info("Created a FleetCluster", "cluster", in.Name,
			"source", discovery.DescribeSource(*content.Ref))
	}
	return labels, version, nil
}

// writeSourceStatus writes status.source into one version of the FleetCluster. This
// controller owns the field. If source is nil, the field is removed. A missing
// FleetCluster is not an error.
func (r *Reconciler) writeSourceStatus(ctx context.Context, name, version string,
	source *v1alpha1.ClusterSource) error {
	var err error
	if source == nil {
		err = r.removeSourceStatus(ctx, name, version)
	} else {
		err = r.applySourceStatus(ctx, name, version, source)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of FleetCluster %s: %w", name, err)
	}
	return nil
}

// applySourceStatus applies status.source to one version of the FleetCluster.
func (r *Reconciler) applySourceStatus(ctx context.Context, name, version string,
	source *v1alpha1.ClusterSource) error {
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	part := kit.Part{Object: cluster, Status: statusOnly{Source: source}}
	return part.ApplyStatus(ctx, r.Client, kit.DiscoveryManager)
}

// removeSourceStatus removes status.source with a merge patch. An apply would not work if the
// status has no other field: the API server sets the status to null when its last applied field
// is removed, and then refuses the null.
func (r *Reconciler) removeSourceStatus(ctx context.Context, name, version string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"source":null}}`, version)
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return r.Client.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch), kit.DiscoveryManager)
}

// reportRefusals emits an Event on each source that does not become a
// FleetCluster, once for each reason.
func (r *Reconciler) reportRefusals(ctx context.Context, in discovery.Input, refused []discovery.Refusal) {
	for _, refusal := range r.reported.recordRefusals(in.Name, refused) {
		source := refusal.Source
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: source.Ref.APIVersion,
			Kind: source.Ref.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: source.Ref.Namespace,
			Name: source.Ref.Name, UID: source.UID}}
		log.FromContext(ctx).Info("A source is not in the fleet", "source", discovery.DescribeSource(source.Ref),
			"reason", refusal.Reason, "message", refusal.Message)
		kit.Emit(r.Events, object, refusal.Reason, "Discover", "%s", refusal.Message)
	}
}

// reportedRefusals records which refusals were reported for each name, so that a source that
// changes often does not get an Event each time. It is lost when the process ends; the
// refusals are then reported again.
type reportedRefusals struct {
	mu     sync.Mutex
	byName map[string]map[string]string
}

// recordRefusals replaces the recorded refusals of a name, and returns the refusals whose
// message was not recorded yet.
func (r *reportedRefusals) recordRefusals(name string, refused []discovery.Refusal) []discovery.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]map[string]string{}
	}
	previous, current := r.byName[name], map[string]string{}
	var news []discovery.Refusal
	for _, refusal := range refused {
		key := discovery.SourceKey(refusal.Source.Ref)
		current[key] = refusal.Message
		if previous[key] != refusal.Message {
			news = append(news, refusal)
		}
	}
	delete(r.byName, name)
	if len(current) > 0 {
		r.byName[name] = current
	}
	return news
}

// newObject returns an empty object of the view's kind.
func (v *view) newObject() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v.kind.WithVersion(v.version))
	return o
}

// newList returns an empty list of the view's kind.
func (v *view) newList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	gvk := v.kind.WithVersion(v.version)
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}
