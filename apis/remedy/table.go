// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import "github.com/bellwether-dev/bellwether/apis/v1alpha1"

// do returns an action without a command.
func do(text string) Action { return Action{Text: text} }

// run returns an action with a command.
func run(text, command string) Action { return Action{Text: text, Command: command} }

// doOnHub returns an action for reasons that the hub reported.
func doOnHub(text string) Action { return Action{Text: text, only: Hub} }

// doOnAgent returns an action for reasons that an agent reported.
func doOnAgent(text string) Action { return Action{Text: text, only: Agent} }

// The sentences for Next that several remedies have.
const (
	retry   = "It is tried again without any further action."
	recheck = "A correction is noticed without any further action."
	resume  = "The rollout continues as soon as that is corrected."
)

// listGeneral returns the remedies for reasons of several kinds of objects.
func listGeneral() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonSucceeded, Means: "Everything is as the spec asks."},
		{Reason: v1alpha1.ReasonProgressing, Means: "Work is in progress, and no error was found so far.",
			Next: "The work continues without any further action. The message says what is being waited for."},
		{Reason: v1alpha1.ReasonWaiting, Means: "Something that the message names must come first.", Do: []Action{
			do("Read the message. If what it names does not come, look at the conditions of that object.")},
			Next: "The work continues as soon as that has come."},
		{Reason: v1alpha1.ReasonPaused, Means: "A person paused it.", Do: []Action{
			run("Resume the rollout", "bellwether rollout resume ROLLOUT")},
			Next: "Nothing new is admitted until it is resumed. What was admitted before finishes."},
		{Reason: v1alpha1.ReasonDeleting, Means: "It is being removed.", Do: []Action{
			do("If it takes long, the message names the clusters that are waited for. Start their agents again, or " +
				"set the removal policy to Orphan.")},
			Next: "The object is gone when the removal has finished."},
		{Reason: v1alpha1.ReasonRemovalUnconfirmed, Means: "The operator is to be uninstalled from many clusters at " +
			"once, which a person must confirm.", Do: []Action{
			run("See how many clusters wait for it", "bellwether operator get OPERATOR"),
			do("Agree with bellwether operator confirm-removal, and give it that number of clusters."),
			do("If it is a mistake, correct spec.clusterSelector or the labels of the clusters.")},
			Next: "The operator is uninstalled wave by wave. Without a confirmation it stays where it is."},
		{Reason: v1alpha1.ReasonUninstallFailed, Means: "More clusters cannot uninstall the operator than may fail, " +
			"so it is not uninstalled from others.", Do: []Action{
			run("Show what is wrong on a cluster that the message names", "bellwether why CLUSTER OPERATOR")},
			Next: "The removal goes on once they have uninstalled it, or when maxFailures of their wave is raised."},
		{Reason: v1alpha1.ReasonReconcileError, Means: "The controller fails to reconcile the object. The other " +
			"conditions are those of its last success.", Do: []Action{
			do("Read the error in the message, and correct what it names.")},
			Next: "It is tried again with growing delays, and the condition is removed with the next success."},
	}
}

// listFleet returns the remedies for FleetClusters.
func listFleet() []Remedy {
	look := run("On the cluster, look at the agent's pod and its log",
		"kubectl -n bellwether-system logs deploy/bellwether-agent")
	return []Remedy{
		{Reason: v1alpha1.ReasonLeaseFresh, Means: "The agent renews its Lease."},
		{Reason: v1alpha1.ReasonLeaseExpired, Means: "The agent has stopped renewing its Lease: it does not run, or " +
			"it cannot reach the hub.", Do: []Action{look,
			run("Check that the cluster can reach the hub's API server. Renew the agent's credentials if the hub "+
				"refuses them", "bellwether fleet join CLUSTER --cluster-kubeconfig FILE")},
			Next: "The cluster is brought up to date as soon as its agent reports again."},
		{Reason: v1alpha1.ReasonNeverJoined, Means: "No agent has ever reported for this cluster.", Do: []Action{
			run("Install the agent", "bellwether fleet join CLUSTER --cluster-kubeconfig FILE")}},
		{Reason: v1alpha1.ReasonAccessRevoked, Means: "The agent's access to the hub was revoked: the ServiceAccount " +
			"that its tokens belong to was deleted, so the hub refuses them.", Do: []Action{
			run("Join the cluster again", "bellwether fleet join CLUSTER --cluster-kubeconfig FILE")},
			Next: "The cluster is brought up to date as soon as its agent reports again."},
		{Reason: v1alpha1.ReasonAgentOffline, Means: "The agent of the cluster does not report, so nothing is " +
			"changed there.", Do: []Action{look},
			Next: "The cluster is brought up to date as soon as its agent reports again."},
		{Reason: v1alpha1.ReasonHibernating, Means: "The machines of the cluster are stopped, or on their way there " +
			"or back, as its source says. Rollouts defer it, and no page is sent for it.", Do: []Action{
			do("Nothing, if that is intended. Otherwise resume the cluster where its spec.sourceRef is: for Hive, " +
				"set spec.powerState of the ClusterDeployment to Running.")},
			Next: "The cluster is brought up to date when it runs again."},
		{Reason: v1alpha1.ReasonPowerUnknown, Means: "The source of the cluster says that its machines do not run, " +
			"but the hub does not believe that any more: the cluster has reported since, or is said to be stopped or " +
			"resumed for longer than 30 minutes. Rollouts go on there, and its alerts are heard.", Do: []Action{
			run("See what the source says, and since when", "bellwether fleet get CLUSTER"),
			do("Look why the object that spec.sourceRef names does not change: for Hive, read the conditions of the " +
				"ClusterDeployment.")},
			Next: "The hub believes the next power state that the source reports."},
		{Reason: v1alpha1.ReasonSourcePaused, Means: "The owner of the cluster's source paused it, or moves it to " +
			"another management cluster, so nothing is changed on the cluster.", Do: []Action{
			run("See what is paused", "kubectl get fleetcluster CLUSTER -o jsonpath={.status.source}"),
			do("Ask its owner to end the pause.")},
			Next: "The cluster is brought up to date when the source is resumed."},
		{Reason: v1alpha1.ReasonClusterPaused, Means: "A person paused the cluster (spec.paused), so no rollout " +
			"admits it, and nothing is uninstalled from it.", Do: []Action{
			run("Resume the cluster", "kubectl patch fleetcluster CLUSTER "+
				`--type=merge -p '{"spec":{"paused":false}}'`)},
			Next: "The cluster stays as it is until it is resumed. What was admitted before finishes."},
		{Reason: v1alpha1.ReasonAPIServerReachable, Means: "The agent reaches the API server of its own cluster."},
		{Reason: v1alpha1.ReasonAPIServerUnreachable, Means: "The agent runs but cannot reach the API server of its " +
			"own cluster, so nothing that is shown about this cluster is current.", Do: []Action{
			run("Check the control plane of the cluster", "kubectl --kubeconfig FILE get --raw /readyz?verbose")},
			Next: "The agent reports again as soon as the API server answers."},
		{Reason: v1alpha1.ReasonAgentTooOld, Means: "The agent is more than one minor version older than the hub. " +
			"Everything goes on, but this pair of versions is not tested.", Do: []Action{
			run("Upgrade the agent", "bellwether fleet join CLUSTER --cluster-kubeconfig FILE")},
			Next: "The condition is True as soon as the new agent reports."},
		{Reason: v1alpha1.ReasonHubTooOld, Means: "The agent is more than one minor version newer than the hub. " +
			"Everything goes on, but this pair of versions is not tested.", Do: []Action{
			run("Upgrade the hub", "bellwether install hub")},
			Next: "The condition is True as soon as the new hub leads."},
		{Reason: v1alpha1.ReasonOLMMissing, Means: "The cluster does not serve the API of the Operator Lifecycle " +
			"Manager (OLM).", Do: []Action{do("Install the Operator Lifecycle Manager v0 on the cluster.")},
			Next: "The agent notices OLM without any further action."},
	}
}

