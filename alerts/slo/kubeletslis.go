// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// SLIs that are measured by kubelets.
const (
	// Memory is the SLI of containers that are about to reach their memory limit.
	Memory = "memory"
	// Throttling is the SLI of containers that get less CPU time than they need.
	Throttling = "throttling"
	// Storage is the SLI of volumes that fill up.
	Storage = "storage"
)

// listKubeletSLIs returns the SLIs that have slices where kubelets are scraped. They make only tickets:
// they show that an operator will fail, or why it is slow. Other SLIs page when the operator fails.
func listKubeletSLIs() []SLI {
	return []SLI{
		newThresholdSLI(SLI{Name: Memory, Target: 950_000, Ticket: true,
			Bad: "a container of the operator uses more than 90 % of its memory limit; only a ticket"},
			Thresholds{BadShare: 900_000}, judgeMemory),
		newThresholdSLI(SLI{Name: Throttling, Target: 900_000, Ticket: true,
			Bad: "a container of the operator was throttled in more than 25 % of the CPU periods of 5 minutes; only " +
				"a ticket"},
			Thresholds{BadShare: 250_000}, judgeThrottling),
		newThresholdSLI(SLI{Name: Storage, Target: 990_000, Ticket: true,
			Bad: "more than 90 % of a volume of the operator is used; only a ticket"},
			Thresholds{BadShare: 900_000}, judgeStorage),
	}
}

// deploymentPodPattern matches the name of a pod: the name of
// its Deployment, the hash of its template and five characters.
const deploymentPodPattern = "(.+)-[a-z0-9]{6,10}-[a-z0-9]{5}"

// joinPods returns PromQL that maps values by cluster, namespace and pod to operators, by the Deployment name at
// the start of the pod name. This ignores pods of other operators and of custom resources in the same namespace.
func joinPods(ops operators, bad string) string {
	each := series.Cluster + ", " + series.Namespace + ", " + series.Deployment
	byDeployment := aggregate("max", each, fmt.Sprintf("label_replace(\n    %s,\n    %q, \"$1\", \"pod\", %q\n  )", bad,
		series.Deployment, deploymentPodPattern))
	deployments := fmt.Sprintf("%s\n  * %s group_left (%s) topk by (%s) (1, %s)",
		aggregate("group", installLabels+", "+series.Deployment, ops.selectSeries(series.OperatorReplicasDesired)),
		matchOn(installLabels), series.Namespace, installLabels, aggregate("group", installLabels+", "+series.Namespace,
			series.OperatorInfo))
	return aggregate("max", installLabels, fmt.Sprintf("\n  %s\n  * %s group_left ()\n  %s\n", deployments,
		matchOn(each),
		byDeployment))
}

// containerMatcher excludes the values that cgroups report for a pod as a whole.
const containerMatcher = `{container!="",container!="POD"}`

// aggregateByContainer returns one value for each container, also if two kubelets or Prometheuses export it.
func aggregateByContainer(expr string) string {
	return aggregate("max", "cluster, namespace, pod, container", expr)
}

// judgeMemory returns PromQL for the slices of Memory: bad if any container uses more than
// BadShare of its limit. It ignores containers without a limit, which have a limit of 0.
func judgeMemory(ops operators, t Thresholds) string {
	return joinPods(ops, fmt.Sprintf("(%s\n    <= bool %s * (%s > 0)) == bool 0",
		aggregateByContainer(series.ContainerMemory+containerMatcher), t.BadShare.formatDecimal(),
		aggregateByContainer(series.ContainerMemoryLimit+containerMatcher)))
}

// judgeThrottling returns PromQL for the slices of Throttling: bad if any container was throttled in more
// than BadShare of its CPU periods. A container that did not run has no slice.
func judgeThrottling(ops operators, t Thresholds) string {
	buildRate := func(metric string) string {
		return aggregateByContainer(fmt.Sprintf("rate(%s%s[5m])", metric, containerMatcher))
	}
	return joinPods(ops, fmt.Sprintf("(%s\n    <= bool %s * (%s > 0)) == bool 0", buildRate(series.ContainerThrottled),
		t.BadShare.formatDecimal(), buildRate(series.ContainerPeriods)))
}

// judgeStorage returns PromQL for the slices of Storage: bad if more than BadShare of
// any volume that the operator's Deployments claim is used.
func judgeStorage(ops operators, t Thresholds) string {
	volume := "cluster, namespace, " + series.VolumeClaim
	aggregateByVolume := func(metric string) string { return aggregate("min", volume, metric) }
	claims := aggregate("group", installLabels+", namespace, "+series.VolumeClaim,
		ops.selectSeries(series.OperatorVolumeClaim))
	return aggregate("max", installLabels,
		fmt.Sprintf("\n  %s\n  * %s group_left ()\n  ((%s >= bool %s * (%s > 0)) == bool 0)\n", claims, matchOn(volume),
			aggregateByVolume(series.VolumeAvailable), (One-t.BadShare).formatDecimal(),
			aggregateByVolume(series.VolumeCapacity)))
}
