// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Verb is an action on an EndpointProbe.
type Verb string

// Actions on EndpointProbes.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// ServiceStep is one change of an EndpointProbe on the fleet cluster.
// For Update, the object is the existing one with the new spec.
type ServiceStep struct {
	Verb  Verb
	Probe *v1alpha1.EndpointProbe
}

// ServiceSteps compares the services of an operator that must be probed with the existing EndpointProbes of
// the operator. There are no probes if the install is nil, is being deleted, or was not admitted by a rollout.
// Probes are created after the admitted release has succeeded: before that the service might not exist, and
// the installation would use the budget of the first month. After that the probes stay in any state of the
// operator. They also stay while the hub has recovered the install and does not list any services yet.
func ServiceSteps(install *v1alpha1.OperatorInstall, existing []v1alpha1.EndpointProbe) []ServiceStep {
	if isUndecided(install) {
		return nil
	}
	wanted := map[string]*v1alpha1.EndpointProbe{}
	if install != nil && install.DeletionTimestamp.IsZero() && install.Spec.Admission != nil {
		for _, service := range install.Spec.Services {
			probe := newServiceProbe(install, service)
			wanted[probe.Namespace+"/"+probe.Name] = probe
		}
	}
	var steps []ServiceStep
	for i := range existing {
		key := existing[i].Namespace + "/" + existing[i].Name
		want, ok := wanted[key]
		delete(wanted, key)
		switch {
		case !ok:
			steps = append(steps, ServiceStep{Verb: Delete, Probe: &existing[i]})
		case !equality.Semantic.DeepEqual(existing[i].Spec, want.Spec):
			changed := existing[i].DeepCopy()
			changed.Spec = want.Spec
			steps = append(steps, ServiceStep{Verb: Update, Probe: changed})
		}
	}
	if install == nil || install.Status.SucceededHash == "" { // no release has succeeded: create nothing
		return steps
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		steps = append(steps, ServiceStep{Verb: Create, Probe: wanted[key]})
	}
	return steps
}

// isUndecided reports whether the hub has recovered the install and does not list its services yet.
func isUndecided(install *v1alpha1.OperatorInstall) bool {
	return install != nil && install.DeletionTimestamp.IsZero() && install.Spec.Admission != nil &&
		install.Spec.Admission.Recovered && len(install.Spec.Services) == 0
}

// nameProbe returns a name with the namespace of the operator, because
// operators with the same name can run in the same namespace of a cluster.
func nameProbe(install *v1alpha1.OperatorInstall, service v1alpha1.ProbedService) string {
	return install.Spec.Operator.InstallName() + "." + service.Name
}

// newServiceProbe returns the EndpointProbe of a Service. It fills in every
// default of the API server, so that it compares equal to the stored object.
func newServiceProbe(install *v1alpha1.OperatorInstall, service v1alpha1.ProbedService) *v1alpha1.EndpointProbe {
	scheme := service.Scheme
	if scheme == "" {
		scheme = v1alpha1.ProbeHTTP
	}
	return &v1alpha1.EndpointProbe{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: install.Spec.Admission.Release.TargetNamespace(), Name: nameProbe(install, service),
			Labels: install.Spec.Operator.ManagedLabels(),
		},
		Spec: v1alpha1.EndpointProbeSpec{
			Operator: install.Spec.Operator, Name: service.Name,
			Target: v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Name: service.Name, Port: service.Port,
				Scheme: scheme, Path: service.Path}},
			Interval: applyDefault(service.Interval, DefaultInterval),
			Timeout:  applyDefault(service.Timeout, DefaultTimeout),
			TLS:      service.TLS.DeepCopy(),
		},
	}
}