// listCatalog returns the remedies for OperatorCatalogs.
func listCatalog() []Remedy {
	return append(listCatalogRead(), listCatalogContent()...)
}

// listCatalogRead returns the remedies for catalogs that cannot be read.
func listCatalogRead() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonCatalogUnreachable, Means: "The registry or the directory of the catalog cannot be " +
			"read.",
			Do: []Action{
				doOnHub("Check spec.source of the OperatorCatalog, and that the hub can reach the registry."),
				doOnAgent("Check that this cluster can reach the registry."),
				run("Try to read it", "bellwether catalog show REF"),
				do("A registry that serves plain HTTP needs spec.source.insecure: true.")}, Next: retry},
		{Reason: v1alpha1.ReasonSourceNotFound, Means: "The registry or the file system has no such catalog.",
			Do: []Action{
				doOnHub("Correct spec.source of the OperatorCatalog, or publish the catalog there."),
				doOnAgent("The hub could read this catalog. Check that this cluster reads the same registry or a " +
					"complete mirror of it, and that the catalog was not deleted there."),
				run("Publish a catalog", "bellwether catalog publish DIR REF")}, Next: retry},
		{Reason: v1alpha1.ReasonAccessDenied, Means: "The registry refuses the credentials, or requires some.",
			Do: []Action{
				doOnHub("Give the hub a pull secret for the registry that may read this repository."),
				doOnAgent("Give the agent a pull secret for the registry that may read this repository.")},
			Next: retry},
		{Reason: v1alpha1.ReasonCatalogReadInterrupted, Means: "A process was killed while it read this digest, " +
			"perhaps because reading it takes too much memory. It is not read again by itself.",
			Do: []Action{
				do("Look for the reason in the last state of the container, such as OOMKilled. Publish a smaller " +
					"catalog if it is the catalog."),
				doOnHub("To have the digest read once more, delete the pods of the hub."),
				doOnAgent("To have the digest read once more, delete the agent's pod.")}, Next: recheck},
		{Reason: v1alpha1.ReasonCatalogTooLarge, Means: "The catalog, or one of its files, is larger than the limit.",
			Do:   []Action{do("Publish a smaller catalog: fewer versions, or bundles by image instead of inline.")},
			Next: recheck},
		{Reason: v1alpha1.ReasonSignatureMissing, Means: "The OperatorCatalog requires a signature " +
			"(spec.verification), and the catalog has none. The catalog that was read before stays in use.",
			Do: []Action{
				{Text: "Sign the catalog", Command: "bellwether catalog publish DIR REF --key FILE", only: Hub},
				doOnAgent("Sign the catalog, and check that the mirror that this cluster reads copies signatures " +
					"(OCI referrers).")}, Next: recheck},
		{Reason: v1alpha1.ReasonSignatureInvalid, Means: "The catalog has signatures, and none of them is by a key " +
			"of spec.verification.publicKeys.", Do: []Action{
			do("Sign the catalog with a key of spec.verification.publicKeys of the OperatorCatalog, or add the " +
				"public key of its signature there. If none of your people signed it, first find out who pushed it."),
			run("Check the signatures with a public key", "bellwether catalog verify REF --key FILE")},
			Next: recheck},
		{Reason: v1alpha1.ReasonDigestMismatch, Means: "The content does not have the digest that it should have.",
			Do: []Action{
				doOnHub("Push the catalog again and use the digest that is printed, or correct the digest in " +
					"spec.source."),
				doOnAgent("The content is not what the hub admitted. Look for a registry or a proxy that changes it."),
				run("Push it again", "bellwether catalog push DIR REF")}, Next: retry},
		{Reason: v1alpha1.ReasonNotACatalog, Means: "The image or directory is not a file-based catalog.", Do: []Action{
			do("Correct spec.source of the OperatorCatalog. It must name a catalog image with /configs, not the " +
				"image of a bundle or of an operator."),
			run("Publish a catalog", "bellwether catalog push DIR REF")}, Next: recheck},
		{Reason: v1alpha1.ReasonCatalogNotFound, Means: "The OperatorCatalog that the operator names does not exist.",
			Do: []Action{
				run("Create it in the operator's namespace, or correct spec.catalog.name", "bellwether catalog list")},
			Next: recheck},
	}
}

// listCatalogContent returns the remedies for catalogs whose content is a problem.
func listCatalogContent() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonWouldStrand, Means: "The new catalog has no upgrade path from a version that " +
			"clusters run to the head of its channel. The catalog that was read before stays in use.", Do: []Action{
			run("Publish a catalog with an upgrade path from these versions to the head of the channel. To see what "+
				"it would change for each version", "bellwether catalog diff OLD NEW"),
			do("If a version shall have no upgrade path, block it in spec.blocks of the OperatorCatalog.")},
			Next: recheck},
		{Reason: v1alpha1.ReasonVersionBlocked, Means: "The version is blocked: no cluster is upgraded to it or by " +
			"way of it.", Do: []Action{
			run("Show the versions that clusters on the blocked version can reach",
				"bellwether catalog get CATALOG"),
			do("If there is no such version, the author must publish one: a corrected version with an upgrade path " +
				"from the blocked one. Where spec.version of the ManagedOperator is not set, or is a range that " +
				"has it, it is used without any further action."),
			do("If the block is a mistake, remove it where it was made: in spec.blocks of the OperatorCatalog, or " +
				"with `bellwether catalog unblock` in the published catalog."),
			run("If the message says that it is held after a rollback, and it is good, release the hold",
				"bellwether operator release-hold OPERATOR VERSION")}},
		{Reason: v1alpha1.ReasonCatalogInvalid, Means: "The catalog was read and has an error. The last good catalog " +
			"stays in use.", Do: []Action{
			do("Correct the error, and publish the catalog again.")}, Next: recheck},
	}
}

