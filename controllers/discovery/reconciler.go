// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery makes FleetClusters of what other systems know of clusters: Hive's
// ClusterDeployments, ClusterProfiles, and Clusters of Cluster API. Package sources reads
// those, package plan decides. It must not connect to a cluster, nor read a Secret.
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
	"github.com/bellwether-dev/bellwether/controllers/discovery/plan"
	"github.com/bellwether-dev/bellwether/controllers/discovery/sources"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// What the hub may read of sources, and that it may make and delete FleetClusters, is in the
// chart (templates/hub/discovery.yaml): only where a source is configured.

// Reconciler keeps the FleetCluster of one name, whether it exists or not.
type Reconciler struct {
	Client client.Client
	// Live reads past the cache, before anything is deleted or written.
	Live    client.Reader
	Events  events.EventRecorder
	Options plan.Options
	// Now is the hub's clock.
	Now func() time.Time

	watches  map[schema.GroupKind]*watch
	reported reportedRefusals
}

// Reconcile keeps the FleetCluster with the name of the request.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	in, err := r.observe(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observe sources: %w", err)
	}
	next := plan.Next(in)
	err = r.apply(ctx, in, next)
	r.refuse(ctx, in, next.Refused)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: kit.ConflictDelay}, nil
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) observe(ctx context.Context, name string) (plan.Input, error) {
	in := plan.Input{Now: r.Now(), Name: name, Options: r.Options}
	cluster := &v1alpha1.FleetCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read FleetCluster: %w", err)
	}
	if err == nil {
		in.Cluster = cluster
		if err := r.observeOwn(ctx, &in); err != nil {
			return in, err
		}
	}
	for _, w := range r.watches {
		candidates, err := r.candidates(ctx, w, in)
		if err != nil {
			return in, err
		}
		in.Candidates = append(in.Candidates, candidates...)
	}
	return in, nil
}

// observeOwn reads the source that the FleetCluster names.
func (r *Reconciler) observeOwn(ctx context.Context, in *plan.Input) error {
	ref := in.Cluster.Spec.SourceRef
	if ref == nil {
		return nil
	}
	kind, known := sources.Of(*ref)
	w := r.watches[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}]
	if !known || w == nil {
		return nil
	}
	seen := w.current()
	if seen == nil {
		return nil
	}
	var err error
	in.Known = true
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if in.Own, err = read(ctx, seen.cache, seen, key); err != nil {
		return err
	}
	if in.Rival, err = r.rival(ctx, in.Cluster); err != nil || in.Own != nil {
		return err
	}
	return r.observeAbsence(ctx, in, seen, key)
}

// read returns nil where the source does not exist.
func read(ctx context.Context, from client.Reader, seen *view, key client.ObjectKey) (*sources.Source, error) {
	object := seen.object()
	err := from.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", seen.kind.Kind, key, err)
	}
	source := seen.kind.Observe(object)
	return &source, nil
}

// observeAbsence looks past the cache: a FleetCluster is deleted because of what is not
// there. While the definition of the kind is being deleted, its objects go with it, which
// says nothing about clusters.
func (r *Reconciler) observeAbsence(ctx context.Context, in *plan.Input, seen *view, key client.ObjectKey) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	err := r.Live.Get(ctx, client.ObjectKey{Name: seen.kind.Definition()}, definition)
	if apierrors.IsNotFound(err) || err == nil && definition.DeletionTimestamp != nil {
		in.Known = false
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the definition of %s: %w", seen.kind.Kind, err)
	}
	if in.Own, err = read(ctx, r.Live, seen, key); err != nil || in.Own != nil {
		return err
	}
	list := seen.list()
	if err := r.Live.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("list %ss: %w", seen.kind.Kind, err)
	}
	in.Empty = len(list.Items) == 0
	return nil
}

