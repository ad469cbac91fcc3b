// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"strconv"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Annotations and labels of Hive, as its documentation has them.
const (
	hiveReconcilePause = "hive.openshift.io/reconcile-pause"
	hiveRelocate       = "hive.openshift.io/relocate"
	hivePlatform       = "hive.openshift.io/cluster-platform"
	hiveRegion         = "hive.openshift.io/cluster-region"
	hiveVersion        = "hive.openshift.io/version"
)

func hive() Kind {
	return Kind{
		Name: "hive", Group: "hive.openshift.io", Kind: "ClusterDeployment", Plural: "clusterdeployments",
		Versions: []string{"v1"},
		keep: [][]string{{"spec", "installed"}, {"spec", "powerState"}, {"spec", "clusterPoolRef"},
			{"spec", "platform"}, {"status", "powerState"}},
		annotations: []string{hiveReconcilePause, hiveRelocate},
		observe:     observeHive,
		secret:      hiveSecret,
	}
}

func observeHive(o object, s *Source) {
	platform, region := hivePlatformOf(o)
	s.set("platform", s.Labels[hivePlatform], platform)
	s.set("region", s.Labels[hiveRegion], region)
	s.set("version", s.Labels[hiveVersion])
	annotations := o.GetAnnotations()
	s.Paused, _ = strconv.ParseBool(annotations[hiveReconcilePause])
	// Hive leaves a ClusterDeployment alone as soon as it has the annotation, whatever its value.
	_, s.Relocating = annotations[hiveRelocate]
	s.PowerState = hivePowerState(o.text("spec", "powerState"), o.text("status", "powerState"))
	switch {
	case !o.is("spec", "installed"):
		s.NotReady = "the cluster is not installed yet"
	case o.has("spec", "clusterPoolRef") && o.text("spec", "clusterPoolRef", "claimName") == "":
		s.NotReady = "the cluster waits in a ClusterPool and is not claimed yet"
	}
}

// hivePlatformOf is the platform of the spec: the key of the one that is set.
func hivePlatformOf(o object) (platform, region string) {
	for name, value := range o.fields("spec", "platform") {
		fields, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if platform == "" || name < platform {
			platform = name
			region, _ = fields["region"].(string)
		}
	}
	return platform, region
}

// hivePowerState reduces Hive's power states to what matters to others. Hive waits for
// SyncSets before it stops machines.
func hivePowerState(wanted, seen string) v1alpha1.ClusterPowerState {
	switch seen {
	case "Hibernating":
		return v1alpha1.PowerHibernating
	case "Stopping", "FailedToStop", "WaitingForMachinesToStop":
		return v1alpha1.PowerStopping
	case "StartingMachines", "FailedToStartMachines", "WaitingForMachines", "WaitingForNodes",
		"PausingForClusterOperatorsToSettle", "WaitingForClusterOperators":
		return v1alpha1.PowerResuming
	case "Running", "SyncSetsNotApplied":
		if wanted == "Hibernating" {
			return v1alpha1.PowerStopping
		}
		return v1alpha1.PowerRunning
	}
	return "" // Hive cannot tell, as on platforms that it does not stop machines on
}

func hiveSecret(o object) (SecretKey, error) {
	name := o.text("spec", "clusterMetadata", "adminKubeconfigSecretRef", "name")
	if name == "" {
		return SecretKey{}, errors.New("spec.clusterMetadata.adminKubeconfigSecretRef is not set: the cluster is not " +
			"installed yet")
	}
	return SecretKey{Secret: name, Key: "kubeconfig"}, nil
}