// listOperator returns the remedies for ManagedOperators.
func listOperator() []Remedy {
	show := "bellwether catalog show REF PACKAGE"
	return []Remedy{
		{Reason: v1alpha1.ReasonUnknownPackage, Means: "The catalog has no such package.", Do: []Action{
			run("Correct spec.package, or publish a catalog that has the package. List the packages",
				"bellwether catalog show REF")}, Next: recheck},
		{Reason: v1alpha1.ReasonUnknownChannel, Means: "The package has no such channel.", Do: []Action{
			run("Correct spec.channel, or publish the channel. List the channels", show)}, Next: recheck},
		{Reason: v1alpha1.ReasonUnknownVersion, Means: "The channel has no such version.", Do: []Action{
			run("Correct spec.version, or publish the version. List the versions", show)}, Next: recheck},
		{Reason: v1alpha1.ReasonNoUpgradePath, Means: "The channel has no upgrade path from the installed version to " +
			"the target version.", Do: []Action{
			run("Choose a version that the clusters can reach. This shows for each cluster whether it can reach a "+
				"version", "bellwether rollout plan OPERATOR --version VERSION"),
			do("If no newer version can be reached, the author must publish one whose catalog entry names the " +
				"installed version in replaces, in skips, or in its skipRange. Going back to an older version is not " +
				"an upgrade."),
			do("If spec.version of the ManagedOperator is a range below what the clusters run, write one that has " +
				"it, or end the rollout that brought it with `bellwether rollout rollback`.")}, Next: recheck},
		{Reason: v1alpha1.ReasonBundleTooLarge, Means: "The bundle is too large to be served inline, and has no " +
			"image that OLM could unpack.", Do: []Action{
			run("Publish the bundle as an image and name the image in the catalog", "bellwether bundle push DIR REF")},
			Next: recheck},
		{Reason: v1alpha1.ReasonNoClusters, Means: "The cluster selector matches no cluster.", Do: []Action{
			run("Compare spec.clusterSelector with the labels of the clusters", "bellwether fleet list -o wide")},
			Next: recheck},
		{Reason: v1alpha1.ReasonClustersNotReady, Means: "All clusters were updated, and some of them are no " +
			"longer Ready. The message names them.", Do: []Action{
			run("Show what is wrong with a cluster", "bellwether why CLUSTER OPERATOR")},
			Next: recheck},
		{Reason: v1alpha1.ReasonNamespaceConflict, Means: "The namespace is already used: by an older " +
			"ManagedOperator on some of the clusters, or on the hub by something that does not belong to the " +
			"FleetCluster.", Do: []Action{
			do("For a ManagedOperator: set another spec.install.namespace, or change the cluster selectors so that " +
				"no cluster is selected by both."),
			do("For a FleetCluster: delete the namespace that the message names, or give the cluster another name.")},
			Next: recheck},
		{Reason: v1alpha1.ReasonInvalidSpec, Means: "The spec has a value that cannot be used.", Do: []Action{
			do("Correct the field that the message names.")}, Next: recheck},
	}
}

// listObjectives returns the remedies for OperatorSLOs.
func listObjectives() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonOperatorNotFound, Means: "The objectives name a ManagedOperator that does not exist " +
			"in their namespace.", Do: []Action{
			do("Create the ManagedOperator, or delete this OperatorSLO and create one with the right spec.operator.")},
			Next: recheck},
		{Reason: v1alpha1.ReasonDuplicate, Means: "Another object is about the same operator, and that one is used. " +
			"The message names it.", Do: []Action{
			do("Put what is in both objects into the one that is used, and delete the other.")}, Next: recheck},
		{Reason: v1alpha1.ReasonInfeasible, Means: "An objective cannot work: its budget is spent before any alert " +
			"can fire, or an alert can never fire.", Do: []Action{
			run("Lower the target or make the period longer, as the message says. This shows how alerts behave",
				"bellwether slo simulate --target PERCENT")}, Next: recheck},
		{Reason: v1alpha1.ReasonRetentionTooShort, Means: "Prometheus deletes samples before the period of a budget " +
			"is over. The remaining budget looks larger than it is. Alerts are not affected.", Do: []Action{
			do("Set --storage.tsdb.retention.time of Prometheus to at least the period in the message."),
			do("Or set a shorter period in the OperatorSLO.")}, Next: recheck},
		{Reason: v1alpha1.ReasonProfileInvalid, Means: "The property bellwether.dev/slo of the operator's bundle " +
			"cannot be used. The OperatorSLO and the default profile are used instead.", Do: []Action{
			run("Report the message to the author of the operator, who can find the error before publishing",
				"bellwether bundle lint DIR"),
			do("Until then, write what is missing into the OperatorSLO.")}, Next: recheck},
		{Reason: v1alpha1.ReasonNoPrometheus, Means: "The hub has no address of a Prometheus, so it cannot check " +
			"whether the rules are evaluated. The rules are written all the same.", Do: []Action{
			do("Start the hub with --prometheus-url (hub.slo.prometheusURL of the chart).")}},
		{Reason: v1alpha1.ReasonPrometheusUnreachable, Means: "The hub could not query which rules Prometheus " +
			"evaluates.",
			Do: []Action{
				do("Check the address in the message, and that the hub's pods can reach it."),
				do("If Prometheus requires authentication, start the hub with --prometheus-token-file and " +
					"--prometheus-ca-file.")}, Next: retry},
		{Reason: v1alpha1.ReasonRulesMissing, Means: "Prometheus does not have the rules of these objectives: " +
			"nothing is recorded, and no alert can fire.", Do: []Action{
			do("With prometheus-operator: compare ruleSelector and ruleNamespaceSelector of your Prometheus with the " +
				"labels and the namespace of the PrometheusRule. hub.slo.rulesLabels and hub.slo.rulesNamespace of " +
				"the chart set them."),
			do("Without it: load the files of the ConfigMap bellwether-slo (label bellwether.dev/rules) into " +
				"Prometheus, and reload it."),
			do("Look for an error about these files in the log of Prometheus.")}, Next: recheck},
		{Reason: v1alpha1.ReasonRulesOutdated, Means: "Prometheus evaluates other rules than those that were written " +
			"last.", Do: []Action{
			do("If this lasts more than a few minutes after a change, check that Prometheus, or what copies the " +
				"files, reloads."),
			do("If Prometheus has the rules twice, remove the copy that the hub does not write.")}, Next: recheck},
		{Reason: v1alpha1.ReasonRulesFailing, Means: "Prometheus has the rules and cannot evaluate one of them. The " +
			"message has its error.", Do: []Action{
			do("A many-to-many error comes from series that are exported twice. Look at the series that the rule " +
				"reads."),
			do("The rules need Prometheus 3.")}, Next: recheck},
	}
}

