// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which EndpointProbes the services of an operator come to.
// It has no client and no clock.
package plan

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Verb is what to do with an EndpointProbe.
type Verb string

// What is done with EndpointProbes.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Step is one change of an EndpointProbe on the fleet cluster. For Update the
// object is the one that was read, with the spec that it should have.
type Step struct {
	Verb  Verb
	Probe *v1alpha1.EndpointProbe
}

// Steps compares the services of an operator that are to be probed with the
// EndpointProbes made for it. A nil install, one that is going, and one that no
// rollout has admitted have none. Probes are made once the admitted release has
// succeeded: until then there may be nothing that could answer, and installing
// an operator would cost the budget of its first month. From then on they stay,
// whatever becomes of the operator. They also stay while the hub has recovered the
// install and does not name any services yet.
func Steps(install *v1alpha1.OperatorInstall, made []v1alpha1.EndpointProbe) []Step {
	if isUndecided(install) {
		return nil
	}
	wanted := map[string]*v1alpha1.EndpointProbe{}
	if install != nil && install.DeletionTimestamp.IsZero() && install.Spec.Admission != nil {
		for _, service := range install.Spec.Services {
			probe := ofService(install, service)
			wanted[probe.Namespace+"/"+probe.Name] = probe
		}
	}
	var steps []Step
	for i := range made {
		key := made[i].Namespace + "/" + made[i].Name
		want, ok := wanted[key]
		delete(wanted, key)
		switch {
		case !ok:
			steps = append(steps, Step{Verb: Delete, Probe: &made[i]})
		case !equality.Semantic.DeepEqual(made[i].Spec, want.Spec):
			changed := made[i].DeepCopy()
			changed.Spec = want.Spec
			steps = append(steps, Step{Verb: Update, Probe: changed})
		}
	}
	if install == nil || install.Status.SucceededHash == "" {
		return steps
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		steps = append(steps, Step{Verb: Create, Probe: wanted[key]})
	}
	return steps
}

func isUndecided(install *v1alpha1.OperatorInstall) bool {
	return install != nil && install.DeletionTimestamp.IsZero() && install.Spec.Admission != nil &&
		install.Spec.Admission.Recovered && len(install.Spec.Services) == 0
}

// Defaults of the API, for what no API server filled in.
const (
	defaultInterval = 30 * time.Second
	defaultTimeout  = 5 * time.Second
)

func orDefault(given *metav1.Duration, otherwise time.Duration) *metav1.Duration {
	if given != nil {
		return &metav1.Duration{Duration: given.Duration}
	}
	return &metav1.Duration{Duration: otherwise}
}

// nameFor names the operator in full: operators of one name can run in the same
// namespace of a cluster.
func nameFor(install *v1alpha1.OperatorInstall, service v1alpha1.ProbedService) string {
	return install.Spec.Operator.InstallName() + "." + service.Name
}

// ofService is the EndpointProbe of a Service, with every default filled in as
// the API server would: otherwise it would look changed each time.
func ofService(install *v1alpha1.OperatorInstall, service v1alpha1.ProbedService) *v1alpha1.EndpointProbe {
	scheme := service.Scheme
	if scheme == "" {
		scheme = v1alpha1.ProbeHTTP
	}
	return &v1alpha1.EndpointProbe{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: install.Spec.Admission.Release.TargetNamespace(), Name: nameFor(install, service),
			Labels: install.Spec.Operator.ManagedLabels(),
		},
		Spec: v1alpha1.EndpointProbeSpec{
			Operator: install.Spec.Operator, Name: service.Name,
			Target: v1alpha1.ProbeTarget{Service: &v1alpha1.ServiceTarget{Name: service.Name, Port: service.Port,
				Scheme: scheme, Path: service.Path}},
			Interval: orDefault(service.Interval, defaultInterval), Timeout: orDefault(service.Timeout, defaultTimeout),
			TLS: service.TLS.DeepCopy(),
		},
	}
}
