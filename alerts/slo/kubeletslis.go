// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// SLIs of what kubelets measure.
const (
	// Memory is the SLI of containers that are about to reach their memory limit.
	Memory = "memory"
	// Throttling is the SLI of containers that get less CPU time than they ask for.
	Throttling = "throttling"
	// Storage is the SLI of volumes that fill up.
	Storage = "storage"
)

// kubeletSLIs have slices where kubelets are scraped. They are tickets only: they
// say that an operator will fail, or why it is slow, and other SLIs page when it does.
func kubeletSLIs() []SLI {
	return []SLI{
		judged(SLI{Name: Memory, Target: 950_000, Ticket: true,
			Bad: "a container of the operator uses more than 90 % of its memory limit; only a ticket"},
			Thresholds{BadShare: 900_000}, judgeMemory),
		judged(SLI{Name: Throttling, Target: 900_000, Ticket: true,
			Bad: "a container of the operator was throttled in more than 25 % of the CPU periods of 5 minutes; only " +
				"a ticket"},
			Thresholds{BadShare: 250_000}, judgeThrottling),
		judged(SLI{Name: Storage, Target: 990_000, Ticket: true,
			Bad: "more than 90 % of a volume of the operator is used; only a ticket"},
			Thresholds{BadShare: 900_000}, judgeStorage),
	}
}

// podOfDeployment is the name of a pod: that of its Deployment, the hash of its
// template and five characters.
const podOfDeployment = "(.+)-[a-z0-9]{6,10}-[a-z0-9]{5}"

// ofPods finds the operator that a value by cluster, namespace and pod belongs to,
// by the Deployment that the pod's name begins with. A namespace may have other
// operators, and pods of custom resources.
func ofPods(of operators, bad string) string {
	each := series.Cluster + ", " + series.Namespace + ", " + series.Deployment
	byDeployment := aggregate("max", each, fmt.Sprintf("label_replace(\n    %s,\n    %q, \"$1\", \"pod\", %q\n  )", bad,
		series.Deployment, podOfDeployment))
	deployments := fmt.Sprintf("%s\n  * %s group_left (%s) topk by (%s) (1, %s)",
		aggregate("group", installLabels+", "+series.Deployment, of.of(series.OperatorReplicasDesired)),
		on(installLabels), series.Namespace, installLabels,
		aggregate("group", installLabels+", "+series.Namespace, series.OperatorInfo))
	return aggregate("max", installLabels, fmt.Sprintf("\n  %s\n  * %s group_left ()\n  %s\n", deployments, on(each),
		byDeployment))
}

// ofContainers leaves out what cgroups measure of a pod as a whole.
const ofContainers = `{container!="",container!="POD"}`

// byContainer is the value of a container, also if two kubelets or Prometheuses
// export it.
func byContainer(expr string) string {
	return aggregate("max", "cluster, namespace, pod, container", expr)
}

// judgeMemory leaves out containers without a limit, which have a limit of 0.
func judgeMemory(of operators, t Thresholds) string {
	return ofPods(of, fmt.Sprintf("(%s\n    <= bool %s * (%s > 0)) == bool 0",
		byContainer(series.ContainerMemory+ofContainers), t.BadShare.decimal(),
		byContainer(series.ContainerMemoryLimit+ofContainers)))
}

// judgeThrottling has no slice of a container that did not run.
func judgeThrottling(of operators, t Thresholds) string {
	rate := func(metric string) string {
		return byContainer(fmt.Sprintf("rate(%s%s[5m])", metric, ofContainers))
	}
	return ofPods(of, fmt.Sprintf("(%s\n    <= bool %s * (%s > 0)) == bool 0", rate(series.ContainerThrottled),
		t.BadShare.decimal(), rate(series.ContainerPeriods)))
}

// judgeStorage looks at the volumes that the operator's Deployments claim.
func judgeStorage(of operators, t Thresholds) string {
	volume := "cluster, namespace, " + series.VolumeClaim
	sized := func(metric string) string { return aggregate("min", volume, metric) }
	claims := aggregate("group", installLabels+", namespace, "+series.VolumeClaim,
		of.of(series.OperatorVolumeClaim))
	return aggregate("max", installLabels,
		fmt.Sprintf("\n  %s\n  * %s group_left ()\n  ((%s >= bool %s * (%s > 0)) == bool 0)\n", claims, on(volume),
			sized(series.VolumeAvailable), (One-t.BadShare).decimal(), sized(series.VolumeCapacity)))
}
