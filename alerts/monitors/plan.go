// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitors decides which PodMonitors an operator has on its cluster. It is pure:
// its input is the observed state, and its output are objects. It must not read a cluster.
package monitors

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

// Input is the observed state of one operator.
type Input struct {
	Install *v1alpha1.OperatorInstall
	// Cluster is the FleetCluster's name.
	Cluster string
	// Labels are set on every PodMonitor, so that a Prometheus selects it.
	Labels map[string]string
	// Deployments are the Deployments that OLM created in the operator's namespace.
	Deployments []Deployment
	// Existing are the names of the PodMonitors that were created for the operator.
	Existing []string
}

// Deployment is a Deployment that OLM created.
type Deployment struct {
	Name string
	UID  types.UID
	// CSV is the name of the ClusterServiceVersion that the Deployment belongs to.
	CSV      string
	Selector *metav1.LabelSelector
}

// Decision contains the objects to apply, and the names of the objects to delete.
type Decision struct {
	Apply  []*monitoringv1.PodMonitor
	Delete []string
}

// IsWanted reports whether an install configures PodMonitors.
func IsWanted(oi *v1alpha1.OperatorInstall) bool {
	return oi.Spec.Monitor != nil && oi.Spec.Admission != nil && oi.DeletionTimestamp.IsZero()
}

// Next returns one PodMonitor for each Deployment of the installed CSV. A PodMonitor selects exactly the pods of
// its Deployment and is deleted with it. While a Deployment moves from one CSV to the next, its PodMonitor stays.
func Next(in Input) Decision {
	var d Decision
	kept := map[string]bool{}
	if IsWanted(in.Install) {
		for _, deployment := range in.Deployments {
			kept[Name(deployment.Name)] = true
			if installed := in.Install.Status.Installed; installed != nil && deployment.CSV == installed.Bundle {
				d.Apply = append(d.Apply, in.buildPodMonitor(deployment))
			}
		}
	}
	for _, name := range in.Existing {
		if !kept[name] {
			d.Delete = append(d.Delete, name)
		}
	}
	slices.SortFunc(d.Apply, func(a, b *monitoringv1.PodMonitor) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(d.Delete)
	return d
}

// Name returns the name of a Deployment's PodMonitor. It has a prefix, because operators may have their own monitors.
func Name(deployment string) string { return "bellwether-" + deployment }

// buildPodMonitor returns the PodMonitor of a Deployment. It adds labels with the cluster
// and the operator to the scraped series. Prometheus itself adds the pod's namespace.
func (in Input) buildPodMonitor(deployment Deployment) *monitoringv1.PodMonitor {
	spec := in.Install.Spec.Monitor
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
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{in.buildEndpoint(spec)},
		},
	}
}

// defaultInterval is the default of the API.
const defaultInterval = 30 * time.Second

// toInterval returns the interval in the notation of Prometheus. Nil is defaultInterval.
func toInterval(interval *metav1.Duration) monitoringv1.Duration {
	return monitoringv1.Duration(model.Duration(ptr.Deref(interval,
		metav1.Duration{Duration: defaultInterval}).Duration).String())
}