// rival returns the oldest of the other FleetClusters that name the same source, if it is
// older than this one.
func (r *Reconciler) rival(ctx context.Context, cluster *v1alpha1.FleetCluster) (string, error) {
	all, err := r.namedBy(ctx, *cluster.Spec.SourceRef)
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

// namedBy returns the FleetClusters whose sourceRef is this one.
func (r *Reconciler) namedBy(ctx context.Context, ref v1alpha1.SourceReference) ([]v1alpha1.FleetCluster, error) {
	var list v1alpha1.FleetClusterList
	of := client.MatchingFields{indexSource: sources.Key(ref)}
	if err := r.Client.List(ctx, &list, of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list FleetClusters by their source: %w", err)
	}
	return list.Items, nil
}

// candidates are the sources of a kind that have the name and that no FleetCluster names.
func (r *Reconciler) candidates(ctx context.Context, w *watch, in plan.Input) ([]sources.Source, error) {
	seen := w.current()
	if seen == nil {
		return nil, nil
	}
	list := seen.list()
	if err := seen.cache.List(ctx, list, client.MatchingFields{indexName: in.Name}); err != nil {
		return nil, fmt.Errorf("list %ss by name: %w", seen.kind.Kind, err)
	}
	var candidates []sources.Source
	for i := range list.Items {
		source := seen.kind.Observe(&list.Items[i])
		named, err := r.namedBy(ctx, source.Ref)
		if err != nil {
			return nil, err
		}
		if len(named) == 0 {
			candidates = append(candidates, source)
		}
	}
	return candidates, nil
}

// apply writes nothing over a FleetCluster that is newer than the one that was decided about:
// what the cache does not have yet may be this controller's own last write.
func (r *Reconciler) apply(ctx context.Context, in plan.Input, next plan.Decision) error {
	if next.Delete {
		only := client.Preconditions{UID: &in.Cluster.UID, ResourceVersion: &in.Cluster.ResourceVersion}
		if err := r.Client.Delete(ctx, in.Cluster, only); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete FleetCluster %s, whose source is gone: %w", in.Name, err)
		}
		log.FromContext(ctx).Info("Deleted the FleetCluster of a source that is gone", "cluster", in.Name)
		return nil
	}
	var before *v1alpha1.ClusterSource
	var version string
	if in.Cluster != nil {
		before, version = in.Cluster.Status.Source, in.Cluster.ResourceVersion
	}
	if next.Write != nil {
		var err error
		if next.Status.Labels, version, err = r.write(ctx, in, *next.Write); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(before, next.Status) {
		return nil
	}
	return r.report(ctx, in.Name, version, next.Status)
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

// write applies what the FleetCluster has of its source. It returns the labels that are now
// this controller's, and the resource version. It does not force: a label that somebody else
// sets is theirs.
func (r *Reconciler) write(ctx context.Context, in plan.Input, content plan.Content) (map[string]string, string,
	error) {
	now := &v1alpha1.FleetCluster{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: in.Name}, now)
	switch {
	case apierrors.IsNotFound(err) && in.Cluster == nil:
	case err != nil:
		return nil, "", fmt.Errorf("read FleetCluster %s: %w", in.Name, err)
	case in.Cluster == nil || now.UID != in.Cluster.UID:
		// The cache lags behind: what is there now has to be decided about anew.
		return nil, "", apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.SchemeGroupVersion.Group,
			Resource: "fleetclusters"}, in.Name, errNewer)
	}
	labels := plan.Unowned(content.Labels, now.ManagedFields, string(kit.DiscoveryManager))
	now.Name = in.Name
	part := kit.Part{Object: now, Labels: labels}
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
			"source", sources.Describe(*content.Ref))
	}
	return labels, version, nil
}

// report writes status.source, which is this controller's own, to one version of the
// FleetCluster.
func (r *Reconciler) report(ctx context.Context, name, version string, source *v1alpha1.ClusterSource) error {
	var err error
	if source == nil {
		err = r.unreport(ctx, name, version)
	} else {
		err = r.applySource(ctx, name, version, source)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of FleetCluster %s: %w", name, err)
	}
	return nil
}

func (r *Reconciler) applySource(ctx context.Context, name, version string, source *v1alpha1.ClusterSource) error {
	of := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	part := kit.Part{Object: of, Status: statusOnly{Source: source}}
	return part.ApplyStatus(ctx, r.Client, kit.DiscoveryManager)
}

// unreport removes status.source by a merge patch: where nothing else is in the status, the
// API server makes null of it when the last field that was applied goes, and then refuses it.
func (r *Reconciler) unreport(ctx context.Context, name, version string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":{"source":null}}`, version)
	cluster := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return r.Client.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch), kit.DiscoveryManager)
}

// refuse emits an Event on each source that does not become a FleetCluster, once for each
// reason.
func (r *Reconciler) refuse(ctx context.Context, in plan.Input, refused []plan.Refusal) {
	for _, refusal := range r.reported.selectNew(in.Name, refused) {
		source := refusal.Source
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: source.Ref.APIVersion,
			Kind: source.Ref.Kind}, ObjectMeta: metav1.ObjectMeta{Namespace: source.Ref.Namespace,
			Name: source.Ref.Name, UID: source.UID}}
		log.FromContext(ctx).Info("A source is not in the fleet", "source", sources.Describe(source.Ref),
			"reason", refusal.Reason, "message", refusal.Message)
		kit.Emit(r.Events, object, refusal.Reason, "Discover", "%s", refusal.Message)
	}
}

// reportedRefusals remembers which refusals were reported for each name, so that a source that changes often
// has no Event each time. It is lost with the process, and then they are reported again.
type reportedRefusals struct {
	mu     sync.Mutex
	byName map[string]map[string]string
}

func (r *reportedRefusals) selectNew(name string, refused []plan.Refusal) []plan.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[string]map[string]string{}
	}
	before, now := r.byName[name], map[string]string{}
	var news []plan.Refusal
	for _, refusal := range refused {
		key := sources.Key(refusal.Source.Ref)
		now[key] = refusal.Message
		if before[key] != refusal.Message {
			news = append(news, refusal)
		}
	}
	delete(r.byName, name)
	if len(now) > 0 {
		r.byName[name] = now
	}
	return news
}

// object returns an empty object of the view's kind.
func (v *view) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v.kind.WithVersion(v.version))
	return o
}

func (v *view) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	gvk := v.kind.WithVersion(v.version)
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	return list
}