// listRollout returns the remedies for OperatorRollouts.
func listRollout() []Remedy {
	why := run("Show why a cluster failed", "bellwether why CLUSTER OPERATOR")
	return []Remedy{
		{Reason: v1alpha1.ReasonPending, Means: "The rollout has not been planned yet.", Do: []Action{
			run("If this lasts more than a minute, check that the hub runs",
				"kubectl -n bellwether-system get deploy/bellwether-hub")},
			Next: "The hub plans the rollout within seconds."},
		{Reason: v1alpha1.ReasonHalted, Means: "No more clusters are admitted, because more clusters of a wave " +
			"failed than its maxFailures allows.", Do: []Action{why,
			run("If the release is faulty, end the rollout", "bellwether rollout abort ROLLOUT --reason TEXT")},
			Next: "The rollout continues when enough of the failed clusters have recovered."},
		{Reason: v1alpha1.ReasonAborted, Means: "The rollout was ended. Clusters that were admitted " +
			"finish.", Do: []Action{
			run("Change the version or the settings of the ManagedOperator to start another rollout. This shows what "+
				"it would do", "bellwether rollout plan OPERATOR --version VERSION")}},
		{Reason: v1alpha1.ReasonSuperseded, Means: "A newer rollout of the operator took over.", Do: []Action{
			run("Show the newest rollout", "bellwether rollout get OPERATOR")}},
		{Reason: v1alpha1.ReasonGated, Means: "A wave waits for a gate that has not been passed.", Do: []Action{
			run("Approve the wave. This needs the verb approve on operatorrollouts",
				"bellwether rollout approve ROLLOUT --reason TEXT")},
			Next: "The wave starts as soon as it is approved."},
		{Reason: v1alpha1.ReasonSoaking, Means: "No cluster of the wave is left to update, and the wave is observed " +
			"for its soak time.", Next: "The next wave starts when the soak time has passed."},
		{Reason: v1alpha1.ReasonVerifying, Means: "No cluster of the wave is left to update, and a gate that " +
			"measures them has no verdict: its window is not over, or data is missing.", Do: []Action{
			run("Show what is missing", "bellwether rollout get ROLLOUT"),
			run("To go on without the verdict, override the gate. This needs the verb override on operatorrollouts",
				"bellwether rollout override ROLLOUT --wave WAVE --gate GATE --reason TEXT")},
			Next: "The wave is measured every 30 seconds, and the next wave starts when all gates have passed."},
		{Reason: v1alpha1.ReasonNotObserved, Means: "No cluster of a wave was observed to run the release: all of " +
			"them left the fleet or the selection, or failed as maxFailures permits. So nothing is known of the " +
			"release, and the rollout does not go on by itself.", Do: []Action{
			run("Show what became of the clusters", "bellwether rollout get ROLLOUT"),
			do("Select another cluster for the wave, or bring one back: it is updated and observed."),
			run("To go on without an observation, override the gate. This needs the verb override on operatorrollouts",
				"bellwether rollout override ROLLOUT --wave WAVE --gate bellwether/observation --reason TEXT")},
			Next: "The rollout goes on as soon as a cluster of the wave runs the release and its soak is over."},
		{Reason: v1alpha1.ReasonGateFailed, Means: "No more clusters are admitted, because a gate judged that the " +
			"release is worse than it permits.", Do: []Action{
			run("Show the evidence", "bellwether rollout get ROLLOUT"),
			run("If the release is faulty, end the rollout", "bellwether rollout abort ROLLOUT --reason TEXT"),
			run("If the cause was not the release and is gone, have the wave soak and be judged again",
				"bellwether rollout retry ROLLOUT"),
			run("To go on all the same, override the gate. This needs the verb override on operatorrollouts",
				"bellwether rollout override ROLLOUT --wave WAVE --gate GATE --reason TEXT")}},
		{Reason: v1alpha1.ReasonTooManyDeferred, Means: "More clusters of the wave are offline or paused than " +
			"maxDeferred allows.", Do: []Action{
			run("Start the agents of these clusters again, or resume the clusters", "bellwether fleet list"),
			do("Or raise strategy.maxDeferred of the ManagedOperator, for the next rollout.")}, Next: resume},
		{Reason: v1alpha1.ReasonPolicyNotMet, Means: "The rollout cannot meet what a RolloutPolicy of the platform " +
			"team asks for, so nothing is admitted. The message says what.", Do: []Action{
			run("Show the policies", "kubectl get rolloutpolicies"),
			run("Change the strategy of the ManagedOperator, and start another rollout",
				"bellwether rollout restart OPERATOR"),
			do("Or ask the platform team to change the policy.")}, Next: resume},
		{Reason: v1alpha1.ReasonFailed, Means: "The rollout, or a cluster in it, failed.", Do: []Action{why},
			Next: "A failed cluster counts as updated as soon as it succeeds."},
	}
}

