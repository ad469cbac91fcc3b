// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// The reasons that are on no condition of the API, because they follow from comparing objects.
const (
	// NotSelected means that the cluster selector does not match the cluster.
	NotSelected = "NotSelected"
	// NoInstall means that the cluster is selected and has no OperatorInstall yet.
	NoInstall = "NoInstall"
	// OperatorPaused means that spec.paused is set.
	OperatorPaused = "OperatorPaused"
	// Deadline means that a cluster was not updated within the deadline of its wave.
	Deadline = "DeadlineExceeded"
	// StatusOutdated means that a status is about an older spec.
	StatusOutdated = "StatusOutdated"
	// NotReported means that a condition that must be True was never reported.
	NotReported = "NotReported"
	// NoData means that Prometheus has no data for an error budget.
	NoData = "NoData"
	// BudgetSpent means that an error budget is spent.
	BudgetSpent = "BudgetSpent"
	// AlertFiring means that an alert of the objectives fires.
	AlertFiring = "AlertFiring"
	// ClusterUnreadable means that the objects on the cluster could not be read.
	ClusterUnreadable = "ClusterUnreadable"
	// UnknownReason means that this version of the program does not have the reason in its table.
	UnknownReason = "UnknownReason"
)

// The reasons that follow from the operator's workload.
const (
	CrashLoopBackOff = v1alpha1.ProblemCrashLoopBackOff
	ImagePull        = v1alpha1.ProblemImagePull
	ContainerConfig  = v1alpha1.ProblemContainerConfig
	ContainerFailed  = v1alpha1.ProblemContainerFailed
	NotReadyYet      = v1alpha1.ProblemContainerNotReady
	Unschedulable    = v1alpha1.ProblemUnschedulable
	FailedCreate     = v1alpha1.ProblemFailedCreate
	PodsNotRead      = v1alpha1.ProblemPodsNotRead
	ObjectMissing    = "ObjectMissing"
)

// listCompared returns the remedies for the reasons that follow from comparing objects.
func listCompared() []Remedy {
	return []Remedy{
		{Reason: NotSelected, Means: "The cluster selector of the operator does not match this cluster.", Do: []Action{
			run("Give the cluster a label that spec.clusterSelector matches, or change spec.clusterSelector",
				"bellwether fleet list -o wide")}},
		{Reason: NoInstall, Means: "The cluster is selected, and no rollout has been planned with it " +
			"yet.", Do: []Action{
			run("Show the state of the operator", "bellwether operator get OPERATOR")},
			Next: "The next rollout takes the cluster in."},
		{Reason: OperatorPaused, Means: "A person paused the ManagedOperator (spec.paused), so no new rollout is made.",
			Do: []Action{run("Resume the operator", "kubectl -n HUBNAMESPACE patch managedoperator OPERATOR "+
				`--type=merge -p '{"spec":{"paused":false}}'`)},
			Next: "A rollout that was made before continues."},
		{Reason: Deadline, Means: "The cluster was not updated within the deadline of its wave, so it counts as " +
			"failed.",
			Do: []Action{
				run("Find what it waits for", "bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE"),
				run("If the release is faulty, end the rollout", "bellwether rollout abort ROLLOUT --reason TEXT")},
			Next: "The cluster counts as updated as soon as it succeeds, and then the rollout continues."},
		{Reason: StatusOutdated, Means: "The status was written for an older spec, so it says nothing about the " +
			"current one yet.", Do: []Action{
			do("If this lasts more than a minute, look at the log of the program that writes the status: the agent " +
				"for an OperatorInstall, the hub for everything else.")},
			Next: "The status is written again within seconds."},
		{Reason: NotReported, Means: "A condition that is needed to call this healthy was never " +
			"reported.", Do: []Action{
			do("If this lasts more than a minute, check that the hub runs and, for what an agent reports, that the " +
				"agent runs and has the version of the hub.")},
			Next: "The condition appears as soon as it is reported."},
		{Reason: NoData, Means: "Prometheus has no data for an error budget, so it is not known what is left of it.",
			Do: []Action{
				do("Check that Prometheus scrapes the hub and the agents, and that the OperatorSLO's rules are " +
					"loaded."),
				run("Check that the cluster's agent reports", "bellwether fleet list")},
			Next: "The budget is known as soon as Prometheus has data."},
		{Reason: BudgetSpent, Means: "An error budget of the operator is spent.", Do: []Action{
			run("Show where and how fast it is spent", "bellwether slo get OPERATOR"),
			run("Explain the operator on the cluster", "bellwether why CLUSTER OPERATOR")},
			Next: "The budget recovers as the failures leave the period of the objective."},
		{Reason: AlertFiring, Means: "An alert on the objectives of the operator fires.", Do: []Action{
			run("Show the clusters that it is about", "bellwether slo get OPERATOR"),
			run("Explain the operator on one of these clusters", "bellwether why CLUSTER OPERATOR")},
			Next: "The alert ends when the error budget is no longer spent too fast."},
		{Reason: ClusterUnreadable, Means: "The objects on the cluster could not be read.", Do: []Action{
			do("Check --cluster-kubeconfig and --cluster-context, and that the cluster's API server answers.")}},
		{Reason: UnknownReason, Means: "This version of the program does not know the reason.", Do: []Action{
			do("Read the message. Use the version of bellwether that belongs to the hub.")}},
	}
}

