// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of every kind in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "bellwether.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package in a scheme.
var AddToScheme = (&runtime.SchemeBuilder{addKinds}).AddToScheme

func addKinds(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&FleetCluster{}, &FleetClusterList{},
		&OperatorCatalog{}, &OperatorCatalogList{},
		&ManagedOperator{}, &ManagedOperatorList{},
		&OperatorRollout{}, &OperatorRolloutList{},
		&OperatorInstall{}, &OperatorInstallList{},
		&OperatorSLO{}, &OperatorSLOList{},
		&EndpointProbe{}, &EndpointProbeList{},
		&OperatorBackup{}, &OperatorBackupList{},
		&OperatorScan{}, &OperatorScanList{},
		&ChangeWindow{}, &ChangeWindowList{},
		&RolloutPolicy{}, &RolloutPolicyList{},
		&FleetAccess{}, &FleetAccessList{}, &FleetFreeze{}, &FleetFreezeList{},
		&PagingPolicy{}, &PagingPolicyList{},
		&AlertSilence{}, &AlertSilenceList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