// listBlocked returns the remedies for clusters that are not admitted now.
func listBlocked() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonErrorBudgetSpent, Means: "No error budget of the operator is left, so the rollout " +
			"admits no cluster: the strategy asks for that with errorBudgetPace.", Do: []Action{
			run("Show which clusters used the budget up", "bellwether slo list"),
			do("To go on with little budget left, remove spec.strategy.errorBudgetPace of the ManagedOperator and " +
				"restart the rollout.")},
			Next: "Clusters are admitted again when some of the budget is left. It is measured every 30 seconds."},
		{Reason: v1alpha1.ReasonErrorBudgetUnknown, Means: "The error budgets of the operator are not known, so the " +
			"rollout admits no cluster: the strategy asks for that with errorBudgetPace.", Do: []Action{
			run("Show whether the objectives are recorded", "bellwether slo list"),
			do("Check that the hub reaches Prometheus (flag --prometheus-url), and that the rules of the operator's " +
				"objectives are loaded.")},
			Next: "The budgets are measured every 30 seconds."},
		{Reason: v1alpha1.ReasonWindowClosed, Means: "A ChangeWindow keeps clusters from being admitted now.",
			Do: []Action{
				run("Show the ChangeWindows", "kubectl get changewindows"),
				run("In an emergency, admit clusters in spite of the windows. This needs the verb override on "+
					"operatorrollouts", "bellwether rollout override-windows ROLLOUT --reason TEXT")},
			Next: "The clusters are admitted as soon as the windows are open."},
		{Reason: v1alpha1.ReasonClusterBusy, Means: "Another operator is being changed on the cluster, and the hub " +
			"lets only so many change at a time.", Do: []Action{
			run("Show what is being changed on the cluster", "bellwether fleet get CLUSTER")},
			Next: "The cluster is admitted as soon as that change has succeeded or failed."},
		{Reason: v1alpha1.ReasonClusterNotWritable, Means: "The hub's API server refuses to write the cluster's " +
			"OperatorInstall, for the cause in the message. Other clusters are not held up.", Do: []Action{
			run("Look for a quota in the cluster's namespace on the hub",
				"kubectl -n bellwether-CLUSTER get resourcequota"),
			do("Check the admission webhooks and admission policies of the hub's cluster.")},
			Next: "The hub tries again after a minute, and less often later: after ten minutes at the latest."},
		{Reason: v1alpha1.ReasonDependencyNotMet, Means: "The operator depends on another one (spec.dependsOn), " +
			"which is not Ready on the cluster, or has a lower version there.", Do: []Action{
			run("Show why the other operator is not Ready there", "bellwether why CLUSTER OPERATOR"),
			do("Check that the other ManagedOperator selects the cluster.")},
			Next: "The cluster is admitted as soon as the other operator is Ready there."},
		{Reason: v1alpha1.ReasonPreflightFailed, Means: "The release cannot be installed on the cluster, for the " +
			"cause in the message. Nothing was changed there.", Do: []Action{
			do("If the cluster is the cause, correct what the message names, such as by an upgrade of Kubernetes."),
			do("If the release is the cause, publish a corrected version, and set it in spec.version of the " +
				"ManagedOperator."),
			run("After a preflight Job failed, have it run again", "bellwether rollout retry ROLLOUT")},
			Next: "The cluster is admitted as soon as it fits."},
		{Reason: v1alpha1.ReasonPreflightPending, Means: "A preflight Job of the rollout has not ended on the cluster.",
			Next: "The cluster is admitted when the Job has succeeded."},
	}
}

// listNotPermitted returns the remedies for clusters that a person outside the operator's team keeps unchanged.
func listNotPermitted() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonVetoed, Means: "The owner of the cluster refuses changes there, or its agent was " +
			"installed to read only.", Do: []Action{
			run("Ask the cluster's owner. The veto is a ConfigMap beside the agent on the cluster",
				"kubectl --kubeconfig FILE -n bellwether-system get configmap bellwether-veto -o yaml"),
			run("If the agent may only read, let it manage operators",
				"bellwether fleet join CLUSTER --read-only=false --cluster-kubeconfig FILE")},
			Next: "The cluster is changed as soon as the ConfigMap is deleted. The time in its key until is what the " +
				"owner means to do; it ends nothing by itself."},
		{Reason: v1alpha1.ReasonFrozen, Means: "A FleetFreeze stops everything that Bellwether does on the cluster. " +
			"What is installed runs on.", Do: []Action{
			run("See what is frozen since when, and why", "kubectl get fleetfreezes"),
			run("When the reason is gone, a person ends it", "bellwether fleet unfreeze NAME")},
			Next: "Everything goes on where it stopped. Deadlines have what was left of them."},
		{Reason: v1alpha1.ReasonAccessNotPermitted, Means: "The platform team does not permit the namespace of the " +
			"ManagedOperator to bring this release to the cluster: no FleetAccess does. What runs there is left alone.",
			Do: []Action{
				run("See what is permitted", "kubectl get fleetaccesses -o yaml"),
				do("Change the selector, the catalog or the target namespace of the ManagedOperator to what is " +
					"permitted, or ask the platform team for a FleetAccess.")},
			Next: "The cluster is admitted as soon as a FleetAccess permits it."},
		{Reason: v1alpha1.ReasonLocalPolicy, Means: "The agent refuses the release, because the policy that the " +
			"owner of the cluster wrote there does not permit it. What ran before goes on running.", Do: []Action{
			run("Look at the policy. It is a ConfigMap beside the agent on the cluster",
				"kubectl --kubeconfig FILE -n bellwether-system get configmap bellwether-policy -o yaml"),
			do("Ask the cluster's owner to permit what the message names, or change the release. If none of your " +
				"people asked for the release, find out who did: the hub may have been taken over.")},
			Next: "The agent looks at the policy with each attempt, every half minute."},
		{Reason: v1alpha1.ReasonLocalPolicyInvalid, Means: "The policy that the owner of the cluster wrote there " +
			"cannot be read, so the agent installs and changes nothing.", Do: []Action{
			run("Correct it, or delete it. It is a ConfigMap beside the agent on the cluster",
				"kubectl --kubeconfig FILE -n bellwether-system edit configmap bellwether-policy")},
			Next: "The agent looks at the policy with each attempt, every half minute."},
	}
}