// listWorkloads returns the remedies for the reasons that follow from the operator's workload.
func listWorkloads() []Remedy {
	logs := run("Read the log of the container's last run", "kubectl -n NAMESPACE logs deploy/NAME --previous")
	return []Remedy{
		{Reason: CrashLoopBackOff, Means: "A container of the operator ends again and again.", Do: []Action{logs,
			do("If the cause is the configuration, correct spec.install.config of the ManagedOperator."),
			run("If the cause is the release, end the rollout and publish a corrected version",
				"bellwether rollout abort ROLLOUT --reason TEXT")},
			Next: "Kubernetes starts the container again, at most every 5 minutes."},
		{Reason: ImagePull, Means: "An image of the operator cannot be pulled.", Do: []Action{
			do("Check that the image exists, that the nodes can reach its registry or mirror, and that the pull " +
				"secret is valid.")}, Next: "Kubernetes tries to pull the image again, at most every 5 minutes."},
		{Reason: ContainerConfig, Means: "A container cannot be created, because a ConfigMap, a Secret or another " +
			"object that it uses is missing or invalid.", Do: []Action{
			do("Create or correct the object that the message names.")}, Next: "Kubernetes tries it again."},
		{Reason: ContainerFailed, Means: "A container of the operator ended with an error.", Do: []Action{logs},
			Next: "Kubernetes starts the container again."},
		{Reason: NotReadyYet, Means: "A container of the operator runs, and its readiness probe does not succeed.",
			Do: []Action{
				run("Read the log of the container", "kubectl -n NAMESPACE logs deploy/NAME")},
			Next: "The pod is ready as soon as the probe succeeds."},
		{Reason: Unschedulable, Means: "No node can run a pod of the operator.", Do: []Action{
			do("Provide what the message names: CPU, memory, a node with the right labels, or a toleration in " +
				"spec.install.config of the ManagedOperator.")},
			Next: "Kubernetes schedules the pod as soon as a node fits."},
		{Reason: FailedCreate, Means: "Kubernetes cannot create a pod of the operator.", Do: []Action{
			do("Correct what the message names: often a ResourceQuota, a missing ServiceAccount, or an admission " +
				"webhook that refuses the pod.")}, Next: "Kubernetes tries to create the pod again, with a growing " +
			"delay."},
		{Reason: PodsNotRead, Means: "The agent could not read the operator's pods, so it is not known why they " +
			"are not available.", Do: []Action{
			do("If the message says that it is forbidden, upgrade the agent's chart: its role must permit " +
				"listing pods."),
			run("Look at the pods", "kubectl -n NAMESPACE get pods")},
			Next: "The agent reads them again within half a minute."},
		{Reason: ObjectMissing, Means: "An object that OLM should have created does not exist.", Do: []Action{
			run("If this lasts more than a few minutes, read the log of OLM",
				"kubectl -n olm logs deploy/olm-operator")},
			Next: "OLM creates it again when it looks at the ClusterServiceVersion next."},
	}
}
