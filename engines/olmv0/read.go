// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/rollback"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// readData reads the data that an action requests, and adds it to the observation.
func (e *Engine) readData(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation, a plan.Action) error {
	switch a.Kind {
	case plan.KindInstallPlan, plan.KindCSV, plan.KindDefinition, plan.KindService:
		return e.readObject(ctx, install, o, plan.Reference{Kind: a.Kind, Name: a.Name})
	case plan.KindPods:
		e.readPods(ctx, o, a.Name)
		return nil
	case plan.KindOccupants:
		o.Occupants = e.readOccupants(ctx, o.CSVs, a.Name)
		return nil
	case plan.KindInventory:
		inventory, err := (&Finder{Local: e.Local, OLM: e.OLM}).readInventory(ctx)
		o.Inventory = inventory
		return err
	case plan.KindStored:
		stored, err := e.readStored(ctx, o.CSVs)
		o.Stored = &stored
		return err
	case plan.KindCatalog:
		return e.readCatalog(ctx, install, o)
	case plan.KindSteps:
		return e.stepsCache.readSteps(ctx, e.Live, client.ObjectKeyFromObject(install), o, a.Name)
	case plan.KindDrift:
		return e.driftCache.readDrift(ctx, e.Live, client.ObjectKeyFromObject(install), o)
	}
	return fmt.Errorf("read %s: %w", a.Kind, errUnknownKind)
}

// readObject records whether an object exists that another object refers to, and adds an existing InstallPlan or CSV
// to the observation. It reads from the API server if the cache of the kind does not have the object, because the
// caches of different kinds are not in step.
func (e *Engine) readObject(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation,
	ref plan.Reference) error {
	key := client.ObjectKey{Namespace: install.Spec.Admission.Release.TargetNamespace(), Name: ref.Name}
	var object client.Object
	readers := []client.Reader{e.Local, e.Live}
	switch ref.Kind {
	case plan.KindDefinition:
		object, key.Namespace = newDefinitionMeta(), ""
	case plan.KindService:
		object = &corev1.Service{}
	case plan.KindInstallPlan: // Observe has already read the caches of InstallPlans and CSVs
		object, readers = &operatorsv1alpha1.InstallPlan{}, readers[1:]
	case plan.KindCSV:
		object, readers = &operatorsv1alpha1.ClusterServiceVersion{}, readers[1:]
	}
	err := readFirst(ctx, readers, key, object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %s %s: %w", ref.Kind, ref.Name, err)
	}
	if o.Exists == nil {
		o.Exists = map[plan.Reference]bool{}
	}
	o.Exists[ref] = err == nil
	switch live := object.(type) {
	case *operatorsv1alpha1.InstallPlan:
		if err == nil {
			o.InstallPlans = append(o.InstallPlans, *live)
		}
	case *operatorsv1alpha1.ClusterServiceVersion:
		if err == nil {
			o.CSVs = append(o.CSVs, *live)
		}
	}
	return nil
}

// readFirst reads an object from the first of the readers that has it.
func readFirst(ctx context.Context, readers []client.Reader, key client.ObjectKey, object client.Object) error {
	var err error
	for _, r := range readers {
		if err = r.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return err
}

// maxPods limits how many pods of one Deployment are read to explain why they are not available.
const maxPods = 50

// readPods adds the pods of a Deployment to the observation, or the error of reading them. Pods are not cached: a
// cluster has many, and the pods of operators have no common label.
func (e *Engine) readPods(ctx context.Context, o *Observation, deployment string) {
	read := plan.Pods{}
	for i := range o.Deployments {
		d := &o.Deployments[i]
		if d.Name != deployment {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		var pods corev1.PodList
		if err == nil {
			err = e.Live.List(ctx, &pods, client.InNamespace(d.Namespace),
				client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
		}
		read = plan.Pods{Items: pods.Items, Err: err}
	}
	if o.Pods == nil {
		o.Pods = map[string]plan.Pods{}
	}
	o.Pods[deployment] = read
}

// maxOccupants limits how many objects of one kind are listed in a namespace.
const maxOccupants = 100

// readOccupants returns the objects that would be lost with a namespace, by kind. A kind that cannot be listed has the
// error instead of objects. A kind that the cluster does not serve is left out.
func (e *Engine) readOccupants(ctx context.Context, csvs []operatorsv1alpha1.ClusterServiceVersion,
	namespace string) []plan.Occupants {
	all := []plan.Occupants{}
	for _, kind := range plan.OccupantKinds(csvs) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		err := e.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(maxOccupants))
		if !meta.IsNoMatchError(err) {
			all = append(all, plan.Occupants{Kind: kind.Kind, Items: list.Items, Err: err})
		}
	}
	return all
}

// readStored returns the stored versions of the CustomResourceDefinitions that CSVs own, by the name of the definition.
func (e *Engine) readStored(ctx context.Context, csvs []operatorsv1alpha1.ClusterServiceVersion) (rollback.Stored,
	error) {
	stored := rollback.Stored{}
	for i := range csvs {
		for _, owned := range csvs[i].Spec.CustomResourceDefinitions.Owned {
			if _, isKnown := stored[owned.Name]; isKnown {
				continue
			}
			definition, err := Definitions{e.Live}.Get(ctx, owned.Name)
			if client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			if err == nil {
				stored[owned.Name] = definition.Status.StoredVersions
			}
		}
	}
	return stored, nil
}

// readCatalog adds the answer of the catalog to the observation, or records that the answer is pending, because it
// never waits for a registry. The request also depends on the backups and on what the owner of the cluster permits.
func (e *Engine) readCatalog(ctx context.Context, install *v1alpha1.OperatorInstall, o *Observation) error {
	var err error
	if o.Backups, err = e.readBackups(ctx, install); err != nil {
		return err
	}
	request := plan.RequestFor(install, o.facts.Cluster, o.Backups, e.Now())
	if o.Stored != nil {
		request.Stored = *o.Stored
	}
	if request.Policy, err = e.readPolicy(ctx); err != nil {
		return err
	}
	answer := e.offers.getOrRead(client.ObjectKeyFromObject(install), catalogQuestion{Request: request,
		claimReader: claimReader{live: e.Live,
			source: o.facts.Rendered[plan.KindCatalogSource].GetName()}}, o.View.Hash)
	o.Catalog = &plan.Catalog{IsPending: answer.pending, Since: answer.since, Offer: answer.offer}
	o.view = answer.view
	return nil
}

// readPolicy returns what the owner of the cluster permits; nil if everything is permitted.
func (e *Engine) readPolicy(ctx context.Context) (*localpolicy.Policy, error) {
	if e.Policy == nil {
		return nil, nil
	}
	policy, err := e.Policy(ctx)
	if err != nil {
		return nil, fmt.Errorf("read policy of the cluster's owner: %w", err)
	}
	return policy, nil
}

// readBackups returns the cluster's OperatorBackups; nil if the install has no backup policy.
func (e *Engine) readBackups(ctx context.Context, install *v1alpha1.OperatorInstall) ([]v1alpha1.OperatorBackup,
	error) {
	if install.Spec.Backup == nil || e.Hub == nil {
		return nil, nil
	}
	var list v1alpha1.OperatorBackupList
	if err := e.Hub.List(ctx, &list, client.InNamespace(install.Namespace)); err != nil {
		return nil, fmt.Errorf("list OperatorBackups: %w", err)
	}
	return list.Items, nil
}