// listCluster returns the remedies for OperatorInstalls, before OLM is involved.
func listCluster() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonNotAdmitted, Means: "No rollout has admitted this cluster yet.", Do: []Action{
			run("Show what the rollout waits for", "bellwether rollout get OPERATOR")},
			Next: "The rollout admits the cluster when its wave has come."},
		{Reason: v1alpha1.ReasonRecovered, Means: "The hub found the operator on clusters, admitted by rollouts that " +
			"it does not have: it was created again, or restored from an old backup. It admits no " +
			"cluster.", Do: []Action{
			run("Check that all clusters have joined again", "bellwether fleet list"),
			run("Look at what runs where", "bellwether operator get OPERATOR"),
			run("Go on", "bellwether operator resume OPERATOR")},
			Next: "A rollout of what the ManagedOperator asks for starts. Versions that were held stay held."},
		{Reason: v1alpha1.ReasonReportPending, Means: "The agent has not reported yet what its cluster keeps of the " +
			"operator, so the cluster is not admitted.", Do: []Action{
			run("If that does not change within a few minutes, check that the cluster is online",
				"bellwether fleet list"),
			run("If it is not, let it join again", "bellwether fleet join CLUSTER --cluster-kubeconfig FILE"),
			run("If it is, check the agent's log on the cluster",
				"kubectl -n bellwether-system logs deployment/bellwether-agent")},
			Next: "The cluster is admitted as soon as the agent has reported."},
		{Reason: v1alpha1.ReasonStaleAdmission, Means: "The admission is older than one that the agent has already " +
			"acted on, so it is not carried out.", Do: []Action{
			do("If the hub was restored from a backup, change the ManagedOperator so that a new rollout starts.")},
			Next: "An admission by a newer rollout replaces it."},
		{Reason: v1alpha1.ReasonNamespaceTerminating, Means: "The operator's namespace on the cluster is being " +
			"deleted.",
			Do: []Action{
				run("If it stays, show the finalizers and the objects that remain", "kubectl get namespace NAMESPACE "+
					"-o yaml")},
			Next: "The agent creates the namespace again once it is gone."},
		{Reason: v1alpha1.ReasonOperatorGroupConflict, Means: "The namespace has more than one OperatorGroup, or one " +
			"that does not match the install mode.", Do: []Action{
			run("Keep exactly one OperatorGroup in the namespace, with the target namespaces of the install mode",
				"kubectl -n NAMESPACE get operatorgroups"),
			do("Or set another spec.install.namespace in the ManagedOperator.")}, Next: retry},
		{Reason: v1alpha1.ReasonOrphanCSV, Means: "A ClusterServiceVersion without a Subscription prevents OLM from " +
			"resolving anything in the namespace.", Do: []Action{
			run("If it is not needed, delete the ClusterServiceVersion that the message names. CRDs and their objects "+
				"are kept", "kubectl -n NAMESPACE delete csv NAME")}, Next: retry},
		{Reason: v1alpha1.ReasonSubscriptionConflict, Means: "A Subscription that Bellwether did not create " +
			"subscribes to the same package, or has the name that Bellwether's would have.", Do: []Action{
			do("Set spec.adopt of the ManagedOperator to take over what it installed, as it runs."),
			run("Or delete the other Subscription. Its ClusterServiceVersion stays",
				"kubectl -n NAMESPACE delete subscription.operators.coreos.com NAME"),
			do("Or set another spec.install.namespace in the ManagedOperator.")}, Next: retry},
		{Reason: v1alpha1.ReasonInstalledElsewhere, Means: "OLM would have to run the operator a second " +
			"time on a cluster where one of the two watches all namespaces, and fails the second one. The first one " +
			"is on the cluster already, or an older ManagedOperator installs it there; it may be of another package " +
			"that provides the same API. The message names it.", Do: []Action{
			do("If the first one is on the cluster already: remove it there, or set spec.install.namespace of the " +
				"ManagedOperator to its namespace to take it over."),
			do("For two ManagedOperators: set spec.install.mode of both to OwnNamespace, or change the cluster " +
				"selectors so that no cluster is selected by both, or delete one of them.")}, Next: retry},
	}
}

// listAdoption returns the remedies for operators that others installed.
func listAdoption() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonNotAdoptable, Means: "The ManagedOperator has spec.adopt, and the operator that " +
			"others installed on the cluster cannot be taken over as it is. Nothing of it was changed, unless the " +
			"message says that its Subscription is taken over.", Do: []Action{
			run("Show everything that stands in the way, with the choices", "bellwether fleet scan CLUSTER"),
			do("Change that, or add the reason of the finding to spec.adopt.accept of the ManagedOperator if it can " +
				"be accepted."),
			do("Or let the ManagedOperator not select the cluster.")}, Next: retry},
		{Reason: v1alpha1.ReasonAdoptionPending, Means: "The operator that others installed is about to be taken " +
			"over. OLM is at work, and nothing is changed before it has finished.", Do: []Action{
			run("If that does not change within a few minutes, find out what OLM does",
				"kubectl -n NAMESPACE get installplans,clusterserviceversions")},
			Next: "The operator is taken over as soon as OLM has finished."},
		{Reason: v1alpha1.ReasonRestoring, Means: "The Subscription that was taken over is being given back as it " +
			"was, as the removal policy Restore asks.", Do: []Action{
			run("If that does not change within a few minutes, find out what OLM does",
				"kubectl -n NAMESPACE get installplans,subscriptions.operators.coreos.com")}, Next: retry},
	}
}

// listOLM returns the remedies for OperatorInstalls of OLM v0.
func listOLM() []Remedy { return append(listOLMStages(), listInstalled()...) }

// listOLMStages returns the remedies for the stages of an installation.
func listOLMStages() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonCatalogNotReady, Means: "OLM has not connected to the catalog view that the agent " +
			"serves.", Do: []Action{
			do("If this lasts more than a minute, check that OLM's catalog-operator can reach the agent's pod on the " +
				"port in the message: NetworkPolicies, and DNS.")}, Next: "OLM tries to connect again."},
		{Reason: v1alpha1.ReasonViewUnreachable, Means: "OLM on the cluster tries to connect to the catalog view " +
			"that the agent serves, and no connection arrives. The operator goes on working and is not upgraded.",
			Do: []Action{
				run("Find the address that OLM connects to, and check from a pod in OLM's namespace that it can be "+
					"reached: NetworkPolicies, DNS, and the agent's Service",
					"kubectl -n NAMESPACE get catalogsources.operators.coreos.com "+
						"-o jsonpath='{.items[*].spec.address}'"),
				do("For a hosted agent, check the firewalls between the cluster and that address, and agent.viewHost " +
					"and agent.hosted.service of its chart.")}, Next: "OLM tries to connect again."},
		{Reason: v1alpha1.ReasonResolutionFailed, Means: "OLM could not resolve the Subscription.", Do: []Action{
			run("Read the message of OLM. A dependency may be missing, or another operator in the namespace may be in "+
				"conflict", "kubectl -n NAMESPACE get subscriptions.operators.coreos.com -o yaml")}, Next: retry},
		{Reason: v1alpha1.ReasonUnadmittedPlan, Means: "OLM made an InstallPlan with a ClusterServiceVersion that no " +
			"rollout admitted, or with another content than the catalog view has. The InstallPlan is not approved.",
			Do: []Action{
				run("Find the other Subscription in the namespace, and give that operator a namespace of its own",
					"kubectl -n NAMESPACE get subscriptions.operators.coreos.com"),
				run("Where the message says how the content differs, find out who else writes InstallPlans",
					"kubectl -n NAMESPACE get installplans.operators.coreos.com -o yaml --show-managed-fields")},
			Next: retry},
		{Reason: v1alpha1.ReasonPlanFailed, Means: "OLM's InstallPlan failed at the step that the message names.",
			Do: []Action{
				do("Correct what the step names, for example existing objects that a new CRD schema refuses.")},
			Next: "The agent tries the InstallPlan again, with a growing delay."},
		{Reason: v1alpha1.ReasonUnpackFailed, Means: "OLM could not unpack the image of the bundle.", Do: []Action{
			do("Check that the cluster can pull the image that the message names, and that OLM has the pull secret.")},
			Next: "The agent tries it again, with a growing delay."},
		{Reason: v1alpha1.ReasonRequirementsNotMet, Means: "The ClusterServiceVersion waits for an API, a CRD or a " +
			"permission that the cluster does not have.",
			Do: []Action{run("Provide what the message names. This lists every requirement",
				"bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE")},
			Next: "OLM continues as soon as the requirements are met."},
		{Reason: v1alpha1.ReasonObjectsLost, Means: "Somebody deleted a CRD, an account or a permission that came " +
			"with the operator. OLM makes it again only when it installs the operator again.",
			Do: []Action{run("Have OLM install the operator again. Custom resources that still exist are kept, those "+
				"of a deleted CRD are gone", "bellwether operator repair CLUSTER OPERATOR --cluster-kubeconfig FILE")},
			Next: "The operator stays as it is until it is installed again."},
		{Reason: v1alpha1.ReasonCSVFailed, Means: "The ClusterServiceVersion failed. The most frequent cause is a " +
			"Deployment of the operator that does not become available.", Do: []Action{
			run("Look at the pods of the operator", "bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE"),
			run("If the release is faulty, end the rollout and publish a corrected version",
				"bellwether rollout abort ROLLOUT --reason TEXT")},
			Next: "OLM tries the installation again. The cluster counts as updated as soon as it succeeds."},
	}
}

