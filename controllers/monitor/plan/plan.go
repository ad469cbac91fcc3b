// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides which PodMonitors an operator has on its cluster. It is
// pure: what was observed comes in, and objects come out. It must not read a
// cluster.
package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Input is what was observed of one operator.
type Input struct {
	Install *v1alpha1.OperatorInstall
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are put on every PodMonitor, so that a Prometheus selects it.
	Labels map[string]string
	// Deployments that OLM made in the operator's namespace.
	Deployments []Deployment
	// Existing are the names of the PodMonitors that were made for the operator.
	Existing []string
}

// Deployment is one of OLM's.
type Deployment struct {
	Name string
	UID  types.UID
	// CSV is the name of the one that it belongs to.
	CSV      string
	Selector *metav1.LabelSelector
}

// Decision is what to apply, and the names of what to delete.
type Decision struct {
	Apply  []*monitoringv1.PodMonitor
	Delete []string
}

// Wanted tells whether an install asks for PodMonitors.
func Wanted(oi *v1alpha1.OperatorInstall) bool {
	return oi.Spec.Monitor != nil && oi.Spec.Admission != nil && oi.DeletionTimestamp.IsZero()
}

// Next asks for one PodMonitor for each Deployment of the installed CSV, which
// selects exactly its pods and goes with it. While a Deployment passes from one
// CSV to the next its PodMonitor stays.
func Next(in Input) Decision {
	var d Decision
	stay := map[string]bool{}
	if Wanted(in.Install) {
		for _, deployment := range in.Deployments {
			stay[Name(deployment.Name)] = true
			if installed := in.Install.Status.Installed; installed != nil && deployment.CSV == installed.Bundle {
				d.Apply = append(d.Apply, in.podMonitor(deployment))
			}
		}
	}
	for _, name := range in.Existing {
		if !stay[name] {
			d.Delete = append(d.Delete, name)
		}
	}
	slices.SortFunc(d.Apply, func(a, b *monitoringv1.PodMonitor) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(d.Delete)
	return d
}

// Name is that of a Deployment's PodMonitor. It has a prefix because operators
// bring monitors of their own.
func Name(deployment string) string { return "bellwether-" + deployment }

// podMonitor adds to what is scraped the labels that identify the cluster and the
// operator. Prometheus itself adds the pod's namespace.
func (in Input) podMonitor(deployment Deployment) *monitoringv1.PodMonitor {
	asked := in.Install.Spec.Monitor
	labels := map[string]string{}
	maps.Copy(labels, in.Labels)
	maps.Copy(labels, in.Install.Spec.Operator.ManagedLabels())
	selector := ptr.Deref(deployment.Selector, metav1.LabelSelector{})
	return &monitoringv1.PodMonitor{
		TypeMeta: metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(),
			Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Install.Spec.Admission.Release.TargetNamespace(), Name: Name(deployment.Name), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name,
				UID: deployment.UID,
			}},
		},
		Spec: monitoringv1.PodMonitorSpec{
			Selector:            *selector.DeepCopy(),
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{in.endpoint(asked)},
		},
	}
}

// defaultInterval is that of the API.
const defaultInterval = 30 * time.Second

func interval(asked *metav1.Duration) monitoringv1.Duration {
	return monitoringv1.Duration(model.Duration(ptr.Deref(asked,
		metav1.Duration{Duration: defaultInterval}).Duration).String())
}
