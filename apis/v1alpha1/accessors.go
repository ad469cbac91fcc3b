// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusConditions returns the address of the object's conditions.
func (o *FleetCluster) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *OperatorCatalog) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *ManagedOperator) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *OperatorRollout) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *OperatorInstall) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *OperatorSLO) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *EndpointProbe) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *OperatorBackup) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *PagingPolicy) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *AlertSilence) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// StatusConditions returns the address of the object's conditions.
func (o *ChangeWindow) StatusConditions() *[]metav1.Condition { return &o.Status.Conditions }

// SetObservedGeneration records which generation the status was observed for.
func (o *ChangeWindow) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *FleetCluster) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *OperatorCatalog) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *ManagedOperator) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *OperatorRollout) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *OperatorInstall) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *OperatorSLO) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *EndpointProbe) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *OperatorBackup) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *PagingPolicy) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// SetObservedGeneration records which generation the status was observed for.
func (o *AlertSilence) SetObservedGeneration(g int64) { o.Status.ObservedGeneration = g }

// RepairAdvice says how to make OLM create lost objects of the operator again. It is the end of a message of
// ReasonObjectsLost, unless the message was truncated.
func (o *OperatorInstall) RepairAdvice() string {
	return fmt.Sprintf("OLM makes it again only when it installs the operator again. To have it do so, run "+
		"`bellwether operator repair %s %s/%s --cluster-kubeconfig FILE`; custom resources that still exist are kept.",
		o.Spec.Cluster, o.Spec.Operator.Namespace, o.Spec.Operator.Name)
}

// OLMDetails returns the details of OLM v0; the zero value if OLM v0 does not install the operator.
func (s OperatorInstallStatus) OLMDetails() OLMStatus {
	if s.OLM == nil {
		return OLMStatus{}
	}
	return *s.OLM
}

// InstallName returns the name of the operator's OperatorInstall in every cluster's namespace.
func (r OperatorReference) InstallName() string { return r.Namespace + "." + r.Name }

// Compare orders operators by namespace and name.
func (r OperatorReference) Compare(other OperatorReference) int {
	return cmp.Or(cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

// Labels returns the labels of the objects on the hub that belong to the operator.
func (r OperatorReference) Labels() map[string]string {
	return map[string]string{LabelOperator: r.Name, LabelOperatorNamespace: r.Namespace}
}

// ManagedLabels returns the labels of the objects that an agent creates for the operator on its cluster.
func (r OperatorReference) ManagedLabels() map[string]string {
	labels := r.Labels()
	labels[LabelManaged] = "true"
	return labels
}

// SettingsOf returns settings as the JSON for a FoundSubscription; empty for nil.
func SettingsOf(c *OperatorConfig) string {
	if c == nil {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal settings: %v", err))
	}
	return string(text)
}

// SupportedConfig returns the settings of the Subscription that a ManagedOperator can also set; nil if there are
// none. known is false if the report has no room for the settings, or if they are not valid.
func (s *FoundSubscription) SupportedConfig() (config *OperatorConfig, known bool) {
	if s.Settings == "" {
		return nil, len(s.Config) <= len(s.ConfigNotSupported)
	}
	config = &OperatorConfig{}
	if err := json.Unmarshal([]byte(s.Settings), config); err != nil {
		return nil, false
	}
	return config, true
}

// ClusterNamespace returns the namespace of a cluster on the hub.
func ClusterNamespace(cluster string) string { return "bellwether-" + cluster }