// listInstalled returns the remedies for operators that are or were installed.
func listInstalled() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonInSync, Means: "The ClusterServiceVersion and its Deployments are those of the " +
			"admitted bundle, as configured."},
		{Reason: v1alpha1.ReasonDrifted, Means: "Somebody changed what OLM installed. The message names the fields " +
			"that differ.", Do: []Action{
			do("Undo the change on the cluster, or set spec.install.drift of the ManagedOperator to Correct to have " +
				"the agent undo it."),
			do("If the change is wanted, put it into spec.install.config of the ManagedOperator, or into the " +
				"bundle.")}},
		{Reason: v1alpha1.ReasonCorrecting, Means: "Somebody changed what OLM installed, and the agent puts it back. " +
			"The message names the fields that differ.", Next: "The agent has put the fields back within ten seconds."},
		{Reason: v1alpha1.ReasonCorrectionStopped, Means: "The agent put fields back five times within an hour, and " +
			"they were changed again. It has stopped until the hour is over.", Do: []Action{
			run("Find out who changes the object that the message names",
				"kubectl -n NAMESPACE get deployments,csv --show-managed-fields -o yaml"),
			do("If the change is wanted, put it into spec.install.config of the ManagedOperator, or into the " +
				"bundle.")}},
		{Reason: v1alpha1.ReasonNotCompared, Means: "What runs cannot be compared with the bundle, because the agent " +
			"does not have the bundle's manifests.", Do: []Action{
			do("Give the agent access to the bundle's image. The operator works without that.")}},
		{Reason: v1alpha1.ReasonScaledToZero, Means: "A Deployment of the operator is scaled to zero replicas, and " +
			"the bundle asks for more.", Do: []Action{
			run("Scale it up again on the cluster", "kubectl -n NAMESPACE scale deployment NAME --replicas=1"),
			do("If the operator shall not run on this cluster, change spec.clusterSelector or the labels of the " +
				"cluster instead.")}},
		{Reason: v1alpha1.ReasonPodsUnavailable, Means: "Not all pods of the operator are available.", Do: []Action{
			run("Look at the pods of the operator", "bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE")},
			Next: "The install is Ready again as soon as the pods are available."},
		{Reason: v1alpha1.ReasonNotUpgradeable, Means: "The operator itself prevents its upgrade (Upgradeable in its " +
			"OperatorCondition is False).", Do: []Action{
			do("Do what the operator's message asks.")},
			Next: "The upgrade continues when the operator allows it."},
		{Reason: v1alpha1.ReasonTemplateInvalid, Means: "A template of an object on the cluster does not render to " +
			"the object that it is for.", Do: []Action{
			do("Correct the template in the agent's values (agent.templates) and upgrade the agent.")}, Next: recheck},
		{Reason: v1alpha1.ReasonForbidden, Means: "The agent lacks a permission on the cluster.", Do: []Action{
			do("Upgrade the agent's chart, which brings its roles, or grant the permission that the message names.")},
			Next: retry},
		{Reason: v1alpha1.ReasonUninstalling, Means: "The operator is being removed from the cluster.",
			Next: "The OperatorInstall is gone when the removal has finished."},
	}
}

// listSilence returns the remedies for AlertSilences.
func listSilence() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonInForce, Means: "Alertmanager has the silence in force: no person is notified of the " +
			"alerts that it is about.", Next: "Incidents whose alerts still fire when it ends are opened again."},
		{Reason: v1alpha1.ReasonExcluding, Means: "Time in which the operators of the silence are bad is excluded " +
			"from their error budgets. What is left of a budget is shown with that time and without it.",
			Next: "No more time is excluded once the silence ends.", Do: []Action{
				run("End the silence if the work is done earlier", "bellwether silence end NAME -n NAMESPACE")}},
		{Reason: v1alpha1.ReasonScheduled, Means: "The silence begins at the time of its spec.start.",
			Next: "It comes into force then."},
		{Reason: v1alpha1.ReasonEnded, Means: "The time of the silence is over. It hides nothing.", Do: []Action{
			run("Delete it when the record is not needed", "kubectl -n NAMESPACE delete alertsilence NAME")}},
		{Reason: v1alpha1.ReasonEndTooLate, Means: "The silence would last longer than the hub permits (its flag " +
			"--max-silence, 24 hours by default). It is not in force.", Do: []Action{
			do("Set spec.end of the AlertSilence to the time that the message names, or to an earlier one.")},
			Next: recheck},
		{Reason: v1alpha1.ReasonNoAlertmanager, Means: "The hub knows no Alertmanager, so no AlertSilence comes into " +
			"force.", Do: []Action{do("Set the hub's flag --alertmanager-url " +
			"(hub.paging.alertmanagerURL in the chart).")}},
		{Reason: v1alpha1.ReasonAlertmanagerUnreachable, Means: "The hub cannot read or write the silences of " +
			"Alertmanager. A silence that began before stays in force; one that did not waits.", Do: []Action{
			do("Check that Alertmanager runs, and that the hub reaches the address that the message names.")},
			Next: retry},
		{
			Reason: v1alpha1.ReasonIncidentUnresolved,
			Means: "PagerDuty did not take the resolution of an incident that " +
				"the silence would hide. The silence waits, so that each open incident can be resolved.",
			Do: []Action{
				do("Check that the hub reaches the Events API, and the Secret with the routing key."),
			},
			Next: retry,
		},
	}
}

// listProbeInputs returns the remedies for the inputs of a probe: its targets, Secrets and CAs.
func listProbeInputs() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonTooManyTargets, Means: "The selector of an EndpointProbe matches more than 100 " +
			"objects. Only the first 100 by name are probed.", Do: []Action{
			do("Divide the objects among several EndpointProbes with different labels in their selectors.")}},
		{Reason: v1alpha1.ReasonTargetNotFound, Means: "The object that an EndpointProbe names does not exist, or " +
			"has no such host or port, or its selector matches fewer objects than its min.", Do: []Action{
			do("Create the object again, or correct spec.target of the EndpointProbe.")},
			Next: "The probe counts as failed until then."},
		{Reason: v1alpha1.ReasonPolicyConflict, Means: "Two PagingPolicies select the same operator, or two have the " +
			"scope Fleet. Neither is applied as it is now.", Do: []Action{
			run("Show both, and change spec.operators or spec.teams of one of them", "kubectl get pagingpolicies -A"),
			run("Check the change before it is applied", "bellwether page lint FILE")}, Next: recheck},
		{
			Reason: v1alpha1.ReasonNoFleetPolicy,
			Means: "No PagingPolicy has the scope Fleet, so no person would be notified " +
				"of alerts about clusters. Nothing is written for Alertmanager.",
			Do: []Action{
				do("Create a PagingPolicy with spec.scope Fleet in the namespace of the hub's rules.")},
			Next: recheck,
		},
		{Reason: v1alpha1.ReasonConfigurationInvalid, Means: "Alertmanager would refuse what is made of the " +
			"PagingPolicies, or an alert would reach no person. The previous configuration stays in " +
			"force.", Do: []Action{
			run("Correct what the message names. This checks all policies", "bellwether page lint")}, Next: recheck},
		{Reason: v1alpha1.ReasonSecretUnavailable, Means: "A Secret that an EndpointProbe or a PagingPolicy names " +
			"does not exist, has no such key, lacks its label (bellwether.dev/probe-secret=true or " +
			"bellwether.dev/paging-secret=true), cannot be read, or holds something else.",
			Do: []Action{
				do("For a PagingPolicy, do what its message says."),
				do("Create or correct the Secret in the namespace of the EndpointProbe, and label it."),
				run("Permit the agent to read Secrets of this namespace", "kubectl -n NAMESPACE create rolebinding "+
					"bellwether-probe-secrets --clusterrole=bellwether-agent-probe-secrets "+
					"--serviceaccount=bellwether-system:bellwether-agent")},
			Next: "The probe counts as failed until then."},
		{Reason: v1alpha1.ReasonWebhookCAUnavailable, Means: "An EndpointProbe takes its CA from webhooks " +
			"(spec.tls.caFromWebhooks), and no webhook with a caBundle calls the port of the Service that is probed.",
			Do: []Action{
				do("Check that spec.target.service has the port that the webhook configuration calls, and that " +
					"the caBundle there is not empty."),
				run("List what calls the Service", "kubectl get validatingwebhookconfigurations,"+
					"mutatingwebhookconfigurations -o yaml | grep -A3 -B3 'name: SERVICE'")},
			Next: "The probe counts as failed until then."},
	}
}

// listProbe returns the remedies for probes that fail.
func listProbe() []Remedy {
	return []Remedy{
		{Reason: v1alpha1.ReasonDNSFailed, Means: "The name of a probe's target could not be resolved.", Do: []Action{
			do("Resolve the name in the pod that probes: the agent's, or the hub's.")}, Next: retry},
		{Reason: v1alpha1.ReasonAddressRefused, Means: "A probe's target, or a redirect, resolved to a loopback, " +
			"link-local or metadata address, which is not probed.", Do: []Action{
			do("If you want to probe this address, set spec.allowPrivate. If not, find out who redirects there.")},
			Next: retry},
		{Reason: v1alpha1.ReasonConnectFailed, Means: "A probe could not connect.", Do: []Action{
			do("Check that something listens on the port, and that NetworkPolicies allow the pod that probes.")},
			Next: retry},
		{Reason: v1alpha1.ReasonTLSFailed, Means: "A probe's TLS handshake failed, or the certificate is not trusted.",
			Do: []Action{
				do("Renew the certificate, or set its CA in spec.tls.ca, or the name in it in spec.tls.serverName.")},
			Next: retry},
		{Reason: v1alpha1.ReasonTimedOut, Means: "A probe had no complete answer within its timeout.", Do: []Action{
			do("Look at the load of the endpoint. If slow answers are normal for it, raise " +
				"spec.timeout.")}, Next: retry},
		{Reason: v1alpha1.ReasonTooManyRedirects, Means: "A probe was redirected more than ten times.", Do: []Action{
			do("Correct the redirect loop, or set spec.http.followRedirects to false and list the status of the " +
				"redirect in spec.http.statuses.")}, Next: retry},
		{Reason: v1alpha1.ReasonBadStatus, Means: "A probe got an HTTP status that does not count as success.",
			Do: []Action{
				do("Look at the log of the endpoint. If the status is a good answer, list it in spec.http.statuses.")},
			Next: retry},
		{Reason: v1alpha1.ReasonBadAnswer, Means: "A probe got an answer that does not match what is expected.",
			Do: []Action{
				do("Compare the answer with the regular expressions and the CEL expression in the spec.")},
			Next: retry},
		{Reason: v1alpha1.ReasonTooSlow, Means: "A probe succeeded, but took longer than spec.maxDuration.",
			Do: []Action{
				do("Look at the load of the endpoint. If this duration is normal for it, raise spec.maxDuration.")},
			Next: retry},
		{Reason: v1alpha1.ReasonAnswerTooLarge, Means: "A probe got a larger answer than it reads: 512 KiB, or less " +
			"if it has json or many regular expressions.", Do: []Action{
			do("Probe a smaller page, such as a health endpoint, or use the method HEAD. Use fewer or smaller " +
				"regular expressions.")}, Next: retry},
		{Reason: v1alpha1.ReasonNotServing, Means: "A gRPC server answered a probe that it does not " +
			"serve.", Do: []Action{
			do("Look at the log of the server. Check that it has the service in spec.grpc.service.")}, Next: retry},
		{Reason: v1alpha1.ReasonProtocolError, Means: "A probe got an answer that does not follow the protocol, or " +
			"the connection was closed.", Do: []Action{
			do("Check that the scheme of the probe is the one that the port serves.")}, Next: retry},
	}
}
